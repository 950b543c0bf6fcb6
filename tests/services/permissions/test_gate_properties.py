"""What must hold of the gate's decisions whatever the call: more care never allows more, and no spelling gets round."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.services.permissions.gate import PermissionGate
from panpan.services.permissions.opening import FolderGate
from panpan.services.permissions.rules import RuleSource
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode
from tests.services.permissions.folder import Project, bash

OPENNESS = {Deny: 0, Ask: 1, Allow: 2}
MODES: list[PermissionMode] = ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
COMMANDS = [
    "ls", "cat a.py", "git status", "git push", "npm run build", "npm run x; rm -rf y", "echo hi > a", "cp a b",
    "cp a ../b", "rm x", "cat .env", "cat /etc/hosts", "make", "$X y", "cd src && git log", "git -C sub push",
    "ls | xargs rm", "find . -name a -delete", "sed -i s/a/b/ c", "echo x > .git/config",
]  # fmt: skip
RULES = [
    "Bash", "Bash(rm *)", "Bash(git *)", "Bash(git push)", "Bash(npm run *)", "Bash(npm run build)", "Bash(cp *)",
    "Bash(ls)", "Bash(* y)", "Bash(cat a.py)", "Bash(make)", "Edit", "Edit(/a)", "Edit(/**)", "Read(/a.py)",
    "Read(//etc/**)", "Read(.env)", "Edit(//**)", "Bash(cd src && git log)",
]  # fmt: skip
anything = st.lists(st.sampled_from(RULES), max_size=4, unique=True).map(tuple)
few = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FolderGate]:
    project = Project(tmp_path_factory.mktemp("gate"))
    (project.root / "src").mkdir()
    return project.gate()


def decision(folder: FolderGate, command: str, mode: PermissionMode, **rules: tuple[str, ...]) -> Decision:
    folder.gate = PermissionGate([RuleSource("the test", True, **rules)], mode=mode)
    return bash(folder, command, mode)


def openness(found: Decision) -> int:
    return OPENNESS[type(found)]


@few
@given(st.sampled_from(COMMANDS), st.sampled_from(MODES), anything, anything, anything, st.sampled_from(RULES))
def test_one_more_rule_that_denies_or_asks_never_opens_anything(
    folder: FolderGate,
    command: str,
    mode: PermissionMode,
    allow: tuple[str, ...],
    ask: tuple[str, ...],
    deny: tuple[str, ...],
    more: str,
) -> None:
    before = decision(folder, command, mode, allow=allow, ask=ask, deny=deny)

    assert openness(decision(folder, command, mode, allow=allow, ask=ask, deny=(*deny, more))) <= openness(before)
    assert openness(decision(folder, command, mode, allow=allow, ask=(*ask, more), deny=deny)) <= openness(before)


@few
@given(st.sampled_from(COMMANDS), st.sampled_from(MODES), anything, anything, anything)
def test_the_order_of_rules_decides_nothing(
    folder: FolderGate,
    command: str,
    mode: PermissionMode,
    allow: tuple[str, ...],
    ask: tuple[str, ...],
    deny: tuple[str, ...],
) -> None:
    before = decision(folder, command, mode, allow=allow, ask=ask, deny=deny)
    after = decision(folder, command, mode, allow=allow[::-1], ask=ask[::-1], deny=deny[::-1])

    assert openness(after) == openness(before)


def _quoted(command: str, at: int) -> str:
    """The command with one letter of a word in quotes, which means the same to a shell."""
    letters = [position for position, char in enumerate(command) if char.isalpha() and command[position - 1] != "$"]
    position = letters[at % len(letters)]
    return f"{command[:position]}'{command[position]}'{command[position + 1 :]}"


SPELLINGS = {
    "blanks": lambda command, at: f" \t{command}  ",
    "quotes": _quoted,
    "backslash": lambda command, at: "\\" + command if command[0].isalpha() else command,
    "subshell": lambda command, at: f"({command})",
    "group": lambda command, at: f"{{ {command}; }}",
    "substitution": lambda command, at: f"echo $({command})",
    "backquotes": lambda command, at: f"echo `{command}`",
    "shell": lambda command, at: "bash -c '" + command.replace("'", "'\\''") + "'",
    "eval": lambda command, at: "eval '" + command.replace("'", "'\\''") + "'",
    "env": lambda command, at: f"env {command}",
    "assignment": lambda command, at: f"A=1 {command}",
    "sudo": lambda command, at: f"sudo {command}",
    "timeout": lambda command, at: f"timeout 5 {command}",
    "behind": lambda command, at: f"ls && {command}",
    "before": lambda command, at: f"{command} ; ls",
    "pipe": lambda command, at: f"cat a.py | {command}",
    "line": lambda command, at: f"ls\n{command}",
    "negation": lambda command, at: f"! {command}",
    "branch": lambda command, at: f"if ls; then {command}; fi",
    "function": lambda command, at: f"f() {{ {command}; }}; f",
    "background": lambda command, at: f"{command} & ls",
    "continued": lambda command, at: command.replace(" ", " \\\n", 1),
}


@settings(few, max_examples=400)
@given(
    st.sampled_from(COMMANDS),
    st.sampled_from(sorted(SPELLINGS)),
    st.integers(0, 30),
    st.sampled_from(MODES),
    anything,
    anything,
    anything,
)
def test_no_spelling_and_no_wrapper_turns_a_refusal_into_an_allowance(
    folder: FolderGate,
    command: str,
    spelling: str,
    at: int,
    mode: PermissionMode,
    allow: tuple[str, ...],
    ask: tuple[str, ...],
    deny: tuple[str, ...],
) -> None:
    if set(allow) & {"Bash", "Bash(* y)"} or mode == "bypassPermissions":
        allow, mode = (), "default"  # who allows every command allows wrappers, too
    plain = decision(folder, command, mode, allow=allow, ask=ask, deny=deny)
    spelled = SPELLINGS[spelling](command, at)

    respelled = decision(folder, spelled, mode, allow=allow, ask=ask, deny=deny)

    if not isinstance(plain, Allow):
        assert not isinstance(respelled, Allow), (spelled, respelled)


@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
def test_a_rule_that_denies_a_line_of_several_commands_holds_for_every_spelling_of_it(
    folder: FolderGate, spelling: str
) -> None:
    line = SPELLINGS[spelling]("cd src&& git  log", 0)

    assert isinstance(decision(folder, line, "bypassPermissions", deny=("Bash(cd src && git log)",)), Deny), line


@settings(few, max_examples=200)
@given(st.sampled_from(COMMANDS), st.sampled_from(sorted(SPELLINGS)), st.integers(0, 30))
def test_a_command_that_is_denied_never_runs_unasked_although_everything_is_allowed(
    folder: FolderGate, command: str, spelling: str, at: int
) -> None:
    program = command.split()[0]
    if program == "$X":
        return
    spelled = SPELLINGS[spelling](command, at)

    found = decision(folder, spelled, "bypassPermissions", allow=("Bash",), deny=(f"Bash({program} *)",))

    assert not isinstance(found, Allow), spelled
