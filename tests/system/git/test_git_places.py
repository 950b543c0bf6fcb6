"""Tests of what git takes from elsewhere, and of its index."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.git.git import harmless_git_variables, run_git
from panpan.system.git.git_places import GitIndex, places_elsewhere, read_settings, runs_nothing
from tests.needed_programs import need
from tests.system.git.hostile_repository import git

NAMES = ("a.py", "sub/.env", "sub/deep/x", "long/" + "n" * 200, "uml\u00e4ut")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    need("git")
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True, timeout=30)
    return tmp_path.resolve()


def test_index_has_all_tracked_names(top: Path) -> None:
    index = GitIndex.around(top / "sub" / "deep")

    assert index is not None
    assert all(index.has(top / name) for name in NAMES)


def test_index_names_are_all_tracked_files(top: Path) -> None:
    (top / "later").write_text("x")
    subprocess.run(["git", "-C", str(top), "add", "-N", "later"], check=True, timeout=30)  # an entry with more flags
    index = GitIndex.around(top)

    assert index is not None
    assert sorted(index.names() or ()) == sorted([*NAMES, "later"])


@pytest.mark.parametrize(
    "content",
    [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\1", b"DIRC\0\0\0\4\0\0\0\0", b"XXXX\0\0\0\2\0\0\0\0",
     b"DIRC\0\0\0\2\0\0\0\0link\0\0\0\0", b"DIRC\0\0\0\2\0\0\0\1" + b"x" * 60 + b"\0\5a\0"],
)  # fmt: skip
def test_index_that_is_not_understood_has_no_names(content: bytes) -> None:
    assert GitIndex(Path("/"), content).names() is None


@pytest.mark.parametrize("name", [".env", "py", "a.p", "sub", "deep/x", "b.py", "../a.py"])
def test_index_does_not_have_lookalike_names(top: Path, name: str) -> None:
    index = GitIndex.around(top)

    assert index is not None
    assert not index.has(top / name)


def test_unreadable_index_has_nothing(top: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    git = ["git", "-C", str(top), "update-index", "--index-version", "4"]
    subprocess.run(git, check=True, capture_output=True, timeout=30)
    index = GitIndex.around(top)

    assert index is not None
    assert not index.has(top / "sub" / ".env")
    assert not index.has(Path("/elsewhere"))
    assert GitIndex.around(tmp_path_factory.mktemp("bare")) is None


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
async def test_places_elsewhere_are_known_and_git_does_not_ask_them(
    make: Callable[[Path, Path], None], workspace: Path, other: Path
) -> None:
    nested = workspace / "n"
    nested.mkdir()
    make(nested, other)

    found = [place for place in places_elsewhere(nested) if not place.path.is_relative_to(workspace)]

    assert found
    assert all(place.path.is_relative_to(other) and not place.is_link for place in found)
    with pytest.raises(ToolError, match=r"so git did not run; "):
        await run_git(["log"], cwd=nested)


@pytest.mark.parametrize("name", LINKS)
async def test_link_out_of_the_git_folder_is_not_followed(name: str, workspace: Path, other: Path) -> None:
    place = workspace / ".git" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        place.rename(other / "moved")
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(other / ".git" / "HEAD")

    with pytest.raises(ToolError, match=r" leads to .*, so git did not run; "):
        await run_git(["status"], cwd=workspace)
    with pytest.raises(ToolError, match=r" leads to .*, so git did not run; "):
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


async def test_settings_that_name_files_elsewhere_are_overridden(workspace: Path, other: Path) -> None:
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
        return "so git did not run" in str(error)
    return any(not place.path.is_relative_to(workspace) for place in found)


HEADERS = st.sampled_from([
    "[include]", "[INCLUDE]", "[include ]", '[include ""]', '[include "x"]', "[include.x]", '[includeIf "gitdir:/"]',
    '[includeif "gitdir:/a\\"b]"]', '[includeIf\t"onbranch:\\\\m"]', "[core]", "[core][include]", "[ include]",
    "[include] ; note", "[include]\n", "[in\\\nclude]", '[remote "include"]',
])  # fmt: skip
KEYS = st.sampled_from(["path = ", "Path=", "\tpath\t=", "path", "path =\\\n", "worktree = ", "xpath = ", "p_ath = "])
VALUES = st.lists(
    st.sampled_from([
        "a", "b/c", "../d", ".", " ", "  ", "\t", '"', '"e f"', '" # "', "; note", " # note", "#", "\\\\", '\\"', "\\n",
        "\\t", "\\b", "\\x", "\\", "\\\n", "=", "[include]", "]", "'", "\r", "~", "~/", "\x0c", "\x01", "é", '""',
    ]),
    max_size=6,
).map("".join)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\n# note\n", "\n\n", "", " ", "\\\n"])
LINES = st.one_of(
    HEADERS, st.tuples(KEYS, VALUES, ENDS).map("".join), st.sampled_from(["# [include]\n", ";x\\\n", " "])
)
FILES = st.builds(
    lambda first, lines: first + "".join(lines),
    st.sampled_from(["", "\ufeff", "[include]\n", "[core]\n\tx = y\n"]),
    st.lists(LINES, max_size=6),
)


def settings_of(text: str) -> tuple[list[tuple[str, str | None]] | None, str]:
    """The same as `as_git_reads` has it, and why not."""
    try:
        found = list(read_settings(text))
    except ValueError as exc:
        return None, str(exc)
    names = (".".join(part for part in (one[0] or None, one[1], one[2]) if part is not None) for one in found)
    return [(name, one[3]) for name, one in zip(names, found, strict=True)], ""


def as_git_reads(file: Path) -> list[tuple[str, str | None]] | None:
    """All settings, names and values; None where git refuses the file."""
    line = ["git", "config", "--file", str(file), "--null", "--list"]
    ran = subprocess.run(line, capture_output=True, check=False)
    if ran.returncode:
        return None
    entries = ran.stdout.decode(errors="surrogateescape").split("\0")[:-1]
    return [(name, value if is_given else None) for name, is_given, value in (one.partition("\n") for one in entries)]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES)
def test_settings_are_those_that_git_reads_or_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(text.encode())

    read, refused = settings_of(text)

    assert read == as_git_reads(file) or "has a tab inside" in refused


INCLUDED = {
    "path = own ; note": "own",
    "path = own # note": "own",
    'path = "own" ; note': "own",
    'path = "o;w#n"': "o;w#n",
    'path = ow"n x"\\"y': 'own x"y',
    "path = own\\\\x": "own\\x",
    "path = ow\\\n n": "ow n",
    "path = ~/own": "~/own",
    "path = own\r": "own",
}


@pytest.mark.parametrize("written", INCLUDED)
def test_included_file_is_found_in_any_spelling(tmp_path: Path, written: str) -> None:
    root = tmp_path.resolve()
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(f"[include]\n\t{written}\n", newline="")
    name = INCLUDED[written]

    found = [place.path for place in places_elsewhere(root)]

    assert found == [Path(name).expanduser() if name.startswith("~") else root / ".git" / name]


def test_settings_count_only_if_they_include(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(
        '[difftool "include"]\n\tpath = /a ; b\n[include "x"]\n\tpath = /b\n[core]\n\tpath = /c\n\tworktree = /d\n'
        '[IncludeIf "gitdir:/x"]\n\tPath = /e\n'
    )

    assert [place.path for place in places_elsewhere(root)] == [Path("/e")]


@pytest.mark.parametrize("written", ["path = ~root/x", "path = %(prefix)/x", 'path = "unfinished', "path = a\tb"])
def test_ambiguous_settings_are_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(f"[include]\n\t{written}\n")

    with pytest.raises(ToolError, match=r"so git did not run; "):
        places_elsewhere(tmp_path.resolve())


def new_repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder / ".git"


def test_new_repository_is_known_to_run_nothing(tmp_path: Path) -> None:
    assert runs_nothing(new_repository(tmp_path / "a"))
    clone = tmp_path / "b"
    subprocess.run(["git", "clone", "-q", str(tmp_path / "a"), str(clone)], check=True, stderr=subprocess.DEVNULL)
    assert runs_nothing(clone / ".git")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config", "[core]\n\tfsmonitor = ./x\n"),
        ("config", "[include]\n\tpath = ../evil\n"),
        ("config", '[filter "x"]\n\tclean = ./x\n'),
        ("config", "[alias]\n\tst = !./x\n"),
        ("config", '[remote "origin"]\n\turl = ext::./x\n'),
        ("config", '[branch "main"]\n\tremote = ext::./x\n'),
        ("config", '[remote "origin"]\n\tuploadpack = ./x\n'),
        ("config", "[core\n"),
        ("hooks/post-checkout", "./x"),
        ("commondir", "../evil"),
        ("config.worktree", ""),
        ("modules/x/config", ""),
    ],
)
def test_repository_with_something_to_run_is_known(tmp_path: Path, name: str, text: str) -> None:
    git = new_repository(tmp_path)
    (git / name).parent.mkdir(parents=True, exist_ok=True)
    (git / name).write_text(text)

    assert not runs_nothing(git)


def test_link_to_a_repository_is_none(tmp_path: Path) -> None:
    git = new_repository(tmp_path / "a")
    (tmp_path / ".git").symlink_to(git)
    (git / "config").rename(git / "other")
    (git / "config").symlink_to("other")

    assert not runs_nothing(tmp_path / ".git")
    assert not runs_nothing(git)
