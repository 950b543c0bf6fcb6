"""Places from which a repository takes are known, unless they point back."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from panpan.errors import ToolError
from panpan.system.git.git import harmless_git_variables, run_git
from panpan.system.git.git_places import places_elsewhere
from tests.system.git.hostile_repository import git

SECRET = "from the other repository"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return repository(tmp_path.resolve() / "other", SECRET)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return repository(tmp_path.resolve() / "workspace", "own")


def repository(folder: Path, text: str) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "N")
    git(folder, "config", "user.email", "n@example.org")
    (folder / "s.txt").write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", text)
    return folder


def git_file(nested: Path, other: Path) -> None:
    (nested / ".git").write_text(f"gitdir: {os.path.relpath(other / '.git', nested)}\n")


def git_link(nested: Path, other: Path) -> None:
    (nested / ".git").symlink_to(other / ".git")


def common_folder(nested: Path, other: Path) -> None:
    (nested / ".git").mkdir()
    (nested / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (nested / ".git" / "commondir").write_text(f"{other / '.git'}\n")


def worktree_of_somebody_else(nested: Path, other: Path) -> None:
    git(other, "worktree", "add", "-q", "--detach", str(other.parent / "real"))
    (nested / ".git").write_text((other.parent / "real" / ".git").read_text())


def worktree_that_only_says_so(nested: Path, other: Path) -> None:
    entry = nested / "made" / "worktrees" / "x"
    entry.mkdir(parents=True)
    (entry / "HEAD").write_text("ref: refs/heads/main\n")
    (entry / "commondir").write_text(f"{other / '.git'}\n")
    (entry / "gitdir").write_text(f"{nested / '.git'}\n")
    (nested / ".git").write_text(f"gitdir: {entry}\n")


def alternates(nested: Path, other: Path) -> None:
    git(nested, "init", "-q")
    (nested / ".git" / "objects" / "info" / "alternates").write_text(f"# other\n{other / '.git' / 'objects'}\n")


def alternates_of_alternates(nested: Path, other: Path) -> None:
    git(nested, "init", "-q")
    (nested / "objects" / "info").mkdir(parents=True)
    (nested / ".git" / "objects" / "info" / "alternates").write_text("../../objects\n")
    (nested / "objects" / "info" / "alternates").write_text(f"{other / '.git' / 'objects'}\n")


def included_settings(nested: Path, other: Path) -> None:
    git(nested, "init", "-q")
    with (nested / ".git" / "config").open("a") as file:
        file.write(f'[includeIf "gitdir:/"]\n\tpath = "{other / ".git" / "config"}"\n')


NAMED = {
    make.__name__: make
    for make in (
        git_file,
        git_link,
        common_folder,
        worktree_of_somebody_else,
        worktree_that_only_says_so,
        alternates,
        alternates_of_alternates,
        included_settings,
    )
}
LINKS = (
    "packed-refs",
    "refs",
    "objects",
    "info",
    "HEAD",
    "index",
    "logs",
    "rebase-merge",
    "refs/heads/x",
    "refs/heads/lfs",
    "worktrees",
    "worktrees/x/gitdir",
    "worktrees/x/locked",
)


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED.keys())
async def test_what_a_repository_names_elsewhere_is_known_and_not_asked_by_panpan(
    make: Callable[[Path, Path], None], workspace: Path, other: Path
) -> None:
    nested = workspace / "n"
    nested.mkdir()
    make(nested, other)

    found = [place for place in places_elsewhere(nested) if not place.path.is_relative_to(workspace)]

    assert found
    assert all(place.path.is_relative_to(other) and not place.is_link for place in found)
    with pytest.raises(ToolError, match=r"so git was not asked; "):
        await run_git(["log"], cwd=nested)


@pytest.mark.parametrize("name", LINKS)
async def test_a_link_in_the_git_folder_that_leads_out_is_not_followed(name: str, workspace: Path, other: Path) -> None:
    place = workspace / ".git" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        place.rename(other / "moved")
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(other / ".git" / "HEAD")

    with pytest.raises(ToolError, match=r" leads to .*, so git was not asked; "):
        await run_git(["status"], cwd=workspace)
    with pytest.raises(ToolError, match=r" leads to .*, so git was not asked; "):
        await harmless_git_variables([workspace], roots=[workspace])


async def test_real_worktrees_and_submodules_are_asked(workspace: Path, other: Path) -> None:
    worktree = workspace.parent / "worktree"
    git(other, "worktree", "add", "-q", "--detach", str(worktree))
    git(workspace, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")

    for folder in (worktree, workspace / "sub", workspace):
        assert places_elsewhere(folder) == []
        assert (await run_git(["log", "--format=%s"], cwd=folder)).exit_code == 0


async def test_links_and_settings_within_the_work_tree_are_followed(workspace: Path) -> None:
    (workspace / "ours").write_text("[core]\n\tabbrev = 12\n")
    git(workspace, "config", "include.path", "../ours")
    (workspace / ".git" / "info" / "exclude").unlink()
    (workspace / ".git" / "info" / "exclude").symlink_to(workspace / "ours")

    assert len((await run_git(["log", "--format=%h"], cwd=workspace)).stdout.strip()) == 12


async def test_settings_that_name_files_elsewhere_are_laid_over(workspace: Path, other: Path) -> None:
    canary = other / "canary"
    email = git(workspace, "log", "-1", "--format=%ae").strip()
    canary.write_text(f"Other <{email}>\n")
    for key in ("mailmap.file", "diff.orderFile", "core.excludesFile", "core.attributesFile"):
        git(workspace, "config", key, str(canary))
    git(workspace, "config", "mailmap.blob", "HEAD:s.txt")

    shown = await run_git(["log", "--use-mailmap", "--format=%aN"], cwd=workspace)

    assert b"Other" not in shown.stdout
    assert (await run_git(["diff", "HEAD"], cwd=workspace)).exit_code == 0
    assert (await run_git(["shortlog", "-s", "HEAD"], cwd=workspace)).exit_code == 0
    variables = await harmless_git_variables([workspace], roots=[workspace])
    assert not [value for value in variables.values() if str(other) in value]


def _settings_that_lead_to(other: Path, nested: Path) -> dict[str, str]:
    way = os.path.relpath(other / ".git" / "config", nested / ".git")
    return {
        "comment": f"[include]\n\tpath = {way};/../../../workspace/n/.git/own\n",
        "line goes on": f"[include]\n\tpath = own\\\n/../{way}\n",
        "quote in the middle": f'[include]\n\tpath = own/""../{way}\n',
        "section after a value": f"[core]\n\tx = a\\\n[core]\n[include]\n\ty = a\\\n[core]\n\tpath = {way}\n",
        "two sections in a line": f"[core][include]\n\tpath = {way}\n",
        "form feed": f"[include]\n\tpath = own\x0c/../{way}\n",
        "home of a user": "[include]\n\tpath = ~root/.gitconfig\n",
        "behind much": f"#{'x' * 1_000_000}\n[include]\n\tpath = {way}\n",
        "behind many": "".join(f"[include]\n\tpath = {n}\n" for n in range(60)),
    }


@pytest.mark.parametrize("name", _settings_that_lead_to(Path("/a"), Path("/b")))
def test_settings_cannot_hide_a_file_that_they_include(name: str, workspace: Path, other: Path) -> None:
    nested = workspace / "n"
    nested.mkdir()
    git(nested, "init", "-q")
    text = _settings_that_lead_to(other, nested)[name]
    with (nested / ".git" / "config").open("a", newline="") as file:
        file.write(text)
    for own in ("own", "own\x0c"):
        (nested / ".git" / own).mkdir()
    for n in range(60):
        (nested / ".git" / str(n)).write_text(f"[include]\n\tpath = {other / '.git' / 'config'}\n" if n == 0 else "")
    git(other, "config", "other.secret", SECRET)
    if not name.startswith("home"):
        assert SECRET in git(nested, "config", "--includes", "--list")

    assert _is_refused_or_named(nested, workspace)


def _lines_that_lead_to(objects: Path, own: Path) -> dict[str, str]:
    way = os.path.relpath(objects, own)
    return {
        "no comment": f" #x/../{way}\n",
        "escaped": '"' + way.replace(".", "\\056") + '"\n',
        "behind quotes": f'"own"x../{way.removeprefix("../")}\n',
        "form feed": f"own\x0c/../{way}\n",
        "behind much": f"#{'x' * 1_000_000}\n{way}\n",
        "behind many": "".join(f"../{n}\n" for n in range(60)),
    }


@pytest.mark.parametrize("name", _lines_that_lead_to(Path("/a"), Path("/b")))
def test_alternates_cannot_hide_objects_of_others(name: str, workspace: Path, other: Path) -> None:
    nested = workspace / "n"
    nested.mkdir()
    git(nested, "init", "-q")
    objects = nested / ".git" / "objects"
    (objects / "info" / "alternates").write_bytes(
        _lines_that_lead_to(other / ".git" / "objects", objects)[name].encode()
    )
    for own in (" #x", "own", "own\x0c"):
        (objects / own).mkdir()
    for n in range(60):
        info = nested / ".git" / str(n) / "info"
        info.mkdir(parents=True)
        if n == 0:
            (info / "alternates").write_text(f"{other / '.git' / 'objects'}\n")
    commit = git(other, "rev-parse", "HEAD").strip()
    assert SECRET in git(nested, "cat-file", "-p", commit)

    assert _is_refused_or_named(nested, workspace)


def _is_refused_or_named(folder: Path, workspace: Path) -> bool:
    try:
        found = places_elsewhere(folder)
    except ToolError as error:
        return "so git was not asked" in str(error)
    return any(not place.path.is_relative_to(workspace) for place in found)
