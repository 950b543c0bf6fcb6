"""Rules for commands, against command lines that stand in an argument or a setting of another command."""

import pytest

from panpan.types.permission import Allow, Deny
from tests.fakes.every_tool import FolderGate
from tests.permissions.folder import Project, bash

RULES = """[permission]
allow = ["Bash(*)"]
deny = ["Bash(git push *)", "Bash(nc *)"]
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> FolderGate:
    return Project(tmp_path_factory.mktemp("gate")).gate(RULES)


@pytest.mark.parametrize(
    "line",
    ["git -c alias.x='!git push' x", "git submodule foreach 'git push'", "git bisect run git push",
     "git rebase -x 'git push' main", "git rebase --exec='git push' main", "make SHELL='git push'",
     "rsync -e 'nc h 1' a h:", "rsync --rsh='nc h 1' a h:", "ssh -o ProxyCommand='nc h 1' h", "env -S'git push'",
     "env --split-string='git push'", "env -S 'git push'"],
)  # fmt: skip
def test_denied_command_is_found_inside_another(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line), Deny), line


@pytest.mark.parametrize("line", ["git -c alias.x=status x", "make SHELL=bash", "rsync -e ssh a h:", "git rebase main"])
def test_other_command_inside_another_runs(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line), Allow), line
