"""Questions about the sandbox: leaving it, using the network in it, and running without one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.files.read import ReadInput, ReadTool
from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.core.hooks import ToolCall
from panpan.errors import ConfigError
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.permissions.subject import subject_of
from panpan.system.sandbox.command_sandbox import CommandSandbox, Domains
from panpan.types.events import Output
from panpan.types.permission import Allow, Ask, Decision, Deny, Opening, SandboxDenial
from tests.fakes.context import context_in
from tests.fakes.every_tool import FolderGate
from tests.fakes.sandboxes import none_works, works, works_with_domains
from tests.permissions.folder import Project


async def decided(
    tmp_path: Path,
    command: str,
    sandbox: CommandSandbox,
    use: str = "on",
    *,
    outside: Sequence[str] = (),
    told: list[str] | None = None,
) -> Decision | None:
    args = BashInput.model_validate({"command": command, "sandbox": use})
    context = replace(context_in(tmp_path), sandbox=sandbox)
    questions = SandboxQuestions(outside, (told if told is not None else []).append)
    return await questions.before_tool(await ToolCall.of("c", BashTool(), args, args.model_dump(), context))


async def test_sandboxed_command_is_not_asked_about(tmp_path: Path) -> None:
    assert await decided(tmp_path, "make", CommandSandbox(is_on=True, find=works)) is None


@pytest.mark.parametrize(("use", "said"), [("network", "with the network"), ("off", "outside the sandbox")])
async def test_leaving_the_sandbox_needs_a_person(tmp_path: Path, use: str, said: str) -> None:
    found = await decided(tmp_path, "ls", CommandSandbox(is_on=True, find=works), use)
    assert isinstance(found, Ask)
    assert found.is_protected
    assert found.rule is None
    assert found.reason.kind == "sandbox"
    assert said in found.reason.text


async def test_full_network_question_names_the_granted_hosts(tmp_path: Path) -> None:
    sandbox = CommandSandbox(
        is_on=True, find=works_with_domains, domains=Domains([f"{name}.org" for name in "abcdefg"])
    )

    found = await decided(tmp_path, "pip download x", sandbox, "network")

    assert isinstance(found, Ask)
    assert 'with sandbox "on" it reaches a.org, b.org, c.org, d.org, e.org (and 2 more)' in found.reason.advice


@pytest.mark.parametrize(("command", "has_advice"), [("pip download x", True), ("make fetch", False)])
async def test_flag_for_single_hosts_comes_with_its_usage(tmp_path: Path, command: str, has_advice: bool) -> None:
    found = await decided(tmp_path, command, CommandSandbox(is_on=True, find=works_with_domains), "network")

    assert isinstance(found, Ask)
    assert ("package-indexes" in found.reason.flags) == has_advice
    assert ('call it with sandbox "on"' in found.reason.advice) == has_advice


@pytest.mark.parametrize(
    ("command", "options", "flags"),
    [
        ("git commit -m x", {}, "--allow-outside 'git commit *'"),
        ("cd sub && git -C x -c a=b add .", {}, "--allow-outside 'cd sub && git -C x -c a=b add .'"),
        ("git status", {}, ""),
        ("git apply x.patch", {}, ""),
        ("npm ci", {}, "--allow-network=package-indexes"),
        ("npm ci", {"has_network": True}, ""),
        ("npm ci", {"domains": Domains(["registry.npmjs.org"])}, ""),
        ("npm run build", {}, ""),
        ("make x", {}, ""),
    ],
)
async def test_sandboxed_command_names_the_flags_it_will_need(
    tmp_path: Path, command: str, options: dict[str, Any], flags: str
) -> None:
    found = await decided(tmp_path, command, CommandSandbox(is_on=True, find=works_with_domains, **options), "on")

    assert (found.reason.flags if isinstance(found, Allow) else "") == flags
    assert not isinstance(found, Ask)


async def test_command_that_may_run_outside_needs_no_more(tmp_path: Path) -> None:
    sandbox = CommandSandbox(is_on=True, find=works)

    found = await decided(tmp_path, "git commit -m x", sandbox, "on", outside=["git commit *"])
    assert isinstance(found, Allow)
    assert found.opening == Opening("off"), "since it would fail in the sandbox"


async def test_path_that_leads_nowhere_is_left_to_the_gate(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    sandbox = CommandSandbox(is_on=True, find=works)

    assert await decided(tmp_path, "touch loop/x", sandbox, "on", outside=["git commit *"]) is None
    assert isinstance(await decided(tmp_path, "touch loop/x", sandbox, "off", outside=["git commit *"]), Ask)


async def test_settings_of_the_user_let_commands_out(tmp_path: Path) -> None:
    sandbox = CommandSandbox(is_on=True, find=works)
    outside = ["git push *"]
    assert await decided(tmp_path, "git push origin main", sandbox, "off", outside=outside) is None
    assert isinstance(await decided(tmp_path, "git pull", sandbox, "off", outside=outside), Ask)
    assert isinstance(await decided(tmp_path, "git push origin main && make", sandbox, "off", outside=outside), Ask)
    with_network = CommandSandbox(is_on=True, has_network=True, find=works)
    assert await decided(tmp_path, "pip download x", with_network, "network") is None


async def test_unreadable_setting_is_an_error() -> None:
    with pytest.raises(ConfigError):
        SandboxQuestions([""])


@pytest.mark.parametrize("use", ["on", "network", "off"])
async def test_missing_sandbox_asks_nothing_and_is_reported_once(tmp_path: Path, use: str) -> None:
    sandbox, told = CommandSandbox(is_on=True, find=none_works), list[str]()

    assert [await decided(tmp_path, "ls", sandbox, use, told=told) for _ in range(2)] == [None, None]
    assert len(told) == 1


@pytest.mark.parametrize("use", ["on", "network", "off"])
async def test_disabled_sandbox_asks_nothing(tmp_path: Path, use: str) -> None:
    assert await decided(tmp_path, "make", CommandSandbox(is_on=False, find=none_works), use) is None


async def test_tools_without_commands_are_ignored(tmp_path: Path) -> None:
    context = replace(context_in(tmp_path), sandbox=CommandSandbox(is_on=True, find=none_works))
    args = ReadInput(file_path="a.txt")
    call = await ToolCall.of("c", ReadTool(), args, args.model_dump(), context)
    assert await SandboxQuestions(()).before_tool(call) is None


async def test_tool_with_an_argument_named_sandbox_is_ignored(tmp_path: Path) -> None:
    class DigInput(ReadInput):
        sandbox: str

    context = replace(context_in(tmp_path), sandbox=CommandSandbox(is_on=True, find=none_works))
    args = DigInput(file_path="a.txt", sandbox="for children")
    call = await ToolCall.of("c", ReadTool(), args, args.model_dump(), context)
    assert await SandboxQuestions(()).before_tool(call) is None


async def judged(tmp_path: Path, **args: str) -> Decision:
    """Return what a folder's gate says, with a sandbox that works."""
    env = {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")}
    places = Locations.find(tmp_path, env)
    gate = FolderGate(tmp_path, load_settings(tmp_path, env, {}, places), places, find=works)
    return (await gate.judge("Bash", args)).decision


async def test_gate_and_sandbox_ask_one_question_with_both_reasons(tmp_path: Path) -> None:
    decision = await judged(tmp_path, command="make", sandbox="off")
    assert isinstance(decision, Ask)
    assert "make runs code" in decision.reason.text
    assert decision.reason.text.endswith("runs outside the sandbox, with all your rights")
    assert (decision.is_protected, decision.rule) == (True, None)
    assert decision.offer.openings == (Opening("off"),), "once: the model may have written what it makes"


async def test_read_only_command_outside_the_sandbox_asks_once(tmp_path: Path) -> None:
    decision = await judged(tmp_path, command="ls", sandbox="off")
    assert isinstance(decision, Ask)
    assert decision.reason.text == "runs outside the sandbox, with all your rights"


async def test_plan_mode_runs_nothing_outside_the_sandbox(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")}
    places = Locations.find(tmp_path, env)
    gate = FolderGate(tmp_path, load_settings(tmp_path, env, {}, places), places, find=works)
    assert isinstance((await gate.judge("Bash", {"command": "ls", "sandbox": "off"}, "plan")).decision, Deny)


@pytest.mark.parametrize(
    ("outside", "line", "is_let_out"),
    [
        (["git commit *"], "git commit -m x", True),
        (["git *"], "git commit -m x", True),
        (["git commit *"], "git push", False),
        (["git add *", "git commit *"], "git add -A && git commit -m x", True),
        (["git commit *"], "git add -A && git commit -m x", False),
        (["cd sub && make"], "cd sub && make", True),
        (["make *"], "make; rm -rf x", False),
        ([], "make", False),
    ],
)
def test_sandbox_knows_commands_that_settings_let_out(
    tmp_path: Path, outside: list[str], line: str, is_let_out: bool
) -> None:
    assert Project(tmp_path).gate(sandbox__outside=outside).sandbox.lets_out(line) is is_let_out


class Kept:
    """Keeps what is to hold for later calls."""

    def __init__(self) -> None:
        self.openings: list[Opening] = []

    async def __call__(self, opening: Opening) -> None:
        self.openings.append(opening)


async def asked(tmp_path: Path, command: str, sandbox: CommandSandbox, kept: Kept | None = None) -> Ask:
    """Return the question where a person can be asked."""
    questions = SandboxQuestions((), can_ask=lambda: True, keep=kept or Kept())
    found = await questions.before_tool(await bash_call(tmp_path, command, sandbox))
    assert isinstance(found, Ask)
    return found


async def bash_call(tmp_path: Path, command: str, sandbox: CommandSandbox) -> ToolCall:
    args = BashInput(command=command)
    context = replace(context_in(tmp_path), sandbox=sandbox)
    return await ToolCall.of("c", BashTool(), args, args.model_dump(), context)


@pytest.mark.parametrize(
    ("command", "openings"),
    [
        ("git commit -m x", [Opening("off", patterns=("git commit *",), rule="Bash(git commit *)"), Opening("on")]),
        (
            "pip install lamp",
            [Opening("network", hosts=("package-indexes",), rule="Bash(pip install lamp)"), Opening("on")],
        ),
        (
            "curl https://example.org/x",
            [Opening("network", hosts=("example.org",), rule="Bash(curl https://example.org/x)"), Opening("on")],
        ),
        ("curl $URL", [Opening("network"), Opening("on")]),
        ("curl http://999.999.1.1/x", [Opening("network"), Opening("on")]),
        ("make && git commit -m x", [Opening("off"), Opening("on")]),
    ],
)
async def test_command_unfit_for_the_sandbox_asks_with_choices(
    tmp_path: Path, command: str, openings: list[Opening]
) -> None:
    found = await asked(tmp_path, command, CommandSandbox(is_on=True, find=works_with_domains))

    assert list(found.offer.openings) == openings
    assert found.is_protected


async def test_always_outside_holds_from_the_next_call_on(tmp_path: Path) -> None:
    sandbox, kept = CommandSandbox(is_on=True, find=works), Kept()
    questions = SandboxQuestions((), can_ask=lambda: True, keep=kept)
    call = await bash_call(tmp_path, "git commit -m x", sandbox)
    found = await questions.before_tool(call)
    assert isinstance(found, Ask)
    assert found.keep is not None

    await found.keep(found.offer.openings[0])

    again = await questions.before_tool(await bash_call(tmp_path, "git commit -m y", sandbox))
    assert isinstance(again, Allow)
    assert again.opening == Opening("off")
    assert kept.openings == [found.offer.openings[0]]


async def test_always_open_hosts_are_not_asked_about_again(tmp_path: Path) -> None:
    sandbox = CommandSandbox(is_on=True, find=works_with_domains)
    found = await asked(tmp_path, "curl https://example.org/x", sandbox)
    assert found.keep is not None

    await found.keep(found.offer.openings[0])

    assert sandbox.domains == ("example.org",)
    questions = SandboxQuestions((), can_ask=lambda: True)
    assert await questions.before_tool(await bash_call(tmp_path, "curl https://example.org/y", sandbox)) is None
    assert isinstance(await asked(tmp_path, "curl https://other.org/y", sandbox), Ask)


def retries(*, asks: bool = True) -> SandboxQuestions:
    return SandboxQuestions((), can_ask=lambda: asks)


@pytest.mark.parametrize(
    ("command", "blocked", "openings"),
    [
        ("make", SandboxDenial("x", "off"), [Opening("off")]),
        ("./tool.sh", SandboxDenial("x", "network"), [Opening("network")]),
        (
            "make",
            SandboxDenial("x", "network", ("files.example.org",)),
            [Opening("network", hosts=("files.example.org",))],
        ),
        (
            "git commit -m x",
            SandboxDenial("x", "off"),
            [Opening("off", patterns=("git commit *",), rule="Bash(git commit *)")],
        ),
    ],
)
async def test_blocked_command_may_run_again_with_its_missing_part(
    tmp_path: Path, command: str, blocked: SandboxDenial, openings: list[Opening]
) -> None:
    call = await bash_call(tmp_path, command, CommandSandbox(is_on=True, find=works_with_domains))

    found = await retries().after_sandbox_denial(call, replace(blocked, box="unasked"))

    assert isinstance(found, Ask)
    assert list(found.offer.openings) == openings
    assert (found.is_protected, found.box) == (True, "unasked"), "no wider box than it had"


async def test_blocked_line_is_not_asked_about_again_after_a_no(tmp_path: Path) -> None:
    questions = retries()
    call = await bash_call(tmp_path, "make", CommandSandbox(is_on=True, find=works))

    assert isinstance(await questions.after_sandbox_denial(call, SandboxDenial("x", "off")), Ask)
    assert await questions.after_sandbox_denial(call, SandboxDenial("x", "off")) is None


async def test_blocked_line_is_asked_about_again_after_it_was_let_out(tmp_path: Path) -> None:
    questions = retries()
    call = await bash_call(tmp_path, "make", CommandSandbox(is_on=True, find=works))

    await questions.after_sandbox_denial(call, SandboxDenial("x", "off"))
    let_out = replace(call, context=replace(call.context, opening=Opening("off")))
    await questions.after_tool(let_out, Output("done"))

    assert isinstance(await questions.after_sandbox_denial(call, SandboxDenial("x", "off")), Ask)


async def test_blocked_command_is_not_rerun_without_a_user(tmp_path: Path) -> None:
    call = await bash_call(tmp_path, "make", CommandSandbox(is_on=True, find=works))

    assert await retries(asks=False).after_sandbox_denial(call, SandboxDenial("x", "off")) is None


@pytest.mark.parametrize(
    ("command", "is_held"),
    [
        ("cd sub && git checkout -b mine", False),
        ("git -C sub commit -am x", False),
        ("cd sub && git add . && git commit -m x", False),
        ("git commit -am x", True),
        ("cd sub && git commit -am x; cd .. && git commit -am y", True),
        ("git --git-dir=.git --work-tree=sub commit -am x", True),
        ("cd sub && git -C .. commit -am x", True),
        ("cd $WHERE && git commit -am x", True),
        ("cd other && git commit -am x", True),
    ],
)
async def test_git_stays_in_the_box_in_a_repository_of_commands(tmp_path: Path, command: str, is_held: bool) -> None:
    sandbox = CommandSandbox(is_on=True, find=works)
    for name in (".git", "sub/.git", "other/.git"):
        (tmp_path / name).mkdir(parents=True)
    given = (tmp_path / "sub" / ".git").lstat()
    sandbox.give_repository(tmp_path / "sub" / ".git", (given.st_dev, given.st_ino))

    call = await bash_call(tmp_path, command, sandbox)
    found = await SandboxQuestions((), can_ask=lambda: True).before_tool(call)

    assert isinstance(found, Ask) is is_held
    assert (await subject_of(call)).may_run_unasked is not is_held


@pytest.mark.parametrize(
    ("folder", "is_let_out"),
    [
        (".", True),
        ("plain", True),
        ("made", False),
        ("made/deep", False),
        ("bare", False),
    ],
)
async def test_git_is_let_out_for_good_in_the_root_repository_alone(
    tmp_path: Path, folder: str, is_let_out: bool
) -> None:
    for name in (".git", "plain", "made/.git", "made/deep", "bare/objects", "bare/refs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bare" / "HEAD").touch()
    sandbox = CommandSandbox(is_on=True, find=works)
    call = await bash_call(tmp_path, "git commit -m x", sandbox)
    call.context.paths.change_directory(tmp_path / folder)

    found = await SandboxQuestions(("git commit *",), can_ask=lambda: True).before_tool(call)

    if is_let_out:
        assert isinstance(found, Allow)
        assert found.opening == Opening("off")
    else:
        assert isinstance(found, Ask), "a command may have made it, with hooks"
        assert not found.offer.openings[0].can_be_kept
