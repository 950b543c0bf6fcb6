"""Tests of opening the place that was judged, and no other."""

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from panpan.errors import ToolError
from panpan.system.files.read_file import (
    FOLDER_FLAGS,
    open_below,
    open_regular_file,
    openat2,
    opened_folder,
    read_regular_file,
    set_mode,
    status_of,
    walk_beneath,
)

Way: TypeAlias = Callable[[int, Sequence[str]], int]

needs_openat2 = pytest.mark.skipif(sys.platform != "linux", reason="openat2 is of Linux")


def by_openat2(folder: int, names: Sequence[str]) -> int:
    return openat2(folder, "/".join(names), FOLDER_FLAGS)


@pytest.fixture(params=[pytest.param(by_openat2, marks=needs_openat2), walk_beneath, open_below])
def way(request: pytest.FixtureRequest) -> Way:
    opened: Way = request.param
    return opened


def identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    os.close(fd)
    return status.st_dev, status.st_ino


def test_opened_folder_is_reached_by_its_names(way: Way, tmp_path: Path) -> None:
    (tmp_path / "a" / "bö").mkdir(parents=True)
    status = (tmp_path / "a" / "bö").stat()

    with opened_folder(tmp_path) as folder:
        assert identity(way(folder, ["a", "bö"])) == (status.st_dev, status.st_ino)


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ("link", errno.ELOOP),
        ("link/below", errno.ELOOP),
        ("below/link", errno.ELOOP),
        ("below/link/below", errno.ELOOP),
        ("dangling", errno.ELOOP),
        ("inside", errno.ELOOP),
        ("file", errno.ENOTDIR),
        ("file/below", errno.ENOTDIR),
        ("none", errno.ENOENT),
        ("below/none/below", errno.ENOENT),
    ],
)
def test_opened_folder_refuses_links_and_files_on_the_way(way: Way, names: str, error: int, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "top" / "below").mkdir(parents=True)
    (tmp_path / "top" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top" / "below" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top" / "dangling").symlink_to("nowhere")
    (tmp_path / "top" / "inside").symlink_to("below")
    (tmp_path / "top" / "file").touch()

    with opened_folder(tmp_path / "top") as folder, pytest.raises(OSError) as caught:  # noqa: PT011 - by its number
        way(folder, names.split("/"))

    assert caught.value.errno == error


def test_folder_that_may_not_be_listed_can_be_passed(way: Way, tmp_path: Path) -> None:
    (tmp_path / "closed" / "below").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o100)

    with opened_folder(tmp_path) as folder:
        os.close(way(folder, ["closed", "below"]))


@needs_openat2
def test_openat2_does_not_end_a_path_at_nul(tmp_path: Path) -> None:
    with opened_folder(tmp_path.parent) as folder, pytest.raises(ValueError, match="null byte"):
        openat2(folder, f"{tmp_path.name}\0x", FOLDER_FLAGS)


def test_opened_folder_makes_missing_folders_on_request(tmp_path: Path) -> None:
    with opened_folder(tmp_path / "a" / "b", is_made=True) as folder:
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))

    assert (tmp_path / "a" / "b" / "file").exists()


def test_opened_folder_makes_nothing_unless_requested(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), opened_folder(tmp_path / "a" / "b"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_opened_folder_makes_nothing_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "top" / "sub").mkdir(parents=True)
    (tmp_path / "top" / "sub" / "link").symlink_to(tmp_path / "elsewhere")

    with (
        pytest.raises(OSError, match="a link is in the way"),
        opened_folder(tmp_path / "top" / "sub" / "link" / "new", is_made=True),
    ):
        pass

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_opened_folder_stays_the_same_if_swapped(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "elsewhere").mkdir()

    with opened_folder(tmp_path / "top") as folder:
        (tmp_path / "top").rename(tmp_path / "moved")
        (tmp_path / "top").symlink_to(tmp_path / "elsewhere")
        os.close(open_below(folder, ["made"], is_made=True))

    assert (tmp_path / "moved" / "made").is_dir()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_status_and_mode_are_those_of_the_place_and_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder-link").symlink_to(tmp_path)

    set_mode(tmp_path / "file", 0o640)
    with pytest.raises(OSError, match="a link is in the way"):
        set_mode(tmp_path / "link", 0o777)
    with pytest.raises(OSError, match="a link is in the way"):
        set_mode(tmp_path / "folder-link" / "file", 0o777)

    assert stat.S_IMODE(status_of(tmp_path / "file").st_mode) == 0o640
    assert stat.S_ISLNK(status_of(tmp_path / "link").st_mode)


