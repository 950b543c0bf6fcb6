"""A rule for Read or Edit, held against every tool that panpan has: none reads or writes past it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from panpan.core.hooks import ToolCall
from panpan.core.tool import Tool
from panpan.types.permission import Allow, Ask, Decision, Deny
from tests.fakes.context import context_in
from tests.fakes.every_tool import every_tool
from tests.permissions.folder import Project


def make_environment(place: Path) -> None:
    """Make what tells of a virtual environment with pip."""
    packages = place / "lib" / "python3.12" / "site-packages" / "pip"
    packages.mkdir(parents=True)
    (packages / "__init__.py").touch()
    (place / "bin").mkdir()
    (place / "bin" / "python").touch(mode=0o755)
    (place / "pyvenv.cfg").touch()


READS: Mapping[str, Mapping[str, object]] = {
    "Read": {"file_path": "secret/s.txt"},
    "LS": {"path": "secret"},
    "Glob": {"pattern": "*", "path": "secret"},
    "Grep": {"pattern": "x", "path": "secret"},
    "Edit": {"file_path": "secret/s.txt", "old_string": "x", "new_string": "y"},
    "MultiEdit": {"file_path": "secret/s.txt", "edits": [{"old_string": "x", "new_string": "y"}]},
    "Patch": {"patch": "--- a/secret/s.txt\n+++ b/secret/s.txt\n@@ -1 +1 @@\n-x\n+y\n"},
    "Rename": {"old_name": "x", "new_name": "y", "file_paths": ["secret/s.txt"]},
    "NotebookEdit": {"file_path": "secret/n.ipynb", "cell": "0", "source": "x"},
    "LSP": {"operation": "symbols", "file_path": "secret/s.py"},
    "Bash": {"command": "cat secret/s.txt"},
    "EnvDoctor": {"environment": "secret"},
    "pip": {"operation": "install", "file": "secret/requirements.txt", "environment": ".venv"},
    "uv": {"operation": "run", "command": ["cat", "secret/s.txt"], "environment": ".venv"},
    "conda": {"operation": "run", "command": ["cat", "secret/s.txt"], "environment": "lab"},
    "pixi": {"operation": "run", "command": ["cat", "secret/s.txt"]},
}
WRITES: Mapping[str, Mapping[str, object]] = {
    "Write": {"file_path": "secret/new", "content": "x"},
    **{name: READS[name] for name in ("Edit", "MultiEdit", "Patch", "Rename", "NotebookEdit")},
    "Bash": {"command": "touch secret/new"},
    "uv": {"operation": "run", "command": ["touch", "secret/new"], "environment": ".venv"},
    "conda": {"operation": "run", "command": ["touch", "secret/new"], "environment": "lab"},
    "pixi": {"operation": "run", "command": ["touch", "secret/new"]},
}
TOUCH_NO_FILES = {
    "WebSearch": "asks a search engine",
    "WebFetch": "asks for a page",
    "Task": "starts an agent, whose calls are decided about by themselves",
    "TaskOutput": "shows what a command of the session printed",
    "TaskStop": "ends a command of the session",
    "AskUserQuestion": "asks the user",
    "EnterPlanMode": "changes the mode",
    "ExitPlanMode": "shows the plan",
    "ReadHistory": "shows what was said",
    "TodoWrite": "keeps a list of the session's own",
}
OF_A_SESSION = {"MergeWorktree", "DatasetDownload"}
"""Tools that name what they touch once there is something to merge or to download."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    files = {"s.txt": "x\n", "n.ipynb": json.dumps(empty), "s.py": "x = 1\n", "requirements.txt": "x\n"}
    (project.root / "secret").mkdir()
    for name, text in files.items():
        (project.root / "secret" / name).write_text(text)
    make_environment(project.root / ".venv")
    (project.root / "lab" / "conda-meta").mkdir(parents=True)
    (project.root / "lab" / "conda-meta" / "history").touch()
    for manager in ("uv", "conda", "pixi"):
        (project.home / manager).touch(mode=0o755)
    (project.root / "pixi.toml").write_text('[workspace]\nname = "x"\nchannels = []\nplatforms = ["linux-64"]\n')
    (project.root / "pyproject.toml").touch()
    return project


def decide(project: Project, rule: str, tool: str, arguments: Mapping[str, object], mode: str = "default") -> Decision:
    """Return the decision on a call with one rule that denies, where package managers are installed."""
    gate = project.gate(f'[permission]\nallow = ["Bash(*)"]\ndeny = ["{rule}"]\n').gate
    gate.mode = mode  # type: ignore[assignment]
    called = next(one for one in every_tool() if one.name == tool)
    ctx = replace(context_in(project.root, tool_use_id="c"), environment={"PATH": str(project.home)})

    async def decided() -> Decision:
        call = await ToolCall.of("c", called, called.input_model.model_validate(arguments), arguments, ctx)
        return await gate.before_tool(call)

    return anyio.run(decided)


def test_every_tool_declares_its_effects() -> None:
    known = {*READS, *WRITES, *TOUCH_NO_FILES, *OF_A_SESSION}

    assert {tool.name for tool in every_tool()} == known
    assert all(type(tool).effects is not Tool.effects for tool in every_tool())


@pytest.mark.parametrize("rule", ["Read", "Read(./secret/**)", "Read(secret)", "Edit", "Edit(./secret/**)"])
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
def test_rules_hold_for_every_tool(project: Project, rule: str, mode: str) -> None:
    for name, arguments in (READS if rule.startswith("Read") else WRITES).items():
        decision = decide(project, rule, name, arguments, mode)

        assert isinstance(decision, Deny | Ask), (name, decision)
        assert decision.reason.rule == rule, (name, decision)


@pytest.mark.parametrize("rule", ["Read(./other/**)", "Edit(./other/**)"])
def test_rule_for_other_files_holds_for_no_tool(project: Project, rule: str) -> None:
    for name, arguments in (READS | WRITES).items():
        assert decide(project, rule, name, arguments, "bypassPermissions").reason.rule != rule, name


@pytest.mark.parametrize("line", ["echo a", "pwd", "true && echo b"])
def test_command_without_files_runs_under_any_path_rule(project: Project, line: str) -> None:
    for rule in ("Read", "Edit"):
        assert isinstance(decide(project, rule, "Bash", {"command": line}), Allow), line


@pytest.mark.parametrize("line", ["make", "python3 x.py", "cat $x", "npm test"])
def test_command_that_may_touch_any_file_asks(project: Project, line: str) -> None:
    for rule in ("Read", "Edit"):
        assert isinstance(decide(project, rule, "Bash", {"command": line}, "bypassPermissions"), Ask), line
