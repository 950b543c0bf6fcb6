import os
import stat
import threading
from pathlib import Path

import pytest

from panpan.system.files.output_store import keep_reading
from panpan.system.text.redact import KnownKeys

KEY = "sk-secret-0123456789"


@pytest.fixture
def pipe() -> tuple[int, int]:
    return os.pipe()


def until_read() -> None:
    """Wait for the threads that read; all writers are gone."""
    for thread in threading.enumerate():
        if thread.name == "panpan-background-output":
            thread.join(10)
            assert not thread.is_alive()


def test_what_is_written_until_the_end_is_in_a_private_file_without_keys(pipe: tuple[int, int], tmp_path: Path) -> None:
    read_fd, write_fd = pipe
    path = tmp_path / "new" / "out.txt"

    place = keep_reading(read_fd, path, KnownKeys([KEY]).stream(), max_bytes=1000)
    for part in (b"one\n", b"key: sk-secret-", b"0123456789\n"):
        os.write(write_fd, part)
    os.close(write_fd)
    until_read()

    assert place == f"goes to {path}"
    assert path.read_bytes() == b"one\nkey: [redacted]\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read_fd)


def test_a_full_file_ends_with_a_note_and_the_writer_goes_on(pipe: tuple[int, int], tmp_path: Path) -> None:
    read_fd, write_fd = pipe
    path = tmp_path / "out.txt"

    keep_reading(read_fd, path, KnownKeys().stream(), max_bytes=10)
    for _ in range(4):
        os.write(write_fd, b"x" * 65_536)  # as much as a pipe holds: each waits for a reader
    os.close(write_fd)
    until_read()

    assert path.read_bytes() == b"x" * 10 + b"\n[the file is full; what comes after this is dropped]\n"


def test_without_a_file_the_output_is_dropped_and_the_writer_goes_on(pipe: tuple[int, int], tmp_path: Path) -> None:
    read_fd, write_fd = pipe
    (tmp_path / "in-the-way").write_text("")

    place = keep_reading(read_fd, tmp_path / "in-the-way" / "out.txt", KnownKeys().stream(), max_bytes=10)
    for _ in range(3):
        os.write(write_fd, b"x" * 65_536)
    os.close(write_fd)
    until_read()

    assert place.startswith("is dropped: ")
