"""Pipes and devices among what a command would read."""

import os
from pathlib import Path

import pytest

from panpan.types.permission import Allow, Ask
from tests.permissions.folder import Project, bash


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    (project.root / "src").mkdir()
    (project.root / "a.txt").write_text("x")
    os.mkfifo(project.root / "src/pipe")
    (project.root / "link").symlink_to("src/pipe")
    return project


@pytest.mark.parametrize(
    "line",
    [
        "cat src/pipe", "cat a.txt src/pipe", "cat link", "head -1 src/pipe", "cd src && cat pipe", "cat src/*",
        "cat < src/pipe", "ls < link", "find src -exec cat {} +", "find . | xargs wc -l", "ls src/pipe; cat src/pipe",
        "diff src/pipe a.txt", "grep x src/pipe", "md5sum src/p*",
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["default", "plan", "acceptEdits"])
def test_command_that_would_wait_at_a_pipe_asks(project: Project, line: str, mode: str) -> None:
    found = bash(project.gate(), line, mode)  # type: ignore[arg-type]

    assert isinstance(found, Ask), line
    assert found.reason.text == (
        f"{project.root}/src/pipe is a named pipe, and a command that reads it may wait, or go on, without an end"
    )
    assert found.reason.path == f"{project.root}/src/pipe"


@pytest.mark.parametrize(
    "line",
    [
        "ls src/pipe", "ls -la src", "stat src/pipe", "test -p src/pipe", "file src/pipe", "find src -type p",
        "ls src/*", "cat a.txt", "cat *.txt", "grep -rn x src", "rg x", "du -sh src", "git status",
        "find . -name '*.txt' | xargs cat",
        "find src -exec ls -l {} +", "readlink link",
    ],
)  # fmt: skip
def test_command_that_opens_no_pipe_runs(project: Project, line: str) -> None:
    assert isinstance(bash(project.gate(), line, "plan"), Allow), line


def test_pipe_is_opened_by_a_rule_or_an_unasking_mode(project: Project) -> None:
    assert isinstance(bash(project.gate(), "cat src/pipe", "bypassPermissions"), Allow)
    assert isinstance(bash(project.gate('[permission]\nallow = ["Bash(cat *)"]\n'), "cat src/pipe"), Allow)


def test_readable_device_asks_too(project: Project) -> None:
    gate = project.gate('[permission]\nallow = ["Read(//dev/**)"]\n')

    found = bash(gate, "cat /dev/zero")

    assert isinstance(found, Ask)
    assert "/dev/zero is a device" in found.reason.text
    assert isinstance(bash(gate, "cat /dev/null"), Allow)
