"""Digests are those of `sha256sum`, bounded, and never read twice."""

import os
import socket
import threading
import time
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from hypothesis import given
from hypothesis import strategies as st

from panpan.receipts.digests import MB, PARTS_BYTES, FileDigests, file_digest, path_of

TB = 1_000_000 * MB


def digests_of_later() -> FileDigests:
    """Return digests for which each change is a second old."""
    return FileDigests(lambda: time.time_ns() + 1_000_000_000)


@given(st.binary(max_size=5_000))
def test_digest_of_small_files_is_that_of_sha256sum(data: bytes) -> None:
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        content = FileDigests().read(Path(file.name).resolve())
    assert (content.sha256, content.size, content.how) == (sha256(data).hexdigest(), len(data), "whole")
    assert content.head == data[:16]


def test_file_of_half_a_terabyte_is_digested_by_parts(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(TB // 2)
    digests = FileDigests()
    content = digests.read(path)
    assert content.how == "parts"
    assert content.size == TB // 2
    assert digests.bytes_read == PARTS_BYTES


def test_parts_show_changes_of_size_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1_000 * MB)
    seen = {FileDigests().read(path).sha256}
    for at, size in ((0, 1_000 * MB), (1_000 * MB - 1, 1_000 * MB), (0, 1_000 * MB + 1)):
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"x")
            file.truncate(size)
        seen.add(FileDigests().read(path).sha256)
    assert len(seen) == 4


def test_unchanged_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1_000)
    digests = digests_of_later()
    first = digests.read(path)
    assert digests.read(path) == first
    assert digests.bytes_read == 1_000


def test_file_that_has_just_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    digests = FileDigests()
    for number in range(20):  # all within a tick of the clock, perhaps
        path.write_bytes(b"%02d" % number)
        assert digests.read(path).sha256 == sha256(b"%02d" % number).hexdigest()


def test_content_with_the_old_times_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    digests = digests_of_later()
    digests.read(path)
    status = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digests.read(path).sha256 == sha256(b"two").hexdigest()


def test_budget_turns_files_into_parts_and_leaves_out_the_rest(tmp_path: Path) -> None:
    paths = []
    for number in range(4):
        path = tmp_path / str(number)
        path.write_bytes(bytes(2 * PARTS_BYTES))
        paths.append(str(path))
    found = FileDigests().read_all(paths, most_bytes=4 * PARTS_BYTES)
    assert [found[path].how for path in paths] == ["whole", "whole", "left out", "left out"]
    found = FileDigests().read_all(paths, most_bytes=3 * PARTS_BYTES)
    assert [found[path].how for path in paths] == ["whole", "parts", "left out", "left out"]


def test_fifos_sockets_and_links_are_left_out_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(tmp_path, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{here}/socket")
        finally:
            os.close(here)
        for name in ("fifo", "link", "socket", "."):
            assert FileDigests().read(tmp_path / name).how in ("left out", "gone")
            assert not FileDigests().read(tmp_path / name).sha256


def test_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    (tmp_path / "inside").symlink_to("outside")
    assert FileDigests().read(tmp_path / "inside" / "secret").how == "gone"


def test_missing_file_is_gone(tmp_path: Path) -> None:
    assert FileDigests().read(tmp_path / "a").how == "gone"
    assert FileDigests().read(tmp_path / "b" / "a").how == "gone"


def test_file_that_grows_while_it_is_read_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(50 * MB))
    ends = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            while not ends.wait(0.0001):
                file.write(b"x")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        found = {FileDigests().read(path).how for _ in range(3)}
    finally:
        ends.set()
        writer.join()
    assert "changed" in found


@given(
    st.binary(min_size=1, max_size=50).filter(lambda name: not set(name) & {0, ord("/")} and name not in (b".", b".."))
)
def test_names_that_are_no_text_are_found_again(name: bytes) -> None:
    top = Path("/nowhere")
    path = top / os.fsdecode(name)
    stored = file_digest(str(path), FileDigests().read(path), str(top))
    stored.model_dump_json()
    again = path_of(stored, top)
    if b"\\x" not in name:
        assert again == path
