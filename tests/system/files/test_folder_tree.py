"""Tests of private folders and of trees of folders."""

import os
import re
import stat
import sys
from pathlib import Path

import pytest

import panpan
from panpan.errors import ConfigError
from panpan.system.files.folder_tree import (
    make_folders,
    make_private_folder,
    open_private_file,
    remove_tree,
    temporary_folder,
    walk,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_folders_are_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700


def test_private_folder_closes_itself_and_not_its_parents(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "a" / "b").chmod(0o777)

    make_private_folder(tmp_path / "a" / "b")

    assert mode_of(tmp_path / "a") == 0o755
    assert mode_of(tmp_path / "a" / "b") == 0o700


def test_private_folder_follows_a_link_to_an_own_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")

    make_private_folder(tmp_path / "link")

    assert mode_of(tmp_path / "real") == 0o700


def test_private_folder_leaves_a_shared_folder(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)

    with pytest.raises(ConfigError, match="users share"):
        make_private_folder(tmp_path / "shared")

    assert mode_of(tmp_path / "shared") == 0o1777


def test_private_folder_refuses_anything_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to("missing")

    for path in ("file", "file/below", "nowhere"):
        with pytest.raises(ConfigError):
            make_private_folder(tmp_path / path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give folders away")
def test_private_folder_refuses_a_folder_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 1234, 1234)

    with pytest.raises(ConfigError, match="belongs to another user"):
        make_private_folder(tmp_path / "theirs")


def test_private_file_is_closed_to_others_even_if_it_was_open(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    (tmp_path / "old").chmod(0o644)

    for name in ("old", "new"):
        os.close(open_private_file(tmp_path / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND))

    assert mode_of(tmp_path / "old") == mode_of(tmp_path / "new") == 0o600
    assert (tmp_path / "old").read_text() == "x"


def test_private_file_descriptor_is_not_inherited_and_blocks(tmp_path: Path) -> None:
    fd = open_private_file(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        assert not os.get_inheritable(fd)
        assert os.get_blocking(fd)
    finally:
        os.close(fd)


def test_private_file_refuses_links_and_special_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(OSError, match="symbolic links"):
        open_private_file(tmp_path / "link", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(ConfigError, match="is not a regular file"):
        open_private_file(tmp_path / "fifo", os.O_RDWR)

    assert not (tmp_path / "target").exists()


PACKAGE = Path(panpan.__file__).parent
DEPTH = 5000
"""Deeper than Python recurses, than descriptors can be open, and than a path can be long."""


def make_deep(folder: Path, depth: int = DEPTH, *, mode: int = 0o777, name: str = "d") -> None:
    """Make nested folders, each tenth with a file; deeper than a path can say."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for number in range(depth):
        os.mkdir(name, dir_fd=here)
        if number % 10 == 0:
            os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.fchmod(here, mode)
        os.close(here)
        here = below
    os.close(here)


def test_remove_tree_removes_5000_levels_with_few_descriptors(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    make_deep(top)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0  # noqa: PTH208

    remove_tree(top)

    assert list(tmp_path.iterdir()) == []
    assert sys.platform != "linux" or len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_remove_tree_removes_links_and_not_their_targets(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    (top / "in").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("kept")
    (top / "folder").symlink_to(outside)
    (top / "in" / "file").symlink_to(outside / "file")
    (tmp_path / "link").symlink_to(outside)

    remove_tree(top)
    with pytest.raises(OSError, match="Not a directory"):
        remove_tree(tmp_path / "link")

    assert (outside / "file").read_text() == "kept"
    assert not top.exists()


@pytest.mark.parametrize("mode", [0o000, 0o555, 0o600])
def test_remove_tree_removes_closed_folders(mode: int, tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "in" / "below").mkdir(parents=True)
    (top / "in" / "file").touch()
    (top / "in").chmod(mode)

    remove_tree("top", dir_fd=os.open(tmp_path, os.O_RDONLY))

    assert not top.exists()


def test_remove_tree_raises_for_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "none")


def test_walk_goes_as_deep_as_paths_can(tmp_path: Path) -> None:
    make_deep(tmp_path)

    found = list(walk(tmp_path))

    assert 1000 < len(found) <= DEPTH
    assert found[0] == (str(tmp_path), ["d"], ["file"])
    assert found[1] == (f"{tmp_path}/d", ["d"], [])
    remove_tree(tmp_path / "d")


def test_make_folders_makes_all_missing_ones(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 1500)

    make_folders(deep)
    make_folders(deep)

    assert deep.is_dir()
    remove_tree(tmp_path / "d")


def test_temporary_folder_is_removed_with_its_contents() -> None:
    with temporary_folder("panpan-test-") as folder:
        make_deep(folder, 1500)

    assert not folder.exists()


def test_package_never_recurses_over_folders() -> None:
    recursive = re.compile(r"rmtree|os\.walk|os\.fwalk|makedirs|copytree|\.rglob\(|\.glob\(\"[^)]*\*\*")
    found = {
        str(path.relative_to(PACKAGE)): recursive.findall(path.read_text())
        for path in PACKAGE.rglob("*.py")
        if path.name != "folder_tree.py"
    }

    assert {path: names for path, names in found.items() if names} == {
        "cli/demo_command.py": ["copytree"],  # of panpan's own files
        "cli/daemon/server.py": [".rglob(", "makedirs"],  # its own files; the folder of its socket
    }
