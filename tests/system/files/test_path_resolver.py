import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.files.canonical import MAX_LINKS, canonical_path
from panpan.system.files.paths import PathResolver
from panpan.system.text.terminal_text import printable


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def root(home: Path) -> Path:
    folder = home / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print()\n")
    return folder


@pytest.fixture
def paths(root: Path, home: Path) -> PathResolver:
    return PathResolver(root, home=home)


@pytest.mark.parametrize(
    ("text", "relative"),
    [
        ("src/main.py", "src/main.py"),
        ("./src//main.py", "src/main.py"),
        ("src/../src/main.py", "src/main.py"),
        ("new/deep/file.txt", "new/deep/file.txt"),
        ("missing/../file.txt", "file.txt"),
        (".", "."),
        ("..work", "..work"),
        ("~nobody-of-this-name/x", "~nobody-of-this-name/x"),
        ("with blank ", "with blank "),
        ("line\nbreak", "line\nbreak"),
        ("src/main.py/", "src/main.py"),
    ],
)
def test_workspace_paths_are_inside(text: str, relative: str, paths: PathResolver, root: Path) -> None:
    location = paths.locate(text)

    assert location.path == root / relative
    assert location.is_inside
    assert location.is_readable


@pytest.mark.parametrize(
    "text",
    ["..", "../", "../other", "/etc/passwd", "src/../../other", "~", "~/other", "../work-too/file", "/", "//etc"],
)  # fmt: skip
def test_paths_that_leave_the_workspace_are_outside(text: str, paths: PathResolver) -> None:
    location = paths.locate(text)

    assert not location.is_inside
    assert not location.is_readable
    for access in ("read", "write"):
        with pytest.raises(ToolError, match="is outside the workspace"):
            paths.resolve(text, access=access)  # type: ignore[arg-type]


def test_tilde_is_the_home(paths: PathResolver, home: Path) -> None:
    assert paths.locate("~").path == home
    assert paths.locate("~/x/../y").path == home / "y"
    assert paths.locate("~/work/src").is_inside


def test_links_are_followed_anywhere_in_a_path(paths: PathResolver, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "folder-link").symlink_to(outside)
    (root / "relative-link").symlink_to("../../outside/file")
    (root / "chain").symlink_to("folder-link/deeper")
    (root / "inner").symlink_to("src")

    assert paths.locate("folder-link").path == outside
    assert paths.locate("folder-link/not/there").path == outside / "not/there"
    assert not paths.locate("folder-link/not/there").is_inside
    assert not paths.locate("relative-link").is_inside
    assert not paths.locate("chain/x").is_inside
    assert paths.locate("inner/main.py").path == root / "src/main.py"


def test_dots_after_a_link_belong_to_its_target(paths: PathResolver, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (root / "link").symlink_to(tmp_path / "outside" / "deep")

    location = paths.locate("link/../secret")

    assert location.path == tmp_path / "outside" / "secret"
    assert not location.is_inside


def test_link_from_outside_may_lead_inside(paths: PathResolver, root: Path, tmp_path: Path) -> None:
    (tmp_path / "way-in").symlink_to(root)

    assert paths.locate(str(tmp_path / "way-in" / "src")).path == root / "src"
    assert paths.locate(str(tmp_path / "way-in" / "src")).is_inside


def test_workspace_named_through_a_link_is_canonical(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)

    paths = PathResolver(tmp_path / "alias")

    assert paths.root == paths.cwd == root
    assert paths.locate(str(tmp_path / "alias" / "x")).is_inside


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the path is empty"),
        ("a\0b", "NUL"),
        ("x" * 300, "is too long"),
        ("x/" * 3000, "is too long"),
        ("a\ud800", "characters that no file name can have"),
        ("loop", "loop of links"),
        ("loop/below", "loop of links"),
        ("there/../there/x", "loop of links"),
    ],
)
def test_unusable_path_is_refused(text: str, said: str, paths: PathResolver, root: Path) -> None:
    (root / "loop").symlink_to("loop")
    (root / "there").symlink_to("back")
    (root / "back").symlink_to("there")

    with pytest.raises(ToolError, match=said):
        paths.locate(text)


