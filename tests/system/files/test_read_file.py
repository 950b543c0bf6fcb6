import os
import socket
from pathlib import Path

import pytest

from panpan.errors import ToolError
from panpan.system.files.read_file import open_regular_file, read_regular_file


def test_the_bytes_are_returned_as_they_are(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\0\xff"
    (tmp_path / "file").write_bytes(data)

    assert read_regular_file(tmp_path / "file", max_bytes=100) == data


def test_a_file_of_exactly_the_limit_is_read_and_one_more_byte_is_not(tmp_path: Path) -> None:
    (tmp_path / "fits").write_bytes(b"x" * 10)
    (tmp_path / "larger").write_bytes(b"x" * 11)

    assert read_regular_file(tmp_path / "fits", max_bytes=10) == b"x" * 10
    with pytest.raises(ToolError, match="is too large: 11 bytes"):
        read_regular_file(tmp_path / "larger", max_bytes=10)


def test_files_that_claim_no_size_are_bounded_too() -> None:
    status = Path(f"/proc/{os.getpid()}/status")

    assert read_regular_file(status, max_bytes=100_000).startswith(b"Name:")
    with pytest.raises(ToolError, match="is too large: more than 10 bytes"):
        read_regular_file(status, max_bytes=10)


def test_links_are_followed_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")

    assert read_regular_file(tmp_path / "link", max_bytes=10, follow_symlinks=True) == b"x"


@pytest.mark.parametrize("way", ["link", "folder/file", "work/folder/file"])
def test_no_link_is_followed_unless_it_is_wanted(way: str, tmp_path: Path) -> None:
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


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
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
def test_everything_else_is_refused_by_name(path: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        read_regular_file(Path(path), max_bytes=10)


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))

        with pytest.raises(ToolError, match="is a socket"):
            read_regular_file(tmp_path / "socket", max_bytes=10)


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(ToolError, match="loop of links"):
        read_regular_file(tmp_path / "loop", max_bytes=10, follow_symlinks=True)


def test_a_file_that_is_opened_is_read_in_parts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")

    with open_regular_file(tmp_path / "a") as stream:
        stream.seek(4)
        part = stream.read(3)

    assert part == b"456"


def test_what_is_no_regular_file_is_not_opened_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(ToolError, match="is a FIFO"):
        open_regular_file(tmp_path / "fifo")
    with pytest.raises(ToolError, match="does not exist"):
        open_regular_file(tmp_path / "none")
