"""What was typed in earlier sessions, in a private file as prompt_toolkit writes it: `# when`, then lines with `+`.

The rule: an entry is appended with one write, so that two panpans at once only interleave; and the file is made shorter
under a lock that appending takes, too. Secrets are taken out of what is written, not out of what this run recalls; what
they are is known later than the first key, and until then nothing is written.
"""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from prompt_toolkit.history import History

from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.files.read_file import read_regular_file

MAX_FILE_BYTES = 1_000_000
"""A longer file loses its older half when it is next read."""
MAX_ENTRY_CHARS = 20_000
"""A longer entry is recalled in this run only."""
_MAX_READ_BYTES = 64_000_000
_LOCK_WAIT_S = 0.0  # it is asked from the loop that also reads keys


class PromptHistory(History):
    """The history in one file, which is read when it is first needed.

    Not in a thread: the keys that recall it may come at once, and a file of its size is read in milliseconds.

    Args:
        path: The file; made, private, with its folder.
        warn: Told once what keeps entries from being written, or read.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._path = path
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._redact: Callable[[str], str] | None = None
        self._early: list[str] = []
        """What came before it was known what is secret."""
        self._warn = warn
        self._last = ""
        self._has_warned = False

    def write_with(self, redact: Callable[[str], str]) -> None:
        """Write entries from now on, and those that came before.

        Args:
            redact: Takes secrets out of a text.
        """
        self._redact = redact
        for text in self._early:
            self.store_string(text)
        self._early.clear()

    def load_history_strings(self) -> Iterable[str]:
        """Yield what was typed, the newest first."""
        try:
            if not self._path.exists():
                return
            data = read_regular_file(self._path, max_bytes=_MAX_READ_BYTES, follow_symlinks=True)
            if len(data) > MAX_FILE_BYTES:
                data = self._trimmed() or data
        except (PanpanError, OSError) as exc:
            self._tell(f"earlier prompts cannot be recalled: {exc}")
            return
        yield from reversed(entries(data))

    def store_string(self, string: str) -> None:
        """Append an entry to the file; one that repeats the last is left out."""
        if self._redact is None:
            self._early.append(string)
            return
        text = self._redact(string)
        if len(text) > MAX_ENTRY_CHARS or text == self._last:
            return
        try:
            make_private_folder(self._path.parent)
            try:
                with hold_lock(self._lock_path, wait_s=_LOCK_WAIT_S):
                    self._append(text)
            except (LockHeldError, LockUnsupportedError):
                self._append(text)  # the lock only guards against a rewrite at this very moment
            self._last = text
        except (ConfigError, OSError) as exc:
            self._tell(f"what you type is not kept for later sessions: {exc}")

    def _append(self, text: str) -> None:
        fd = open_private_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            entry = record(text, datetime.now(UTC))
            if os.write(fd, entry) < len(entry):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(fd)

    def _trimmed(self) -> bytes | None:
        """Make the file shorter and return what is in it; None where another panpan is at it."""
        with suppress(LockHeldError, LockUnsupportedError, ToolError), hold_lock(self._lock_path, wait_s=_LOCK_WAIT_S):
            data = read_regular_file(self._path, max_bytes=_MAX_READ_BYTES, follow_symlinks=True)
            start = data.find(b"\n# ", len(data) - MAX_FILE_BYTES // 2)
            data = data[max(start, len(data) - MAX_FILE_BYTES) :]
            write_atomic(self._path, data, mode=0o600, follow_symlinks=True)
            return data
        return None

    def _tell(self, sentence: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(sentence)


def record(text: str, when: datetime) -> bytes:
    """Return an entry as it stands in the file."""
    lines = "".join(f"+{line}\n" for line in text.split("\n"))
    return f"\n# {when.isoformat(' ', 'seconds')}\n{lines}".encode(errors="replace")


def entries(data: bytes) -> list[str]:
    """Return the entries of a file, the oldest first; what is no entry is passed over."""
    found: list[list[str]] = [[]]
    for line in data.decode(errors="replace").split("\n"):
        if line.startswith("+"):
            found[-1].append(line[1:])
        elif found[-1]:
            found.append([])
    return ["\n".join(lines) for lines in found if lines]
