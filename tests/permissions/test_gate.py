from itertools import permutations
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ConfigError
from panpan.permissions.gate import PermissionGate
from panpan.permissions.reasons import PLAN_MODE_NOTICE
from panpan.permissions.rules.rules import RuleSource
from panpan.shell_analysis.judge import analyse
from panpan.system.files.paths import PathResolver
from panpan.types.permission import Allow, Ask, Decision, Deny
from tests.permissions.gate_calls import Calls


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    root = tmp_path / "project"
    root.mkdir()
    return Calls(root.resolve())


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "outside"
    folder.mkdir()
    return folder


def gate(mode: str = "default", *, allow: tuple[str, ...] = (), ask: tuple[str, ...] = (), deny: tuple[str, ...] = ()):
    return PermissionGate([RuleSource("the flags", True, allow, ask, deny)], mode=mode)  # type: ignore[arg-type]


# --- what holds without rules


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"])
async def test_reading_in_the_workspace_runs_in_every_mode(calls: Calls, mode: str) -> None:
    assert isinstance(await gate(mode).before_tool(calls.read("a.py")), Allow)
    assert isinstance(await gate(mode).before_tool(calls.bash("git status", is_read_only=True)), Allow)


@pytest.mark.parametrize(
    ("mode", "edit", "bash"),
    [
        ("default", Ask, Ask),
        ("acceptEdits", Allow, Ask),
        ("plan", Deny, Deny),
        ("dontAsk", Deny, Deny),
        ("bypassPermissions", Allow, Allow),
    ],
)
async def test_changes_are_treated_as_the_mode_says(calls: Calls, mode: str, edit: type, bash: type) -> None:
    assert isinstance(await gate(mode).before_tool(calls.write("a.py")), edit)
    assert isinstance(await gate(mode).before_tool(calls.bash("make")), bash)


async def test_yes_waited_for_does_not_last_into_plan_mode(calls: Calls) -> None:
    asking = gate("default")
    assert isinstance(await asking.before_tool(calls.write("a.py")), Ask)
    assert await asking.recheck(calls.write("a.py")) is None

    asking.mode = "plan"

    assert isinstance(await asking.recheck(calls.write("a.py")), Deny)
    assert await asking.recheck(calls.read("a.py")) is None


async def test_network_asks_although_it_only_reads(calls: Calls) -> None:
    assert isinstance(await gate().before_tool(calls.fetch("https://example.org/")), Ask)


@pytest.mark.parametrize(
    ("auto_approve", "bash", "write"),
    [
        (False, "--permission-mode default --allowedTools 'Bash(make)'", "--permission-mode acceptEdits"),
        (True, "--permission-mode default", "--permission-mode default"),
    ],
)
async def test_flags_out_of_plan_mode_omit_the_reasons_a_yes_answers(
    calls: Calls, auto_approve: bool, bash: str, write: str
) -> None:
    planning = PermissionGate(mode="plan", auto_approve=auto_approve)

    for there in (planning, planning.with_mode("plan")):
        assert (await there.before_tool(calls.bash("make"))).reason.flags == bash
        assert (await there.before_tool(calls.write("a.py"))).reason.flags == write
        assert (await there.before_tool(calls.write(".git/config"))).reason.flags == ""


async def test_plan_mode_does_not_yield_to_allow_rules(calls: Calls) -> None:
    planning = gate("plan", allow=("Edit", "Bash"))

    for call in (calls.write("a.py"), calls.bash("make")):
        decision = await planning.before_tool(call)

        assert isinstance(decision, Deny)
        assert decision.reason.kind == "mode"
        assert decision.reason.text.startswith(PLAN_MODE_NOTICE)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
async def test_protected_paths_ask_for_a_person_in_every_mode(calls: Calls, mode: str) -> None:
    decision = await gate(mode, allow=("Edit", "Edit(/.git/**)")).before_tool(calls.write(".git/config"))

    assert isinstance(decision, Ask)
    assert decision.is_protected
    assert decision.reason.text == (
        f"{calls.root}/.git/config is protected, since it holds git's own configuration and hooks, which run commands"
    )
    assert decision.rule is None
    assert decision.approved_paths == {calls.root / ".git" / "config"}


async def test_question_about_protected_files_names_all_the_reasons(calls: Calls) -> None:
    decision = await gate().before_tool(calls.write(".env", ".ssh/config", ".bashrc", "a.py"))

    assert isinstance(decision, Ask)
    assert decision.reason.text == (
        f"{calls.root}/.env (and 2 more) is protected, since it holds credentials and is run when a shell or a session "
        "starts"
    )


