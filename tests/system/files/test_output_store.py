"""Tests of output that is too large for a result."""

import os
import re
import stat
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.system.files.output_store import OutputStore, keep_reading
from panpan.system.text.redact import KnownKeys

NOTE = re.compile(r"\n\n\[([\d,]+) of ([\d,]+) characters left out here; the whole output is in (\S+)\]\n\n")


@pytest.fixture
def store(tmp_path: Path) -> OutputStore:
    return OutputStore(tmp_path / "outputs")


def test_short_output_is_returned_whole_without_a_file(store: OutputStore) -> None:
    collector = store.collector("call-1", max_chars=10)

    heard = collector.feed(b"0123456789")

    assert heard == "0123456789"
    assert collector.finish() == "0123456789"
    assert collector.path is None
    assert not store.directory.exists()


def test_long_output_is_cut_and_kept_whole_in_a_private_file(store: OutputStore) -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    collector = store.collector("call-1", max_chars=1000)

    collector.feed(text.encode())
    result = collector.finish()

    assert len(result) <= 1000
    assert result.startswith("line 0\nline 1\n")
    assert result.endswith("line 998\nline 999\n")
    found = NOTE.search(result)
    assert found is not None
    assert int(found[1].replace(",", "")) == len(text) - (len(result) - len(found[0]))
    assert int(found[2].replace(",", "")) == len(text)
    assert collector.path == Path(found[3])
    assert collector.path.read_text() == text
    assert stat.S_IMODE(collector.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700


def test_output_that_is_no_text_is_kept_byte_for_byte(store: OutputStore) -> None:
    data = b"\xff\xfe\0\r\n" * 200
    collector = store.collector("call", max_chars=300)

    heard = collector.feed(data)
    collector.finish()

    assert heard == data.decode(errors="replace")
    assert collector.path is not None
    assert collector.path.read_bytes() == data


def test_character_split_between_pieces_is_joined(store: OutputStore) -> None:
    collector = store.collector("call", max_chars=100)

    heard = [collector.feed(bytes([byte])) for byte in "é🐼".encode()]

    assert [text for text in heard if text] == ["é", "🐼"]
    assert collector.finish() == "é🐼"


def test_incomplete_character_is_replaced(store: OutputStore) -> None:
    collector = store.collector("call", max_chars=100)

    assert collector.feed(b"a\xf0\x9f") == "a"
    assert collector.finish() == "a\ufffd"


def test_finish_may_be_called_again(store: OutputStore) -> None:
    collector = store.collector("call", max_chars=400)
    collector.feed(b"x" * 1000)

    assert collector.finish() == collector.finish()


def test_limit_smaller_than_the_note_gives_the_note_alone(store: OutputStore) -> None:
    result = store.shorten("call", "x" * 1000, max_chars=5)

    assert NOTE.fullmatch(result)


def test_too_large_output_file_is_cut_with_a_note(tmp_path: Path) -> None:
    collector = OutputStore(tmp_path, max_file_bytes=600_000).collector("call", max_chars=1000)

    for _ in range(100):
        collector.feed(b"0123456789" * 1000)
    result = collector.finish()

    assert collector.path is not None
    assert collector.path.stat().st_size == 600_000
    assert f"the first 600,000 bytes are in {collector.path}" in result
    assert "of 1,000,000 characters left out here" in result


def test_full_disk_is_reported_and_costs_no_output(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("")
    collector = OutputStore(tmp_path / "in-the-way" / "outputs").collector("call", max_chars=400)

    collector.feed(b"a" * 1_000_000)
    result = collector.finish()

    assert "the whole could not be kept: " in result
    assert result.startswith("aaaa")
    assert result.endswith("aaaa")
    assert collector.path is None


def test_keys_are_redacted_in_files_and_results_even_if_split(tmp_path: Path) -> None:
    key = "sk-0123456789"
    store = OutputStore(tmp_path, keys=KnownKeys([key]))
    collector = store.collector("call", max_chars=400)

    heard = "".join(collector.feed(f"{key} "[at % 14].encode()) for at in range(14_000))
    result = collector.finish()
    short = store.collector("call", max_chars=400)
    short.feed(key[:-1].encode())

    assert heard == "[redacted] " * 1000
    assert "sk-" not in result
    assert collector.path is not None
    assert collector.path.read_text() == heard
    assert short.finish() == key[:-1]


def test_output_names_cannot_leave_the_folder(store: OutputStore) -> None:
    for name in ("../../etc/x", "/absolute", "..", "", "a\0b", "n" * 500, "ü🐼"):
        collector = store.collector(name, max_chars=1)
        collector.feed(b"xyz")
        collector.finish()
        assert collector.path is not None
        assert collector.path.parent == store.directory


def test_outputs_of_one_name_get_two_files(store: OutputStore) -> None:
    first, second = (store.shorten("same", "x" * 500, max_chars=300) for _ in range(2))

    assert first != second
    assert len(os.listdir(store.directory)) == 2  # noqa: PTH208


def test_shorten_leaves_short_text_alone(store: OutputStore) -> None:
    text = "short \ud800"

    assert store.shorten("call", text, max_chars=100) is text


def test_shorten_keeps_head_and_tail(store: OutputStore) -> None:
    result = store.shorten("call", "a" * 500 + "b" * 500, max_chars=400)

    assert len(result) == 400
    assert result.startswith("aaa")
    assert result.endswith("bbb")


def test_long_output_costs_constant_memory_and_no_descriptors(store: OutputStore) -> None:
    collector = store.collector("call", max_chars=30_000)
    piece = b"0123456789abcdef" * 4096
    open_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    tracemalloc.start()
    try:
        for _ in range(500):
            collector.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 3_000_000
    assert len(os.listdir("/proc/self/fd")) == open_before  # noqa: PTH208


@given(
    data=st.data(), text=st.text(alphabet=st.sampled_from("ab\n é🐼\x00"), max_size=2000), max_chars=st.integers(0, 900)
)
@settings(deadline=None, max_examples=150)
def test_collector_result_does_not_depend_on_chunks(data: st.DataObject, text: str, max_chars: int) -> None:
    raw = text.encode() + data.draw(st.sampled_from([b"", b"\xff", b"\xf0\x9f"]))
    text = raw.decode(errors="replace")
    with tempfile.TemporaryDirectory() as folder:
        collector = OutputStore(Path(folder)).collector("call", max_chars=max_chars)
        heard = ""
        rest = raw
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            heard += collector.feed(rest[:size])
            rest = rest[size:]
        result = collector.finish()

        assert text.startswith(heard)
        if len(text) <= max_chars:
            assert result == text
            return
        found = NOTE.search(result)
        assert found is not None
        kept = max(0, max_chars - len(found[0]))
        assert result == text[: kept // 2] + found[0] + (text[-(kept - kept // 2) :] if kept else "")
        assert int(found[1].replace(",", "")) == len(text) - kept
        assert Path(found[3]).read_bytes() == raw


def test_left_output_keeps_the_part_so_far(tmp_path: Path) -> None:
    store = OutputStore(tmp_path / "out", keys=KnownKeys(["sk-very-secret-key"]))
    collector = store.collector("bash-1", max_chars=100)
    collector.feed(b"one\nsk-very")

    left = collector.leave()

    assert left.failure == ""
    assert left.path.read_bytes() == b"one\n"
    assert left.keys.feed(b"-secret-key\n") + left.keys.finish() == b"[redacted]\n"


def test_left_output_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file in its place")
    collector = OutputStore(tmp_path / "out").collector("bash-1", max_chars=100)
    collector.feed(b"one\n")

    assert "is not a folder" in collector.leave().failure


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


def test_kept_output_is_a_private_file_without_keys(pipe: tuple[int, int], tmp_path: Path) -> None:
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


def test_full_output_file_ends_with_a_note_and_is_drained(pipe: tuple[int, int], tmp_path: Path) -> None:
    read_fd, write_fd = pipe
    path = tmp_path / "out.txt"

    keep_reading(read_fd, path, KnownKeys().stream(), max_bytes=10)
    for _ in range(4):
        os.write(write_fd, b"x" * 65_536)  # as much as a pipe holds: each waits for a reader
    os.close(write_fd)
    until_read()

    assert path.read_bytes() == b"x" * 10 + b"\n[the file is full; what comes after this is dropped]\n"


def test_output_without_a_file_is_dropped_and_the_writer_goes_on(pipe: tuple[int, int], tmp_path: Path) -> None:
    read_fd, write_fd = pipe
    (tmp_path / "in-the-way").write_text("")

    place = keep_reading(read_fd, tmp_path / "in-the-way" / "out.txt", KnownKeys().stream(), max_bytes=10)
    for _ in range(3):
        os.write(write_fd, b"x" * 65_536)
    os.close(write_fd)
    until_read()

    assert place.startswith("is dropped: ")