def test_links_are_followed_as_far_as_the_kernel_does(paths: PathResolver, root: Path) -> None:
    (root / "link-0").write_text("end")
    for number in range(1, MAX_LINKS + 2):
        (root / f"link-{number}").symlink_to(f"link-{number - 1}")

    assert paths.locate(f"link-{MAX_LINKS}").path == root / "link-0"
    assert (root / f"link-{MAX_LINKS}").read_text() == "end"
    with pytest.raises(ToolError, match="loop of links"):
        paths.locate(f"link-{MAX_LINKS + 1}")
    with pytest.raises(OSError, match="symbolic links"):
        (root / f"link-{MAX_LINKS + 1}").read_text()


def test_extra_roots_are_inside_and_readable_roots_only_read(root: Path, tmp_path: Path) -> None:
    for name in ("extra", "readable"):
        (tmp_path / name).mkdir()
    paths = PathResolver(root, extra_roots=[tmp_path / "extra"], readable_roots=[tmp_path / "readable"])

    assert paths.resolve(f"{tmp_path}/extra/x", access="write") == tmp_path / "extra/x"
    assert paths.resolve(f"{tmp_path}/readable/x", access="read") == tmp_path / "readable/x"
    with pytest.raises(ToolError, match="is outside the workspace"):
        paths.resolve(f"{tmp_path}/readable/x", access="write")


def test_approved_paths_are_accepted_in_that_view_only(paths: PathResolver, tmp_path: Path) -> None:
    view = paths.approving(frozenset({tmp_path / "open"}))

    assert view.resolve(f"{tmp_path}/open", access="write") == tmp_path / "open"
    assert view.resolve(f"{tmp_path}/open/x/y", access="read") == tmp_path / "open/x/y"
    for text in (f"{tmp_path}/opener", f"{tmp_path}/open/../x"):
        with pytest.raises(ToolError):
            view.resolve(text, access="read")
    with pytest.raises(ToolError):
        paths.resolve(f"{tmp_path}/open", access="read")


def test_views_of_views_keep_approved_paths(paths: PathResolver, tmp_path: Path) -> None:
    view = paths.approving(frozenset({tmp_path / "one"})).approving(frozenset({tmp_path / "two"}))

    assert view.resolve(f"{tmp_path}/one", access="read") == tmp_path / "one"
    assert view.resolve(f"{tmp_path}/two", access="read") == tmp_path / "two"


def test_protected_files_are_read_and_written_only_if_approved(paths: PathResolver, root: Path) -> None:
    hook = ".git/hooks/pre-commit"

    assert paths.resolve(hook, access="read") == root / hook
    with pytest.raises(ToolError, match="is protected"):
        paths.resolve(hook, access="write")
    assert paths.approving(frozenset({root / hook})).resolve(hook, access="write") == root / hook
    assert paths.approving(frozenset({root / ".git"})).resolve(hook, access="write") == root / hook


def test_approved_folder_does_not_open_its_protected_files(paths: PathResolver, root: Path) -> None:
    view = paths.approving(frozenset({root, root / "src"}))

    assert view.resolve("src/x", access="write") == root / "src/x"
    with pytest.raises(ToolError, match="is protected"):
        view.resolve("src/.git/config", access="write")


def test_working_directory_is_shared_by_all_views(paths: PathResolver, root: Path) -> None:
    view = paths.approving(frozenset())

    view.change_directory(root / "src")

    assert paths.cwd == view.cwd == root / "src"
    assert paths.locate("main.py").path == root / "src/main.py"
    assert paths.root == root


@pytest.mark.parametrize(("target", "said"), [("gone", "is not a folder"), ("src/main.py", "is not a folder")])
def test_working_directory_is_a_folder(target: str, said: str, paths: PathResolver, root: Path) -> None:
    with pytest.raises(ToolError, match=said):
        paths.change_directory(root / target)

    assert paths.cwd == root


