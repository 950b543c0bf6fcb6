"""The box in which a command runs, by mode: what runs unasked where the sandbox holds it, and what is asked still."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from panpan.core.effects import Command, Effects
from panpan.core.hooks import ToolCall
from panpan.core.tool_call import combine_decisions
from panpan.permissions.gate import PermissionGate
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.events import Output
from panpan.types.permission import Allow, Ask, Box, Decision, Deny, PermissionMode, Reason, SandboxDenial
from tests.fakes.sandboxes import none_works, works, works_without_sealing
from tests.permissions.folder import Project, bash, decide
from tests.permissions.gate_calls import Calls

EXPLORING = (
    "ls -la", "pwd", "cat README.md", "head -50 a.py", "tail -n 20 a.py", "wc -l *.py", "tree -L 2", "du -sh .",
    "find . -name '*.py'", "find . -name '*.py' | xargs wc -l", "find . -type f | head", "file a.py", "stat a.py",
    "grep -rn TODO .", "grep -rn 'def main' --include='*.py' .", "rg TODO", "git status", "git log --oneline -5",
    "git diff", "git diff HEAD~1 --stat", "git show HEAD", "git branch -a", "git remote -v", "git blame a.py",
    "git rev-parse HEAD", "echo $HOME", 'echo "$PWD"', 'cat "$PWD/README.md"', "awk '{print $1}' a.txt",
    "awk -F, 'NR > 1 {s += $3} END {print s / NR}' data.csv", "sed -n '10,20p' a.py",
    "cut -d, -f1 data.csv | sort | uniq -c",
    "for f in *.py; do wc -l \"$f\"; done", "for i in $(seq 1 3); do echo $i; done", 'wc -c <<< "hello"',
    "if [ -f setup.py ]; then cat setup.py; fi", "[[ -d src ]] && ls src", "while read -r x; do echo $x; done < a.txt",
    'n=$(wc -l < a.txt); echo "$n lines"', 'echo "$(git rev-parse HEAD)"', "diff <(sort a.txt) <(sort b.txt)",
    "cat <<X\nhello\nX", "python --version", "which python", "uname -a", "nproc", "free -h", "df -h", "ps aux", "env",
    "pip list", "pip list | grep -i numpy", "pip show numpy", "python -m pip freeze", "npm ls", "make -n",
    "pytest --collect-only", "python -m pytest --collect-only -q", "nvidia-smi", "timeout 5 awk 1 a.txt",
)  # fmt: skip
"""Commands that models and people type to find their way in a project."""


def boxed_call(root: Path, command: str, narrowest_box: Box = "looking") -> ToolCall:
    """Return a call of a tool that can run a command in a box as narrow as this."""
    call = Calls(root).bash(command)
    context = replace(call.context, sandbox=CommandSandbox(is_on=True, find=works))
    return replace(call, context=context, effects=Effects(commands=[Command(command, narrowest_box=narrowest_box)]))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def box_of(decision: Decision) -> str:
    """Return the box of an allowance, and what else was decided as its name."""
    return decision.box if isinstance(decision, Allow) else type(decision).__name__


def test_sixty_exploring_commands_run_unasked(project: Project) -> None:
    gate = project.gate(find=works)

    assert len(EXPLORING) == 60
    for mode in ("default", "plan", "auto"):
        assert [line for line in EXPLORING if not isinstance(bash(gate, line, mode), Allow)] == []


ACTING = ("make", "python train.py", "./run.sh", "$PROGRAM", "pytest", "cp a b", "bash -c 'ls $x'")


@pytest.mark.parametrize("command", ACTING)
def test_auto_alone_runs_a_command_that_may_write_unasked(project: Project, command: str) -> None:
    gate = project.gate(find=works)

    assert box_of(bash(gate, command)) == "Ask"
    assert box_of(bash(gate, command, "acceptEdits")) == "Ask"
    assert box_of(bash(gate, command, "dontAsk")) == "Deny"
    assert box_of(bash(gate, command, "auto")) == "unasked"


@pytest.mark.parametrize("command", ["make", "python -c 'print(1)'", "$PROGRAM", "(", "eval x", "sleep 1 & ls"])
def test_plan_mode_seals_unknown_commands(project: Project, command: str) -> None:
    assert box_of(bash(project.gate(find=works), command, "plan")) == "looking"


@pytest.mark.parametrize(
    "command",
    ["make > out.txt", "rm a.py", "sed -i s/a/b/ a.py", "git commit -m x", "pip install x", "curl https://x.org"],
)
def test_plan_mode_denies_commands_known_to_change(project: Project, command: str) -> None:
    assert box_of(bash(project.gate(find=works), command, "plan")) == "Deny"


NEEDS_MORE = {
    "git commit -m x": "changes .git",
    "pip install lamp": "fetches",
    "curl https://example.org/x": "fetches",
    "echo x > .git/config": "protected",
    "cat ../other/a.txt": "outside",
    "cp a.py /srv/x": "outside",
}


@pytest.mark.parametrize("command", NEEDS_MORE)
def test_auto_asks_about_needs_beyond_the_sandbox(project: Project, command: str) -> None:
    assert box_of(bash(project.gate(find=works), command, "auto")) == "Ask"


@pytest.mark.parametrize("sandbox", ["network", "off"])
def test_auto_asks_before_a_command_leaves_the_sandbox(project: Project, sandbox: str) -> None:
    found = decide(project.gate(find=works), "Bash", {"command": "make", "sandbox": sandbox}, "auto")

    assert isinstance(found, Ask)
    assert found.is_protected


def test_auto_changes_files_of_the_workspace_only(project: Project) -> None:
    gate = project.gate(find=works)

    assert box_of(decide(gate, "Write", {"file_path": "a.py", "content": "x"}, "auto")) == "usual"
    assert box_of(decide(gate, "Write", {"file_path": "/srv/a.py", "content": "x"}, "auto")) == "Ask"
    assert box_of(decide(gate, "Write", {"file_path": ".env", "content": "x"}, "auto")) == "Ask"


@pytest.mark.parametrize("mode", ["default", "auto", "plan"])
def test_deny_and_ask_rules_hold_in_every_box(project: Project, mode: PermissionMode) -> None:
    gate = project.gate('permission.deny = ["Bash(awk *)"]\npermission.ask = ["Bash(make *)"]', find=works)

    assert isinstance(bash(gate, "awk 1 a.txt", mode), Deny)
    assert not isinstance(bash(gate, "make x", mode), Allow)
    assert isinstance(bash(gate, "for f in *; do awk 1 $f; done", mode), Deny)


def test_allow_rule_of_the_user_gives_the_usual_box(project: Project) -> None:
    gate = project.gate('permission.allow = ["Bash(make *)", "Bash(awk *)"]', find=works)

    assert [box_of(bash(gate, line, "auto")) for line in ("make x", "awk 1 a.txt")] == ["usual", "usual"]
    assert box_of(bash(gate, "make x", "plan")) == "looking"


def test_background_command_is_never_sealed(project: Project) -> None:
    gate = project.gate(find=works)
    call = {"command": "make", "run_in_background": True}

    assert [box_of(decide(gate, "Bash", call, mode)) for mode in ("plan", "auto")] == ["Deny", "unasked"]


def test_sandbox_without_sealing_widens_auto_only(project: Project) -> None:
    gate = project.gate(find=works_without_sealing)

    assert [box_of(bash(gate, "make", mode)) for mode in ("default", "plan", "auto")] == ["Ask", "Deny", "unasked"]
    assert box_of(bash(gate, "awk 1 a.txt")) == "Ask"


def test_missing_sandbox_lets_nothing_more_run(project: Project) -> None:
    gate = project.gate(find=none_works)

    assert [box_of(bash(gate, "make", mode)) for mode in ("default", "plan", "auto")] == ["Ask", "Deny", "Ask"]
    assert box_of(bash(gate, "awk 1 a.txt", "auto")) == "Ask"


def test_auto_asks_about_a_tool_that_needs_the_usual_box(project: Project) -> None:
    call = boxed_call(project.root, "make", narrowest_box="usual")

    assert isinstance(anyio.run(PermissionGate(mode="auto").before_tool, call), Ask)


async def test_look_that_failed_in_its_box_is_asked_about_next_time(tmp_path: Path) -> None:
    call = boxed_call(tmp_path, "awk '1 > \"new\"' a.txt")
    gate = PermissionGate()
    first = await gate.before_tool(call)
    assert box_of(first) == "looking"

    sealed = replace(call, context=replace(call.context, box="looking"))
    await gate.after_tool(sealed, Output("awk: cannot open new", is_error=True))

    assert box_of(await gate.before_tool(call)) == "Ask"


@pytest.mark.parametrize("command", ["python3 x.py ~/.bashrc", 'cat ~/.ssh/id_rsa; ls "$HOME"'])
def test_yes_in_plan_mode_opens_a_place_and_not_the_box(project: Project, command: str) -> None:
    found = bash(project.gate(find=works), command, "plan")

    assert isinstance(found, Ask)
    assert found.box == "looking"
    assert found.offer.bounds == "sandboxed · writes nothing · no network"
    assert found.approved_paths or "~/.ssh" in command


def test_question_of_another_hook_keeps_the_box() -> None:
    found = combine_decisions([Allow(Reason("the gate"), box="looking"), Ask(Reason("it comes again"))])

    assert isinstance(found, Ask)
    assert found.box == "looking"


async def test_look_blocked_by_the_sandbox_is_decided_again(project: Project) -> None:
    gate, call = PermissionGate(), boxed_call(project.root, "awk 1 a.txt")
    first = await gate.before_tool(call)
    assert box_of(first) == "looking"

    again = await gate.after_sandbox_denial(
        call, SandboxDenial("the sandbox blocks changes of files", "on", box="looking")
    )
    assert isinstance(again, Ask)
    assert again.box == "usual"

    gate.mode = "auto"
    again = await gate.after_sandbox_denial(
        call, SandboxDenial("the sandbox blocks changes of files", "on", box="looking")
    )
    assert again is not None
    assert box_of(again) == "unasked"


async def test_blocked_command_is_not_rerun_in_plan_mode_or_wider(project: Project) -> None:
    gate, call = PermissionGate(), boxed_call(project.root, "awk 1 a.txt")

    for blocked in (
        SandboxDenial("x", "off", box="usual"),
        SandboxDenial("x", "on", box="usual"),
        SandboxDenial("x", "off", box="unasked"),
    ):
        assert await gate.after_sandbox_denial(call, blocked) is None
    gate.mode = "plan"
    for blocked in (
        SandboxDenial("x", "on", box="looking"),
        SandboxDenial("x", "off", box="unasked"),
        SandboxDenial("x", "network"),
    ):
        assert isinstance(await gate.after_sandbox_denial(call, blocked), Deny), "also where another hook would ask"


async def test_hidden_place_met_by_an_unasked_command_is_asked_about(project: Project) -> None:
    gate, call = PermissionGate(mode="auto"), boxed_call(project.root, "./run.sh", "unasked")

    found = await gate.after_sandbox_denial(
        call, SandboxDenial("the sandbox hides /home/ada/data", "on", box="unasked")
    )

    assert isinstance(found, Ask)
    assert (found.box, found.is_protected) == ("usual", False)
    assert found.offer.bounds == "sandboxed · writes here, not .git · no network"
