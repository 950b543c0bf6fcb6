"""Keeping output that is too large for a result: head and tail for the reader, the whole in a private file.

The rule: what a command prints costs constant memory here, however much it is, and nothing is cut without a note. Its
pipe is read as long as a process can write to it, whatever becomes of the file. A pipe that nobody reads ends the
process at its next line (SIGPIPE), and one that is full stops it.
"""

import codecs
import os
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path

from panpan.errors import ConfigError
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.redact import KeyStream, KnownKeys
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_CHUNK_BYTES = 1 << 16
_DROP_PAUSE_S = 0.05
"""Pause between two reads of dropped output, so that a process which prints without end does not take our time, too."""


def keep_reading(pipe: int, path: Path, keys: KeyStream, *, max_bytes: int) -> str:
    """Let a thread read a pipe to its end and write what comes into a new file; return in words where it goes.

    The pipe is taken over. The thread ends with the last process that holds it, or with ours. What comes after
    `max_bytes` is read and dropped.
    """
    try:
        make_private_folder(path.parent)
        file = open_private_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        place = f"goes to {path}"
    except (ConfigError, OSError) as exc:
        file = -1
        place = f"is dropped: {exc}"
    os.set_blocking(pipe, True)
    reader = _Reader(pipe, file, keys, max_bytes)
    threading.Thread(target=reader.run, name="panpan-background-output", daemon=True).start()
    return place


class _Reader:
    def __init__(self, pipe: int, file: int, keys: KeyStream, max_bytes: int) -> None:
        self._pipe = pipe
        self._file = file
        """Negative once nothing is written any more."""
        self._keys = keys
        self._room = max_bytes

    def run(self) -> None:
        """Read until no process can write."""
        try:
            while chunk := os.read(self._pipe, _CHUNK_BYTES):
                self._write(self._keys.feed(chunk))
                if self._file < 0:
                    time.sleep(_DROP_PAUSE_S)
            self._write(self._keys.finish())
        finally:
            self._close_file()
            os.close(self._pipe)

    def _write(self, data: bytes) -> None:
        if self._file < 0:
            return
        try:
            self._put(data[: self._room])
            if len(data) > self._room:
                self._put(b"\n[the file is full; what comes after this is dropped]\n")
                self._close_file()
        except OSError:  # such as a full disk; the process must not suffer from it
            self._close_file()
        self._room -= len(data)

    def _put(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]

    def _close_file(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):
                os.close(file)


MAX_FILE_BYTES = 100_000_000
"""Most that a file holds; the rest is counted and dropped."""

_WRITE_BYTES = 256 * 1024
"""Gathered before it is written, so that a command that prints line by line stays cheap."""

_UNSAFE = compile_late(r"[^A-Za-z0-9._-]+")


class OutputStore:
    """Files for outputs in a private folder, which is made when it is first needed."""

    def __init__(self, directory: Path, *, max_file_bytes: int = MAX_FILE_BYTES, keys: KnownKeys | None = None) -> None:
        self.directory = directory
        self._max_file_bytes = max_file_bytes
        self._keys = keys or KnownKeys()

    def collector(self, name: str, *, max_chars: int) -> "OutputCollector":
        """Return a collector for one output of at most `max_chars`; the name of its file begins with `name`."""
        return OutputCollector(
            self._new_path(name), self._keys.stream(), max_chars=max_chars, max_file_bytes=self._max_file_bytes
        )

    def keep_reading(self, name: str, pipe: int) -> str:
        """Take over a pipe, keep what comes out of it in a file until it ends, and return in words where that goes."""
        return keep_reading(pipe, self._new_path(name), self._keys.stream(), max_bytes=self._max_file_bytes)

    def shorten(self, name: str, text: str, *, max_chars: int) -> str:
        """Return `text`, or its head and tail around a note that names the file with the whole."""
        if len(text) <= max_chars:
            return text
        collector = self.collector(name, max_chars=max_chars)
        collector.feed(text.encode(errors="replace"))
        return collector.finish()

    def _new_path(self, name: str) -> Path:
        stem = _UNSAFE.sub("-", name).strip("-.")[:60] or "output"
        return self.directory / f"{stem}-{secrets.token_hex(4)}.txt"


@dataclass(frozen=True, slots=True)
class DetachedOutput:
    """An output that its collector has left to another reader, in a file."""

    path: Path
    """Holds what was printed so far; may not be there where that is nothing, or could not be written."""
    keys: KeyStream
    """Takes the keys out of the rest; it may hold the beginning of one."""
    failure: str
    """Reason why the output so far could not be kept; empty if it was."""