async def test_unasking_mode_denies_protected_paths(calls: Calls) -> None:
    assert isinstance(await gate("dontAsk").before_tool(calls.write(".bashrc")), Deny)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "bypassPermissions"])
@pytest.mark.parametrize("path", [".env", ".ssh/config", "link", "sub/.netrc", ".panpan/settings.toml"])
async def test_secrets_ask_a_person_in_every_mode(calls: Calls, path: str, mode: str) -> None:
    calls.paths = PathResolver(calls.root, protected_roots=(calls.root / ".panpan",))
    (calls.root / "link").symlink_to(".env")

    decision = await gate(mode, allow=("Read", "Read(/**)")).before_tool(calls.read(path))

    assert isinstance(decision, Ask)
    assert decision.is_protected
    assert decision.rule is None
    assert decision.approved_paths == {calls.root / path.replace("link", ".env")}
    assert calls.paths.approving(decision.approved_paths).resolve(path, access="read").name != "link"


@pytest.mark.parametrize("path", [".env.example", ".git/config", ".github/workflows/x.yml", ".panpan/outputs/1/x.txt"])
async def test_secret_lookalike_is_read_unasked(calls: Calls, path: str) -> None:
    home = calls.root / ".panpan"
    calls.paths = PathResolver(calls.root, protected_roots=(home,), readable_roots=(home / "outputs" / "1",))

    assert isinstance(await gate().before_tool(calls.read(path)), Allow)


@pytest.mark.parametrize("command", ["rg -uu KEY", "grep -r KEY", "cat a.py && rg --hidden KEY"])
async def test_shell_search_asks_if_it_would_show_secrets(calls: Calls, command: str) -> None:
    named = ("a.py",) if "a.py" in command else ()
    call = calls.of("Bash", "command", is_read_only=True, command=command, paths=named)
    (calls.root / "a.py").touch()
    assert isinstance(await gate().before_tool(call), Allow)
    (calls.root / "sub" / ".ssh").mkdir(parents=True)
    (calls.root / "sub" / ".ssh" / "config").touch()

    decision = await gate("bypassPermissions").before_tool(call)

    assert isinstance(decision, Ask)
    assert decision.is_protected
    assert "use Grep" in decision.reason.advice
    assert isinstance(await gate().before_tool(calls.read(".", name="Grep")), Allow)


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
async def test_outside_paths_ask_one_by_one_and_open_only_themselves(calls: Calls, outside: Path, mode: str) -> None:
    target = outside / "a.txt"
    for call in (calls.read(str(target)), calls.write(str(target)), calls.write("inside.py", str(target))):
        decision = await gate(mode, allow=("Read", "Edit")).before_tool(call)

        assert isinstance(decision, Ask)
        assert "outside the workspace" in decision.reason.text
        assert decision.approved_paths == {target}


async def test_link_that_leads_outside_counts_as_outside(calls: Calls, outside: Path) -> None:
    (calls.root / "link").symlink_to(outside)

    decision = await gate("acceptEdits").before_tool(calls.write("link/a.txt"))

    assert isinstance(decision, Ask)
    assert decision.approved_paths == {outside / "a.txt"}


async def test_bypassing_opens_paths_outside(calls: Calls, outside: Path) -> None:
    decision = await gate("bypassPermissions").before_tool(calls.write(str(outside / "a.txt")))

    assert isinstance(decision, Allow)
    assert decision.approved_paths == {outside / "a.txt"}


async def test_home_of_an_unknown_user_is_an_ordinary_name(calls: Calls) -> None:
    assert isinstance(await gate().before_tool(calls.read("~nosuchuser/x")), Allow)
    assert isinstance(await gate(deny=("Read(/~nosuchuser/**)",)).before_tool(calls.read("~nosuchuser/x")), Deny)


async def test_unusable_path_is_denied(calls: Calls) -> None:
    assert isinstance(await gate("bypassPermissions").before_tool(calls.read("a\0b")), Deny)


# --- rules


async def test_path_rule_opens_a_folder_outside(calls: Calls, outside: Path) -> None:
    opened = gate(allow=(f"Read(/{outside}/**)",))

    decision = await opened.before_tool(calls.read(str(outside / "a.txt")))
    assert isinstance(decision, Allow)
    assert decision.approved_paths == {outside / "a.txt"}
    assert isinstance(await opened.before_tool(calls.read(str(outside), name="Grep")), Allow)
    assert isinstance(await opened.before_tool(calls.write(str(outside / "a.txt"))), Ask)