def test_mode_of_an_unreadable_file_is_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0)

    set_mode(tmp_path / "file", 0o600)

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@needs_openat2
def test_opening_is_as_safe_without_openat2(tmp_path: Path) -> None:
    here = Path(__file__).parent
    files = [here / name for name in ("test_atomic_write.py", "test_read_file.py")]
    chosen = "(link or swapped) and not by_openat2"
    places = f"--basetemp={tmp_path / 'inner'}"  # or it would take away those of other runs, which takes long
    argv = [sys.executable, "-m", "tests.system.files.without_openat2", *map(str, files), "-k", chosen, places]

    ran = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=here.parents[1])

    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout


def test_read_regular_file_returns_the_bytes_unchanged(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\0\xff"
    (tmp_path / "file").write_bytes(data)

    assert read_regular_file(tmp_path / "file", max_bytes=100) == data


def test_read_regular_file_takes_exactly_the_limit(tmp_path: Path) -> None:
    (tmp_path / "fits").write_bytes(b"x" * 10)
    (tmp_path / "larger").write_bytes(b"x" * 11)

    assert read_regular_file(tmp_path / "fits", max_bytes=10) == b"x" * 10
    with pytest.raises(ToolError, match="is too large: 11 bytes"):
        read_regular_file(tmp_path / "larger", max_bytes=10)


def test_read_regular_file_bounds_files_that_claim_no_size() -> None:
    status = Path(f"/proc/{os.getpid()}/status")

    assert read_regular_file(status, max_bytes=100_000).startswith(b"Name:")
    with pytest.raises(ToolError, match="is too large: more than 10 bytes"):
        read_regular_file(status, max_bytes=10)


def test_read_regular_file_follows_links_on_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")

    assert read_regular_file(tmp_path / "link", max_bytes=10, follow_symlinks=True) == b"x"


@pytest.mark.parametrize("way", ["link", "folder/file", "work/folder/file"])
def test_read_regular_file_follows_no_link_unless_requested(way: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"secret")
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to("outside/file")
    (tmp_path / "folder").symlink_to("outside")
    (tmp_path / "work" / "folder").symlink_to(tmp_path / "outside")

    with pytest.raises(ToolError, match="a link"):
        read_regular_file(tmp_path / way, max_bytes=10)
    with pytest.raises(ToolError, match="a link"):
        open_regular_file(tmp_path / way)


def test_read_regular_file_refuses_a_fifo_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")

    for name in ("fifo", "link"):
        with pytest.raises(ToolError, match="is a FIFO, not a regular file"):
            read_regular_file(tmp_path / name, max_bytes=10, follow_symlinks=True)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/dev/zero", "is a device"),
        ("/dev/tty", "is a device"),
        ("/", "is a folder"),
        ("/nowhere/at/all", "/nowhere/at/all does not exist"),
        ("/etc/passwd/below", "cannot read /etc/passwd/below: Not a directory"),
    ],
)
def test_read_regular_file_refuses_other_kinds_by_name(path: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        read_regular_file(Path(path), max_bytes=10)


def test_read_regular_file_refuses_a_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))

        with pytest.raises(ToolError, match="is a socket"):
            read_regular_file(tmp_path / "socket", max_bytes=10)


def test_read_regular_file_refuses_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(ToolError, match="loop of links"):
        read_regular_file(tmp_path / "loop", max_bytes=10, follow_symlinks=True)


def test_open_regular_file_is_read_in_parts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")

    with open_regular_file(tmp_path / "a") as stream:
        stream.seek(4)
        part = stream.read(3)

    assert part == b"456"


def test_open_regular_file_refuses_other_kinds(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(ToolError, match="is a FIFO"):
        open_regular_file(tmp_path / "fifo")
    with pytest.raises(ToolError, match="does not exist"):
        open_regular_file(tmp_path / "none")