def test_working_directory_stays_inside_unless_approved(paths: PathResolver, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is outside the workspace"):
        paths.change_directory(tmp_path)
    paths.approving(frozenset({tmp_path})).change_directory(tmp_path)

    assert paths.cwd == tmp_path


def test_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is not a folder"):
        PathResolver(tmp_path / "missing")


def test_paths_are_shown_as_short_as_possible(paths: PathResolver, root: Path, home: Path) -> None:
    assert paths.shown(root / "src" / "main.py") == "src/main.py"
    assert paths.shown(root) == "."
    assert paths.shown(home / "notes") == "~/notes"
    assert paths.shown(home) == "~"
    assert paths.shown(Path("/etc/passwd")) == "/etc/passwd"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search every folder")
def test_unsearchable_folder_is_not_guessed_at(paths: PathResolver, root: Path) -> None:
    (root / "closed").mkdir(mode=0)

    with pytest.raises(ToolError, match=r"cannot follow .*/closed/x: Permission denied"):
        paths.locate("closed/x")


def test_path_below_a_file_is_missing_and_inside(paths: PathResolver, root: Path) -> None:
    (root / "file.txt").write_text("x")
    (root / "through-file").symlink_to("file.txt/below")

    location = paths.locate("through-file")

    assert location.path == root / "file.txt/below"
    assert location.is_inside


NAMES = ["a", "b", "c", ".git", "link1", "link2", "link3"]
TARGETS = [
    "a",
    "b/c",
    "..",
    "../..",
    "/",
    "../outside",
    "link1",
    "link2/a",
    "../work/b",
    ".",
    "a/../../outside/x",
    "/etc",
]


@given(
    links=st.lists(st.tuples(st.sampled_from(["link1", "link2", "a/link1", "b/link2"]), st.sampled_from(TARGETS))),
    folders=st.lists(st.sampled_from(["a", "b", "b/c", "a/b"])),
    parts=st.lists(st.sampled_from([*NAMES, "..", "..", ".", "", "work", "outside"]), min_size=1, max_size=8),
    is_absolute=st.booleans(),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_location_agrees_with_the_kernel_for_any_path(
    links: list[tuple[str, str]], folders: list[str], parts: list[str], is_absolute: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        base = Path(os.path.realpath(name))
        root = base / "work"
        (base / "outside").mkdir()
        root.mkdir()
        for folder in folders:
            (root / folder).mkdir(parents=True, exist_ok=True)
        for link, target in links:
            place = root / link
            if place.parent.is_dir() and not os.path.lexists(place):
                place.symlink_to(target)
        text = "/".join(parts) or "."
        if is_absolute or text.startswith("/"):
            text = f"{root}/{text}"

        try:
            location = PathResolver(root, home=base).locate(text)
        except ToolError:
            # only a loop is refused, and the kernel refuses it, too
            with pytest.raises((OSError, RuntimeError)):
                os.stat(text if is_absolute else f"{root}/{text}")  # noqa: PTH116 - Path would tidy the text
            return

        # then: what comes out has no link left in it, and says rightly whether it is inside
        assert os.path.realpath(location.path) == str(location.path)
        assert location.is_inside == (os.path.commonpath([location.path, root]) == str(root))
        # and: where the kernel finds something, it is the same thing
        written = text if text.startswith("/") else f"{root}/{text}"
        if os.path.exists(written):  # noqa: PTH110
            assert os.path.samefile(written, location.path)  # noqa: PTH121


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems hold names in UTF-8 alone")
def test_non_utf_8_name_is_found_by_its_shown_form(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / name).write_text("x")

    found = PathResolver(tmp_path).resolve(printable(name), access="read")

    assert printable(name) == r"caf\udce9.txt"
    assert found == tmp_path.resolve() / name


def test_kept_folder_is_protected_around_the_roots_in_it(home: Path) -> None:
    kept = home / "campaign"
    root, extra = kept / "state" / "attempt-1" / "workspace", kept / "state" / "attempt-1" / "venv"
    for folder in (root, extra):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(kept / "tasks.jsonl")
    paths = PathResolver(root, extra_roots=(extra, kept), kept_roots=(kept,), home=home)

    free = ("a.py", "../workspace/a.py", f"{extra}/bin/python")
    closed = (f"{kept}/campaign.toml", "../result.json", "../../attempt-2/workspace/a.py", "link", str(kept), "..")
    assert [paths.locate(text).protection for text in free] == [None] * len(free)
    assert all("protected_directories" in (paths.locate(text).protection or "") for text in closed)
    assert not any(paths.locate(text).is_secret for text in closed), "all of it may be read"
    with pytest.raises(ToolError, match="is protected"):
        paths.resolve("link", access="write")


def test_copy_of_the_workspace_in_a_kept_folder_is_free(root: Path, home: Path) -> None:
    copy = home / "kept" / "copy"
    copy.mkdir(parents=True)
    paths = PathResolver(root, kept_roots=(home / "kept",), home=home).for_copy(copy)

    assert paths.locate("a.py").protection is None
    assert paths.locate("../a.py").protection is not None


def test_workspace_that_is_kept_itself_is_protected_as_a_whole(root: Path, home: Path) -> None:
    assert PathResolver(root, kept_roots=(root,), home=home).locate("src/main.py").is_protected


def test_absolute_path_needs_no_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert canonical_path(tmp_path / "file") == tmp_path.resolve() / "file"
