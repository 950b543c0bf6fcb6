"""Searches in a project with an untracked `.env`: those that leave it out run, those that may show it ask."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.permissions.reach.folder_walk import walk_folders
from panpan.system.files.paths import PathResolver
from panpan.text_search.engine import find_ripgrep
from panpan.types.permission import Allow, Ask
from tests.permissions.folder import Project, bash


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "user/.config/git").mkdir(parents=True)
    project = Project(tmp_path / "work")
    for name in ("a.py", ".env", "src/.env", "src/c.py", ".ssh/x.md"):
        (project.root / name).parent.mkdir(exist_ok=True)
        (project.root / name).write_text("KEY=1\n")
    return project


ASKED = [
    "rg -uu KEY", "rg -uuu KEY", "rg -u -u KEY", "rg --unrestricted -u KEY", "rg --hidden KEY", "rg -. KEY",
    "rg -n. KEY src", "rg -g '*' KEY", "rg -g '.e*' KEY", "rg -g .env KEY", "rg -g '*.py' -g '*nv' KEY",
    "rg --iglob '*.ENV' KEY", "rg -tsh KEY", "rg -t all KEY", "rg KEY .env", "rg -l -. KEY | xargs cat",
    "rg --files -. | xargs cat", "grep -rn KEY", "grep -rn KEY src", "grep -rn --include='.e*' KEY",
    "grep -rn --include='*' KEY", "grep -rn --include='*.py' --include='*nv' KEY", "grep -rn --exclude='*.md' KEY",
    "grep -rn --exclude='*.md' --include='*.py' KEY", "grep -rl KEY . | xargs cat", "rg KEY .ssh",
    "find . -type f | xargs cat", "find . -name '*' | xargs cat", "rg --hidden -g '!*.md' KEY",
]  # fmt: skip


@pytest.mark.parametrize("line", ASKED)
@pytest.mark.parametrize("mode", ["default", "plan", "bypassPermissions"])
def test_search_that_may_show_secrets_asks(project: Project, line: str, mode: str) -> None:
    found = bash(project.gate(), line, mode)  # type: ignore[arg-type]

    assert isinstance(found, Ask), line
    assert found.is_protected


ALLOWED = [
    "rg KEY", "rg -u KEY", "rg KEY src", "rg --no-ignore KEY", "rg -g '*.py' KEY", "rg -g '!x' KEY", "rg -tpy KEY",
    "rg -l KEY | xargs cat", "rg --files", "rg --files -uu", "grep -rn --include='*.py' KEY", "rg --files | xargs cat",
]  # fmt: skip


@pytest.mark.parametrize("line", ALLOWED)
@pytest.mark.parametrize("settings", ["", 'deny = ["Read(.env)"]'])
def test_search_that_leaves_secrets_out_runs(project: Project, line: str, settings: str) -> None:
    assert isinstance(bash(project.gate(f"[permission]\n{settings}\n"), line, "plan"), Allow), line


AROUND = ["V=1 {}", "make; {}", "{} > out", "{} &", "for i in 1; do {}; done", "busybox {}", "eval {}"]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("line", ["rg -uu KEY", "grep -rn KEY", "grep -Rn KEY src", "ag KEY"])
def test_search_that_may_show_secrets_asks_in_any_line(project: Project, line: str, around: str) -> None:
    found = bash(project.gate(), around.format(line), "bypassPermissions")

    assert isinstance(found, Ask), line
    assert found.is_protected


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("line", ["rg KEY", "grep -rn --include='*.py' KEY", "cp -r src out", "tar c .", "git add ."])
def test_search_and_copy_without_secrets_run_in_any_line(project: Project, line: str, around: str) -> None:
    assert isinstance(bash(project.gate(), around.format(line), "bypassPermissions"), Allow), line


PLACES = [
    ".gitignore", ".ignore", ".rgignore", "src/.gitignore", "src/.ignore", ".git/info/exclude", "../.gitignore",
    "../../.ignore", "../../user/.config/git/ignore", "../../user/.gitexcludes", "elsewhere/info/exclude",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rule", ["!.env", "!/src/.env", "!.e*", "!*", "\ufeff!.env", "!.[e]nv", "x\n!.env  "])
def test_search_asks_if_an_ignore_file_includes_secrets_again(project: Project, place: str, rule: str) -> None:
    file = project.root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    (project.root / "../../user/.gitconfig").write_text("[core]\n\texcludesFile = ~/.gitexcludes\n")
    if place.startswith("elsewhere"):
        (project.root / ".git").rmdir()
        (project.root / ".git").write_text("gitdir: elsewhere\n")
    gate = project.gate()
    assert isinstance(bash(gate, "rg KEY"), Allow)

    file.write_text(f"{rule}\n")

    assert isinstance(bash(gate, "rg KEY"), Ask)


@pytest.mark.parametrize("rule", ["!.env.example", "!keep", ".env", "# !.env", "x!.env", "!src/", "!.config/"])
def test_search_runs_under_other_rules_of_ignore_files(project: Project, rule: str) -> None:
    (project.root / ".gitignore").write_text(f"{rule}\n")

    assert isinstance(bash(project.gate(), "rg KEY"), Allow)


RULES = [
    "!.env", "!*", "!.*", "!.hid/", "!sub/", "!.hid/**", "!sub/.env", "!/.env", ".hid", "*", "!**", "!.E*", "!.[a-z]*",
    "!{.env,x}", "!*nv", "!\\.env", " !.env", "!.env ", "#!.env", "!.hid/y", "!a.py", "sub",
]  # fmt: skip


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(st.sampled_from(RULES), max_size=3), st.lists(st.sampled_from(RULES), max_size=2))
def test_ripgrep_reaches_nothing_that_the_walk_does_not(
    tmp_path_factory: pytest.TempPathFactory, above: Sequence[str], below: Sequence[str]
) -> None:
    root = tmp_path_factory.mktemp("walked").resolve()
    ripgrep = find_ripgrep(PathResolver(root))
    if ripgrep is None:
        pytest.skip("ripgrep is not installed")
    for name in ("a.py", ".env", ".hid/y", ".hid/.z", "sub/.env", "sub/c", "sub/.d/e"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / ".ignore").write_text("\n".join(above))
    (root / "sub/.ignore").write_text("\n".join(below))

    listed = subprocess.run([ripgrep, "--files"], cwd=root, capture_output=True, text=True, check=False, timeout=20)

    walked = {
        str(Path(entry.path).relative_to(root))
        for _, folders, others in walk_folders([root], leaves_out_hidden=True)
        for entry in (*folders, *others)
    }
    assert set(listed.stdout.splitlines()) <= walked
