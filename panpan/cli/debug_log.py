"""The log of a run with `--debug`: one JSON object a line, in a private file below the panpan home.

Code anywhere in panpan logs through the standard library, `logging.getLogger(__name__).debug("asked", extra={…})`,
which costs next to nothing while nobody listens. structlog would add an import and a second way to log, and its
processors are the few lines below. Every text goes through the redactor before it is written.
"""

import json
import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from panpan.config.known_secrets import secrets_of_run
from panpan.config.locations import Locations
from panpan.errors import ConfigError
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.redact import Redactor

_MAX_TEXT_CHARS = 20_000
"""Of one text in a record; what is longer is cut with a note."""

_MAX_DEPTH = 8

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class DebugLog(logging.Handler):
    """Writes log records to a file; a disk that is full costs records and never the work that is logged.

    `folder`: where the file is made; made private itself where it is missing.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._fd: int | None = None
        self._redactor = redactor
        self._is_torn = False
        self.lost = 0
        make_private_folder(folder)
        self.path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self._fd = open_private_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        super().__init__(logging.DEBUG)  # last: it registers this for the exit of the process

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            line = json.dumps(self._fields(record), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        except Exception as exc:  # a value in the record that fails to show itself; say so in its place
            line = json.dumps({"logger": record.name, "error": f"record not writable: {type(exc).__name__}"}).encode()
            line += b"\n"
        self._write(line)

    def close(self) -> None:
        """Close the file; what is logged afterwards is dropped."""
        self.acquire()
        try:
            fd, self._fd = self._fd, None
            if fd is not None:
                os.close(fd)
        finally:
            self.release()
        super().close()

    def _write(self, line: bytes) -> None:
        if self._fd is None:
            return
        start = b"\n" if self._is_torn else b""  # end what a full disk cut off, so that only that line is lost
        try:
            written = os.write(self._fd, start + line)
        except OSError:
            self.lost += 1
            return
        self._is_torn = written < len(start + line)
        self.lost += self._is_torn

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._clean(record.getMessage()),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD_FIELDS:
                fields.setdefault(name, self._clean(value))
        if record.exc_info:
            fields["exception"] = self._clean(logging.Formatter().formatException(record.exc_info))
        return fields

    def _clean(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping) and depth < _MAX_DEPTH:
            return {str(self._clean(str(name))): self._clean(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset) and depth < _MAX_DEPTH:
            return [self._clean(item, depth + 1) for item in value]
        text = self._redactor.redact(value if isinstance(value, str) else str(value))
        if len(text) > _MAX_TEXT_CHARS:
            return f"{text[:_MAX_TEXT_CHARS]} … {len(text) - _MAX_TEXT_CHARS} characters left out"
        return text


@contextmanager
def debug_log(folder: Path, redactor: Redactor) -> Iterator[DebugLog]:
    """Log everything of panpan, and the warnings of what it uses, to a new file until the context ends.

    Raises:
        OSError: The file cannot be made.
        PanpanError: Its folder cannot be made private.
    """
    handler = DebugLog(folder, redactor)
    ours = logging.getLogger("panpan")
    level_before = ours.level
    logging.getLogger().addHandler(handler)
    ours.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        ours.setLevel(level_before)
        logging.getLogger().removeHandler(handler)
        handler.close()


def start_debug_log(cwd: str | None, overrides: Mapping[str, object], stack: ExitStack) -> Path:
    """Log a run of the command until `stack` is closed, and return the file.

    `overrides`: settings of the command line; keys in them are struck out like those of files and environment.

    Raises:
        ConfigError: It cannot be written.
    """
    locations = Locations.find(Path(cwd or "."), os.environ)
    secrets_of_all = secrets_of_run(locations, os.environ, overrides)
    try:
        return stack.enter_context(debug_log(locations.debug_folder, Redactor(secrets_of_all))).path
    except OSError as error:
        raise ConfigError(f"the debug log cannot be written: {error.strerror}") from error