class OutputCollector:
    """Takes one output piece by piece; makes the file for the whole only when the result would be too long."""

    def __init__(self, path: Path, keys: KeyStream, *, max_chars: int, max_file_bytes: int) -> None:
        self.total_chars = 0
        self._keys = keys
        self._max_chars = max_chars
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._start = ""
        """The first `max_chars` characters and one more."""
        self._end = ""
        """The last `max_chars` characters, or more."""
        self._file = _Spill(path, max_file_bytes)
        self._result: str | None = None

    @property
    def path(self) -> Path | None:
        """The file with the whole output; None while there is none. Complete after `finish`."""
        return self._file.made_path

    def feed(self, data: bytes) -> str:
        """Take the next bytes and return the text that they completed."""
        data = self._keys.feed(data)
        self._file.add(data)
        return self._take(self._decoder.decode(data))

    def finish(self) -> str:
        """Return all of the output when it is short enough, else its head, a note and its tail."""
        if self._result is None:
            rest = self._keys.finish()
            self._file.add(rest)
            self._take(self._decoder.decode(rest, final=True))
            if self.total_chars <= self._max_chars:
                self._file.forget()
                self._result = self._start
            else:
                self._file.write()
                self._result = self._shortened()
            self._start = self._end = ""
        return self._result

    def leave(self) -> DetachedOutput:
        """Write the output so far into the file, for a reader who goes on with the output there."""
        path, failure = self._file.leave()
        return DetachedOutput(path, self._keys, failure)

    def _take(self, text: str) -> str:
        if (room := self._max_chars + 1 - len(self._start)) > 0:
            self._start += text[:room]
        self._end += text
        if len(self._end) > 2 * self._max_chars + 8192:  # cut rarely, since each cut copies
            self._end = self._end[-self._max_chars :]
        self.total_chars += len(text)
        if self.total_chars > self._max_chars:
            self._file.is_wanted = True
        return text

    def _shortened(self) -> str:
        note = self._note(self.total_chars - self._max_chars)
        for _ in range(2):  # the note's length depends on the number, and the number on the length
            kept = max(0, self._max_chars - len(note))
            note = self._note(self.total_chars - kept)
        kept = max(0, self._max_chars - len(note))
        head = kept // 2
        tail = kept - head
        return self._start[:head] + note + (self._end[-tail:] if tail else "")

    def _note(self, left_out: int) -> str:
        return f"\n\n[{left_out:,} of {self.total_chars:,} characters left out here; {self._file.description}]\n\n"


class _Spill:
    """The file for the whole of an output; opened for each write, so that nothing stays open whatever happens."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.is_wanted = False
        """True if the output is too long to be kept in memory only."""
        self._path = path
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._written = 0
        self._has_dropped = False
        self._is_made = False
        self._failure: str | None = None

    @property
    def made_path(self) -> Path | None:
        return self._path if self._is_made and self._failure is None else None

    @property
    def description(self) -> str:
        """Place of the whole, for the note."""
        if self._failure is not None:
            return f"the whole could not be kept: {self._failure}"
        if self._has_dropped:
            return f"the first {self._written:,} bytes are in {self._path}"
        return f"the whole output is in {self._path}"

    def add(self, data: bytes) -> None:
        if self._failure is not None:
            return
        room = self._max_bytes - self._written - len(self._pending)
        self._has_dropped = self._has_dropped or len(data) > room
        self._pending += data[: max(0, room)]
        if self.is_wanted and len(self._pending) >= _WRITE_BYTES:
            self.write()

    def write(self) -> None:
        """Put what is pending into the file; a failure is noted, and the output goes on without it."""
        if not self._pending or self._failure is not None:
            return
        try:
            self._append()
        except ConfigError as exc:
            self._failure = str(exc)
        except OSError as exc:
            self._failure = exc.strerror or str(exc)
            if self._is_made:  # free the space on a full disk
                with suppress(OSError):
                    self._path.unlink()
        self._pending.clear()

    def leave(self) -> tuple[Path, str]:
        """Write what is pending; return the file, and why it does not hold all, where it does not."""
        self.is_wanted = True
        self.write()
        return self._path, self._failure or ""

    def forget(self) -> None:
        self._pending.clear()

    def _append(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND
        if not self._is_made:
            make_private_folder(self._path.parent)
            flags |= os.O_CREAT | os.O_EXCL
        fd = open_private_file(self._path, flags)
        self._is_made = True
        try:
            rest = memoryview(self._pending)
            with rest:
                done = 0
                while done < len(rest):
                    done += os.write(fd, rest[done:])
            self._written += done
        finally:
            os.close(fd)