async def test_edit_rule_covers_every_editing_tool_and_patched_file(calls: Calls) -> None:
    opened = gate(allow=("Edit(/src/**)",))

    for name in ("Edit", "MultiEdit", "Write", "Patch", "Rename"):
        assert isinstance(await opened.before_tool(calls.write("src/a.py", "src/b.py", name=name)), Allow)
        assert isinstance(await opened.before_tool(calls.write("src/a.py", "b.py", name=name)), Ask)


async def test_several_rules_may_allow_a_call_together(calls: Calls) -> None:
    opened = gate(allow=("Edit(/src/**)", "Edit(/lib/**)", "Bash(npm test)", "Bash(tee *)"))

    assert isinstance(await opened.before_tool(calls.write("src/a.py", "lib/b.py")), Allow)
    assert isinstance(await opened.before_tool(calls.bash("npm test 2>&1 | tee x")), Allow)


@pytest.mark.parametrize(
    "command", ["npm test; rm x", "npm test > x", "npm test $(rm x)", "npm test & rm x", "x npm test"]
)
async def test_shell_syntax_does_not_widen_an_allowance(calls: Calls, command: str) -> None:
    assert isinstance(await gate(allow=("Bash(npm test *)",)).before_tool(calls.bash(command)), Ask)


@pytest.mark.parametrize(
    "command", ["rm x", "make; rm x", "$(rm x)", "sudo rm x", "/bin/rm x", "r'm' x", "make && (cd x; rm x)"]
)
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_deny_rule_holds_for_any_part_of_a_command(calls: Calls, command: str, mode: str) -> None:
    decision = await gate(mode, allow=("Bash",), deny=("Bash(rm *)",)).before_tool(calls.bash(command))

    assert isinstance(decision, Deny)
    assert decision.reason.text == "the rule Bash(rm *) from the flags denies it"


async def test_command_that_a_deny_rule_may_mean_asks(calls: Calls) -> None:
    decision = await gate("bypassPermissions", deny=("Bash(rm *)",)).before_tool(calls.bash("$CMD x"))

    assert isinstance(decision, Ask)
    assert "only known when it runs" in decision.reason.text


async def test_read_rule_denies_every_tool_that_would_read_the_file(calls: Calls) -> None:
    closed = gate(deny=("Read(.env)",))
    (calls.root / "link").symlink_to(calls.root / ".env")

    assert isinstance(await closed.before_tool(calls.read("config/.env")), Deny)
    assert isinstance(await closed.before_tool(calls.read("link")), Deny)
    assert isinstance(await closed.before_tool(calls.read(".env", name="Grep")), Deny)
    assert isinstance(await closed.before_tool(calls.read("env.py")), Allow)


async def test_denied_link_stays_denied_wherever_it_leads(calls: Calls) -> None:
    (calls.root / "link").symlink_to(calls.root / "a.txt")

    assert isinstance(await gate(deny=("Read(/link)",)).before_tool(calls.read("link")), Deny)


async def test_search_asks_if_it_would_show_a_denied_file(calls: Calls) -> None:
    (calls.root / "src").mkdir()
    (calls.root / ".env").write_text("KEY=1")
    closed = gate(deny=("Read(.env)",))

    assert isinstance(await closed.before_tool(calls.read(".", name="Grep")), Ask)
    assert isinstance(await closed.before_tool(calls.read(".", name="Grep", glob="*.{py,env}")), Ask)
    for blank in ("\r", "\x0b", "\x0c", "\x1c", "\x85", "\u00a0", "\u2003"):  # Grep takes each for one
        glob = f"*.py{blank}.env"
        assert isinstance(await closed.before_tool(calls.read(".", name="Grep", glob=glob)), Ask), repr(glob)
    assert isinstance(await closed.before_tool(calls.read(".", name="Grep", glob="*.py")), Allow)
    assert isinstance(await closed.before_tool(calls.read("src", name="Grep")), Allow)
    assert isinstance(await closed.before_tool(calls.read(".", name="Glob")), Allow)


async def test_shell_search_asks_if_it_would_show_a_denied_file(calls: Calls) -> None:
    (calls.root / ".env").write_text("KEY=1")
    closed = gate(deny=("Read(.env)",))

    assert isinstance(await closed.before_tool(calls.bash("rg -. KEY", is_read_only=True)), Ask)
    assert isinstance(await closed.before_tool(calls.bash("true | grep -nr KEY", is_read_only=True)), Ask)
    assert isinstance(await closed.before_tool(calls.bash("true | grep KEY", is_read_only=True)), Allow)
    assert isinstance(await closed.before_tool(calls.bash("ls", is_read_only=True)), Allow)


