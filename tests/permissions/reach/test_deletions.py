"""Commands that take folders away: only a person lets go of the home, the workspace and what is protected."""

import subprocess
from pathlib import Path

import pytest

from panpan.permissions.reach import deletions as deletions
from panpan.types.permission import Allow, Ask
from tests.fakes.every_tool import FolderGate
from tests.needed_programs import need
from tests.permissions.folder import Project, bash


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A workspace in the home, with protected names in it and below."""
    monkeypatch.setenv("HOME", str(tmp_path))
    project = Project(tmp_path)
    for name in (
        ".ssh/id_rsa", "project/.env", "project/.git/config", "project/build/a.o", "project/sub/deep/.envrc",
        "project/node_modules/p/.github/workflows/ci.yml", "project/.venv/lib/site-packages/p.pth", "project/x.pem",
        "project/src/x.py", "project/certs/server.key", "other/README",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return project


@pytest.fixture
def gate(project: Project) -> FolderGate:
    return project.gate()


HOME = [
    "rm -rf ~", "rm -rf ~/", 'rm -rf "$HOME"', "rm -rf ${HOME}", "rm -fr -- $HOME", "mv ~ /tmp/x",
    "mv -t /tmp ~", "find ~ -delete", "find $HOME -type f -exec rm {} +", "sudo rm -rf ~",
    "timeout 5 rm -rf ~", "/bin/rm -rf ~", "sh -c 'rm -rf ~'", "bash -c 'cd src && rm -rf $HOME'",
    "eval 'rm -rf ~'", "echo ~ | xargs rm -rf", "chmod -R 777 ~", "chown -R root ~",
    "rsync -a --delete src/ ~/", "X=1 rm -rf ~", "make; rm -rf ~ &", "for d in a; do rm -rf ~; done",
    "rm -rf {src,~}", "cd ~ && rm -rf .", "cd $HOME; rm -rf *", "cd && rm -rf ./*", "(cd ~; rm -rf -- *)",
    "rm -rf ${HOME:?}", "rm -rf ${HOME%/}/", "rsync -a --remove-source-files ~ host:/srv",
]  # fmt: skip
WORKSPACE = [
    "rm -rf .", "rm -rf ./", "rm -rf ../project", 'rm -rf "$PWD"', "rm -rf $(pwd)",
    "cd .. && rm -rf project", "cd src && rm -rf ..", "find . -delete", "find -delete",
    "find . -exec rm -rf {} +", "find . | xargs rm", "find . -type f -print0 | xargs -0 rm -f", "mv . /tmp/x",
    "rm -rf ../proj*", "rm -rf $PWD/../project",
]  # fmt: skip
ABOVE = [
    "rm -rf ..", "rm -rf ../..", "rm -rf /", "rm -rf /*", "find / -delete", "rm -rf ~/..",
    "rm -rf $HOME/..",
]  # fmt: skip
HELD = [
    "rm -rf sub", "rm -rf sub/*", "rm -rf s*", "rm -rf ~/.*", "rm -rf ~/.ssh", "rm -rf $HOME/.ssh/",
    "mv sub /tmp/x", "find sub -delete", "find src sub -type f -delete", "find . -name .env -delete",
    "find . -name config -delete", "find . -iname '.E*' -delete", "find . -path '*/deep/*' -delete",
    "find . ! -name '*.py' -delete", "find . -name '*.py' -o -name .env -delete",
    "find . -exec sed -i s/a/b/ {} +", "find . -maxdepth 2 -type f -delete", "echo 'a sub' | xargs rm -r",
    "printf '%s\\n' sub | xargs rm -r", "printf '.git/config' | xargs touch", "echo .env x | xargs -n1 frob",
    "git clean -xfd", "git clean -fdX", "git -C sub clean -ffdx", "git clean -fdx sub", "git clean -f -e x",
    "rm -rf certs x.pem",
]  # fmt: skip
ORDINARY = [
    "rsync -a --delete ./ host:/srv", "rsync -a --delete . build/", "cd src && rm -rf *", "cd build && rm -rf ./*",
    "rm -rf build", "rm -rf build/*", "rm -rf build src", "rm -rf node_modules", "rm -rf .venv",
    "rm -r certs", "rm -rf nowhere", "rm -rf $X", "rm -rf ~/other", "rm -rf ~/other/*", "mv build sub",
    "mv src/x.py ..", "find . -name '*.pyc' -delete", "find build -delete",
    "find . -type d -name __pycache__ -exec rm -rf {} +", "find . -path './build/*' -delete",
    "find . -name '*.py' | xargs sed -i s/a/b/", "find node_modules -delete",
    "find . -maxdepth 1 -type d -name 'b*' -exec rm -rf {} +", "git clean -nxd", "git clean -xfd build",
    "git clean --dry-run -x", "chmod 700 ~", "chmod -R u+w src", "rsync -a src/ ~/other", "touch ~",
    "ls ~ | wc -l", "mkdir -p ..", "cp -r src ..", "echo build | xargs rm -rf", "sh -c 'rm -rf build'",
    "git commit -m clean", "git mv src/x.py src/y.py", "tar cf x.tar .", "make clean", "rm link", "frob ~",
    "rm -f -- -x",
]  # fmt: skip


@pytest.mark.parametrize("line", [*HOME, *WORKSPACE, *ABOVE, *HELD])
def test_deletion_of_protected_places_needs_a_person(gate: FolderGate, line: str) -> None:
    decision = bash(gate, line, "bypassPermissions")

    assert isinstance(decision, Ask), line
    assert decision.is_protected
    assert decision.reason.kind == "protected"
    assert decision.reason.path


@pytest.mark.parametrize("line", ORDINARY)
def test_deletion_of_ordinary_folders_is_not_asked_about(gate: FolderGate, project: Project, line: str) -> None:
    (project.root / "link").symlink_to(project.root / "sub")

    assert isinstance(bash(gate, line, "bypassPermissions"), Allow), line


@pytest.mark.parametrize(
    ("line", "what"),
    [("rm -rf ~", "your home folder and the workspace"), ("rm -rf .", "the workspace"), ("rm -rf sub", "")],
)
def test_deletion_reason_names_the_lost_places(gate: FolderGate, project: Project, line: str, what: str) -> None:
    reason = bash(gate, line, "bypassPermissions").reason

    if what:
        assert reason.text == f"{reason.path} is protected, since it holds {what}"
    else:
        assert reason.path == str(project.root / "sub" / "deep" / ".envrc")


def test_deletion_question_is_not_answered_by_an_allow_rule(project: Project) -> None:
    decision = bash(project.gate('[permission]\nallow = ["Bash(rm *)", "Edit(~/**)"]'), "rm -rf ~")

    assert isinstance(decision, Ask)
    assert decision.is_protected
    assert decision.rule is None


def test_deletion_lookup_is_bounded_and_takes_near_places_first(
    project: Project, gate: FolderGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.root / "many"
    for number in range(20):
        (folder / f"sub{number}").mkdir(parents=True)
    (folder / "sub0" / ".env").touch()
    monkeypatch.setattr(deletions, "MAX_ENTRIES", 20)
    assert isinstance(bash(gate, "rm -rf many", "bypassPermissions"), Allow)

    (folder / "sub0" / ".env").rename(folder / "sub0.env")
    (folder / "sub0").rmdir()
    (folder / "sub0.env").rename(folder / ".env")

    assert isinstance(bash(gate, "rm -rf many", "bypassPermissions"), Ask)


@pytest.mark.parametrize(
    "line", ["git clean -xfd", "git clean -fd", "cd src && git clean -xfd ..", "git -C src clean -f"]
)
def test_git_clean_leaves_tracked_files(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need("git")
    monkeypatch.setenv("HOME", str(tmp_path))
    project = Project(tmp_path)

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(project.root), *words], check=True, capture_output=True, timeout=30)

    git("init", "-q")
    for name in (".github/workflows/ci.yml", "src/.env", ".vscode/tasks.json"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text("x")
    git("add", "-A")
    gate = project.gate()
    assert isinstance(bash(gate, line, "bypassPermissions"), Allow)

    (project.root / "src" / ".netrc").touch()

    decision = bash(gate, line, "bypassPermissions")
    assert isinstance(decision, Ask)
    assert decision.reason.path == str(project.root / "src" / ".netrc")


@pytest.mark.parametrize(
    "wrap", ["{}", "sudo {}", "nice -n 5 {}", "env A=1 {}", "true && {}", "({})", "{} ; make", "! {}"]
)
def test_deletion_is_found_in_any_wrapper(gate: FolderGate, wrap: str) -> None:
    for line in ("rm -rf ~", "find . -delete", "git clean -xfd"):
        assert isinstance(bash(gate, wrap.format(line), "bypassPermissions"), Ask)


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf ~+", "rm -rf ~+/sub", "cd src && rm -rf ~-", 'cd src && rm -rf "$OLDPWD"',
        "find .. -name project -exec rm -rf {} +", "find . -name sub -exec rm -rf {} +",
        "find . -name deep | xargs rm -rf", "find -L link -delete", "find -H link -name .envrc -delete",
        "cd src && git clean -fdx ':/'", "git clean -fdx '*'", "git clean -fdx ':(glob)**'", "git clean -fdx ':^a'",
        "echo 'rm -rf ~' | bash", "echo rm -rf ~ | sh", "su -c 'rm -rf ~'", "script -c 'rm -rf ~' /dev/null",
        "trap 'rm -rf ~' EXIT", "bash <<< 'rm -rf ~'", "xargs rm -rf <<< .git",
        "env -S'rm -rf .'", "env --split-string='rm -rf .'", "env -S 'rm -rf .'",
    ],
)  # fmt: skip
def test_deletion_by_another_name_asks_too(gate: FolderGate, project: Project, line: str) -> None:
    (project.root / "link").symlink_to("sub")

    assert isinstance(bash(gate, line, "bypassPermissions"), Ask), line


@pytest.mark.parametrize(
    "line", ["find . -name src -exec rm -rf {} +", "find .. -name other -exec rm -rf {} +", "find link -delete",
             "git clean -fd src", "echo rm -rf src | sh", "rm -rf ~+/src", "env -S'rm -rf src'"],
)  # fmt: skip
def test_deletion_without_protected_places_runs(gate: FolderGate, project: Project, line: str) -> None:
    (project.root / "link").symlink_to("sub")

    assert isinstance(bash(gate, line, "bypassPermissions"), Allow), line
