"""acceptEdits allows commands that make empty files and folders in the workspace, and none that remove."""

import pytest

from panpan.types.permission import Allow, Ask, Deny
from tests.fakes.every_tool import FolderGate
from tests.permissions.folder import Project, bash


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("gate"))
    (project.root / "src").mkdir()
    (project.root / "out").symlink_to(project.root.parent)
    (project.root / ".env").write_text("KEY=1")
    return project


@pytest.fixture(scope="module")
def gate(project: Project) -> FolderGate:
    return project.gate()


@pytest.mark.parametrize(
    "line",
    [
        "mkdir a",
        "mkdir -p a/b src/c",
        "touch src/x.py",
        "mkdir -p tests && touch tests/__init__.py",
        "mkdir -m 700 a; cd a && touch b",
        "mkdir -p src/{a,b}",
        "/bin/mkdir a",
        "test -d a || mkdir a",
        "echo made && mkdir a",
    ],
)
def test_accept_edits_makes_empty_files_and_folders_unasked(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line, "acceptEdits"), Allow)
    assert isinstance(bash(gate, line, "default"), Ask)
    assert isinstance(bash(gate, line, "plan"), Deny)
    assert isinstance(bash(gate, line, "dontAsk"), Deny)


@pytest.mark.parametrize(
    "line",
    [
        "mkdir ../a",
        "mkdir /tmp/a",
        "mkdir ~/a",
        "mkdir out/a",
        "cd out; mkdir a",
        "cd $X; mkdir a",
        "mkdir .git/hooks",
        "mkdir .github/workflows",
        "touch .bashrc",
        "touch .env",
        "touch -r .env a",
        "touch $X",
        "touch *",
        "mkdir a > b",
        "sudo mkdir a",
        "PATH=. mkdir a",
        "env X=1 mkdir a",
        "./mkdir a",
        "mkdir a &",
        "(mkdir a) &",
        "mkdir $(ls)",
        "ls | xargs mkdir",
        "find . -exec touch {} +",
        "mkdir a && rm -r src",
        "mkdir a && make",
        "mkdir a; rmdir src",
        "mkdir a && mv src a",
        "mkdir a && cp src/x a",
        "mkdir a; sed -i s/a/b/ src/x",
        "mkdir a; : > src/x",
        "mkdir a; grep -r KEY .",
        "mkdir a; rg KEY",
        "mkdir a; cat .e*",
        "mkdir a; find . -type f | xargs cat",
        "mkdir a; cat .env",
        "mkdir a; cat /etc/hosts",
        "mkdir a; git log",
        "ln -s /etc a",
        "mkfifo a",
        "install -d a",
        "tee a",
    ],
)
def test_accept_edits_asks_about_everything_else(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line, "acceptEdits"), Ask), line


def test_accept_edits_stays_in_the_workspace(project: Project) -> None:
    gate = project.gate('[permission]\nexternal_directory = "allow"\n')

    assert isinstance(bash(gate, "mkdir ../a", "acceptEdits"), Ask)


@pytest.mark.parametrize("rule", ["Bash(mkdir *)", "Edit(/src/**)"])
def test_accept_edits_obeys_restricting_rules(project: Project, rule: str) -> None:
    denying = project.gate(f'[permission]\ndeny = ["{rule}"]\n')
    asking = project.gate(f'[permission]\nask = ["{rule}"]\n')

    assert isinstance(bash(denying, "mkdir src/a", "acceptEdits"), Deny)
    assert isinstance(bash(asking, "mkdir src/a", "acceptEdits"), Ask)