@pytest.mark.parametrize("command", ["grep KEY -r", "rg KEY -i", 'rg "\\$KEY"', "rg -- KEY -A", "grep KEY -- -r"])
async def test_shell_search_is_seen_in_any_spelling(calls: Calls, command: str) -> None:
    (calls.root / "id_rsa").write_text("KEY=1")

    assert isinstance(await gate().before_tool(calls.bash(command, is_read_only=True)), Ask)


@pytest.mark.parametrize(
    "command",
    [
        "npm test && grep -r KEY",
        "npm test; rg KEY",
        "npm test; grep KEY -r",
        "npm test && echo *",
        "npm test && grep *",
    ],
)
async def test_reader_of_unnamed_files_asks_beside_an_allowed_command(calls: Calls, command: str) -> None:
    assert isinstance(await gate(allow=("Bash(npm test)",)).before_tool(calls.bash(command)), Ask)


async def test_look_runs_beside_an_allowed_command(calls: Calls) -> None:
    opened = gate(allow=("Bash(npm test)",))

    assert isinstance(await opened.before_tool(calls.bash("npm test 2>&1 | tail -20")), Allow)
    assert isinstance(await opened.before_tool(calls.bash("npm test && cat /etc/passwd")), Ask)
    assert isinstance(await opened.before_tool(calls.bash("cd / && npm test")), Ask)
    assert isinstance(await opened.before_tool(calls.bash("npm test | tee x")), Ask)


async def test_ask_rule_asks_in_every_mode_and_offers_no_always(calls: Calls) -> None:
    for mode in ("default", "bypassPermissions"):
        decision = await gate(mode, allow=("Bash",), ask=("Bash(git push *)",)).before_tool(calls.bash("git push"))

        assert isinstance(decision, Ask)
        assert decision.rule is None
        assert "the rule Bash(git push *) from the flags" in decision.reason.text


async def test_rules_for_servers_agents_and_hosts_hold(calls: Calls) -> None:
    opened = gate(allow=("mcp__github__*", "Agent(reviewer)", "WebFetch(domain:example.org)"))

    assert isinstance(await opened.before_tool(calls.of("mcp__github__list", "network")), Allow)
    assert isinstance(await opened.before_tool(calls.of("mcp__other__list", "network")), Ask)
    assert isinstance(await opened.before_tool(calls.of("Agent", "command", subagent_type="reviewer")), Allow)
    assert isinstance(await opened.before_tool(calls.of("Agent", "command", subagent_type="other")), Ask)
    assert isinstance(await opened.before_tool(calls.fetch("https://example.org/x")), Allow)
    assert isinstance(await opened.before_tool(calls.fetch("https://example.org.evil/x")), Ask)


@pytest.mark.parametrize(("rule", "called"), [("Agent(explore)", "Explore"), ("task(Expl*)", "explore")])
async def test_denied_agent_is_denied_in_any_case(calls: Calls, rule: str, called: str) -> None:
    task = calls.of("Task", "command", subagent_type=called)

    assert isinstance(await gate(deny=(rule,)).before_tool(task), Deny)
    assert isinstance(await gate(allow=(rule,)).before_tool(task), Ask)


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_deny_beats_ask_beats_allow_in_any_order(calls: Calls, order: tuple[int, ...]) -> None:
    sources = [
        RuleSource("one", allow=("Bash(make *)", "Edit")),
        RuleSource("two", ask=("Bash(make *)", "Edit")),
        RuleSource("three", deny=("Bash(make install)",)),
    ]
    ordered = PermissionGate([sources[number] for number in order])

    assert isinstance(await ordered.before_tool(calls.bash("make install")), Deny)
    assert isinstance(await ordered.before_tool(calls.bash("make test")), Ask)
    assert isinstance(await ordered.before_tool(calls.write("a.py")), Ask)


async def test_project_may_only_tighten(calls: Calls) -> None:
    project = RuleSource(".panpan/settings.toml", may_allow=False, allow=("Bash",), deny=("Read(secret)",))
    tightened = PermissionGate([project])

    assert isinstance(await tightened.before_tool(calls.bash("make")), Ask)
    assert isinstance(await tightened.before_tool(calls.read("secret")), Deny)
    assert "Bash from .panpan/settings.toml" in tightened.warnings[0]


def test_unreadable_rule_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r"'Bash\(' from settings"):
        PermissionGate([RuleSource("settings", may_allow=False, allow=("Bash(",))])


# --- "always"


class Store:
    def __init__(self) -> None:
        self.rules: list[str] = []

    place = "rules.toml"

    def save(self, rule: str) -> None:
        self.rules.append(rule)

    def remove(self, rule: str) -> None:
        self.rules.remove(rule)


async def test_always_saves_the_narrowest_rule_and_holds_at_once(calls: Calls, outside: Path) -> None:
    (calls.root / "src").mkdir()
    cases = [
        (calls.bash("npm run test"), "Bash(npm run test)"),
        (calls.bash("grep -n '*' a; ls > x"), "Bash(grep -n '\\*' a; ls > x)"),
        (calls.write("src/a (1).py"), "Edit(/src/a (1).py)"),
        (calls.write("src/[a].py", name="Write"), "Edit(/src/\\[a\\].py)"),
        (calls.write(str(outside / "a")), f"Edit(/{outside}/a)"),
        (calls.read(str(outside)), f"Read(/{outside}/**)"),
        (calls.fetch("https://example.org/a"), "WebFetch(domain:example.org)"),
        (calls.of("mcp__a__b", "network"), "mcp__a__b"),
    ]
    for call, rule in cases:
        store = Store()
        remembering = PermissionGate(store=store)

        decision = await remembering.before_tool(call)
        assert isinstance(decision, Ask)
        assert decision.rule == rule
        assert decision.remember is not None
        await decision.remember(rule)

        assert store.rules == [rule]
        assert isinstance(await remembering.before_tool(call), Allow)


async def test_always_is_missing_if_one_rule_cannot_name_the_call(calls: Calls) -> None:
    for call in (calls.write("a", "b"), calls.bash("a\nb"), calls.bash("x" * 400), calls.fetch("https://a@b/")):
        decision = await gate().before_tool(call)

        assert isinstance(decision, Ask)
        assert decision.rule is None
        assert decision.remember is None


COMMANDS = st.text(alphabet="ab -*'\"\\;&|$()<>:\n", min_size=1, max_size=12)


@pytest.fixture(scope="module")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of its own, so that patterns match few files; the folder of all tests grows."""
    return tmp_path_factory.mktemp("empty").resolve()


@given(COMMANDS, COMMANDS)
def test_always_allows_the_same_command_and_no_other(empty_folder: Path, one: str, two: str) -> None:
    calls = Calls(empty_folder)

    async def decisions() -> tuple[Decision, Decision] | None:
        remembering = PermissionGate()
        decision = await remembering.before_tool(calls.bash(one))
        if not isinstance(decision, Ask):
            return None  # it only looks, and needs no answer
        if decision.remember is None or decision.rule is None:
            return None
        await decision.remember(decision.rule)
        return await remembering.before_tool(calls.bash(one)), await remembering.before_tool(calls.bash(two))

    if (found := anyio.run(decisions)) is not None:
        assert isinstance(found[0], Allow)
        assert isinstance(found[1], Ask) or _words(one) == _words(two) or analyse(two).is_read_only


def _words(command: str) -> object:
    from panpan.permissions.rules.command_parts import simple_commands

    return simple_commands(command.strip()) or command.strip()  # blank lines around a command say nothing


@given(
    st.sampled_from(["make", "rm x", "make; rm x", "$X", "git push"]),
    st.sampled_from(["Bash", "Bash(make *)", "Bash(rm *)", "Edit"]),
    st.sampled_from(["Bash(rm *)", "Bash(git push *)", "Bash", "Read"]),
)
def test_added_deny_rule_never_allows_more(empty_folder: Path, command: str, allow: str, deny: str) -> None:
    call = Calls(empty_folder).bash(command)
    strength = {Allow: 0, Ask: 1, Deny: 2}

    async def decide(denied: tuple[str, ...]) -> int:
        return strength[type(await gate(allow=(allow,), deny=denied).before_tool(call))]

    assert anyio.run(decide, (deny,)) >= anyio.run(decide, ())


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
@pytest.mark.parametrize("tool", ["Rename", "LSP"])
async def test_closed_file_is_not_shown_by_a_tool_that_changes_it(calls: Calls, tool: str, mode: str) -> None:
    denied = gate(mode, deny=("Read(/secret/**)",), allow=("Edit", tool))

    assert isinstance(await denied.before_tool(calls.write("a.py", "secret/k.py", name=tool)), Deny)
    assert isinstance(await denied.before_tool(calls.write("a.py", name=tool)), Allow)


async def test_search_that_shows_denied_files_is_opened_by_no_flag(calls: Calls) -> None:
    (calls.root / "secret").mkdir()
    (calls.root / "secret" / "k.py").write_text("x")

    denied, asked = [
        await gate(**{kind: ("Read(/secret/**)",)}).before_tool(calls.read(".", name="Grep"))
        for kind in ("deny", "ask")
    ]

    assert isinstance(denied, Ask)
    assert isinstance(asked, Ask)
    assert (denied.is_protected, asked.is_protected) == (True, False)
