"""Failures of a command: one line, an exit code, and for bugs in panpan a private report, but never a traceback.

Also the writer for standard output, which reports lost readers and full disks, and lines of JSON for it.
"""

import errno
import json
import os
import platform
import secrets
import select
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

import anyio

from panpan.config.locations import CRASH_FOLDER
from panpan.errors import OutputError, PanpanError
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.redact import Redactor
from panpan.version import __version__

_NO_MORE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENXIO)
"""Errors of a write to a full disk or a terminal that is gone."""

_WRITERS = ("click.", "panpan.cli.", "panpan.cli_kit.")
"""Packages whose modules write to standard output."""


def say(text: str) -> None:
    """Print one line on standard error; on a terminal, wrap it between words.

    A closed standard error is ignored.
    """
    from panpan.system.text.terminal_text import clean_for_terminal

    with suppress(OSError, ValueError):
        sys.stderr.write(f"{_fitted(f'panpan: {clean_for_terminal(text)}')}\n")
        sys.stderr.flush()


def _fitted(text: str) -> str:
    """Return `text` wrapped to the terminal; a longer path stays whole, so that it can be copied."""
    from textwrap import wrap

    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:  # not a terminal
        return text
    if not width:
        return text
    rows = [wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""] for line in text.split("\n")]
    return "\n".join(row for line_rows in rows for row in line_rows)


def report_failure(error: Exception, *, had_terminal: bool = False) -> int:
    """Report an error to the user, and return the exit code.

    Args:
        error: Error that ended the command; anything but a `PanpanError` or a lost output is a bug, and gets a report.
        had_terminal: True if standard output was a terminal when the command began. If it is gone now, it was closed,
            and the signal for that may come later.
    """
    if isinstance(error, PanpanError):
        say(str(error))
        return error.exit_code
    if isinstance(error, OSError) and _is_of_output(error):
        return _report_lost_output(error, had_terminal=had_terminal)
    if missing := _missing_part(error):
        say(f"the installation of panpan is damaged: {missing} is missing; install panpan again")
        return 1
    from panpan.config.known_secrets import secrets_of_run
    from panpan.config.locations import Locations
    from panpan.system.text.redact import Redactor

    try:
        locations = Locations.find(Path.cwd(), os.environ)
        keys = {*_values_of("--api-key", sys.argv)}
        redactor = Redactor(secrets_of_run(locations, os.environ, _given_settings(sys.argv)) | keys)
    except (OSError, PanpanError):
        say(f"unexpected {type(error).__name__}; no report could be written")
        return 1
    say(crash_line(error, locations.home, redactor))
    return 1


def _is_of_output(error: OSError) -> bool:
    """Return True if a write to standard output failed; errors of other writes are reported by their own layers."""
    if isinstance(error, BrokenPipeError):
        return True
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    module = place.tb_frame.f_globals["__name__"] if place is not None else ""
    return error.errno in _NO_MORE and error.filename is None and module.startswith(_WRITERS)


def _report_lost_output(error: OSError, *, had_terminal: bool) -> int:
    """Report the lost output on standard error if possible, and keep Python's flush at exit from failing again."""
    with suppress(OSError, ValueError):
        discard_output(sys.stdout.fileno())
    if had_terminal and error.errno in (errno.EPIPE, errno.EIO, errno.ENXIO):
        return 128 + signal.SIGHUP
    if not isinstance(error, BrokenPipeError):
        say(f"cannot write the output: {error.strerror}")
    return 1


def _missing_part(error: Exception) -> str | None:
    """Return the missing part of panpan: a file of its package or one of its modules; None for another error."""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        return error.name if error.name.partition(".")[0] == "panpan" else None
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str | Path):
        return str(error.filename) if Path(error.filename).is_relative_to(Path(__file__).parent.parent) else None
    return None


def _given_settings(arguments: Sequence[str]) -> Mapping[str, object]:
    """Return the readable settings of a command line that may be wrong."""
    from panpan.config.run_settings import SET_FLAG, SETTINGS_FLAG, given_sources

    given: dict[str, object] = {}
    for number, text in enumerate(_values_of(SETTINGS_FLAG, arguments)):
        with suppress(PanpanError):
            given[f"settings {number}"] = given_sources([text], [], Path.cwd())[0]
    for number, text in enumerate(_values_of(SET_FLAG, arguments)):
        with suppress(PanpanError):
            given[f"set {number}"] = given_sources([], [text], Path.cwd())[0]
    return given


def _values_of(option: str, arguments: Sequence[str]) -> Iterator[str]:
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == option:
            yield following
        elif argument.startswith(f"{option}="):
            yield argument.removeprefix(f"{option}=")


_MAX_CHARS = 200_000
"""Most characters of a traceback; chained errors have no limit of their own."""

_MAX_LINE_CHARS = 300
"""Most characters of the error's message in the line for the user."""


def report_crash(exc: BaseException, home: Path, redactor: Redactor) -> Path:
    """Write a report of an unexpected error, readable only by the user.

    Returns:
        The file.

    Raises:
        OSError: The report cannot be written.
        PanpanError: The folder cannot be made private.
    """
    return write_report(home / CRASH_FOLDER, redactor.redact(_report(exc)))


def write_report(folder: Path, text: str) -> Path:
    """Write a new file that only the user can read into a folder, which is made private, and return it.

    Raises:
        OSError: The file cannot be written.
        PanpanError: The folder cannot be made private.
    """
    make_private_folder(folder)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}.txt"
    fd = open_private_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path


def crash_line(exc: BaseException, home: Path, redactor: Redactor) -> str:
    """Write a report, and return the line for the user; it says so if the report cannot be written."""
    from panpan.config.keys import shown  # not needed at the start

    what = _one_line(exc, redactor)
    try:
        path = report_crash(exc, home, redactor)
    except Exception as failure:  # such as a full disk, or a home that is a file: the user still gets the first error
        return f"{what}; no report could be written ({_one_line(failure, redactor)})"
    return f"{what}; this is a fault in panpan, the report for its authors is {shown(path)}"


def _one_line(exc: BaseException, redactor: Redactor) -> str:
    from panpan.config.keys import shown  # not needed at the start

    try:
        message = redactor.redact(str(exc))
    except Exception:  # an error whose __str__ fails
        message = ""
    first_line = shown(message.strip().partition("\n")[0])[:_MAX_LINE_CHARS]
    return f"unexpected {type(exc).__name__}" + (f": {first_line}" if first_line else "")


def machine_facts() -> Mapping[str, str]:
    """Return facts about panpan and the machine for a report, by name."""
    return {
        "panpan": __version__,
        "python": f"{platform.python_version()} {sys.executable}",
        "platform": platform.platform(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _report(exc: BaseException) -> str:
    head = {**machine_facts(), "command": shlex.join(sys.argv)}
    lines = "".join(traceback.format_exception(exc))
    if len(lines) > _MAX_CHARS:
        half = _MAX_CHARS // 2
        lines = f"{lines[:half]}\n… {len(lines) - 2 * half} characters left out …\n{lines[-half:]}"
    return "".join(f"{name}: {value}\n" for name, value in head.items()) + "\n" + lines


PIECE = 4096
"""Bytes of one write: a pipe that polls as writable takes PIPE_BUF without blocking, 4,096 on Linux, 512 on macOS."""


def discard_output(fd: int) -> None:
    """Discard everything that is written from now on, also by Python's own flush at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)


def drop_terminal() -> None:
    """Discard output to a terminal that is gone: standard output, and standard error if it is the same terminal."""
    if os.path.sameopenfile(1, 2):
        discard_output(2)
    discard_output(1)


def is_dumb(env: Mapping[str, str]) -> bool:
    """Return True if `TERM` says that the terminal can only print."""
    return env.get("TERM", "dumb") in ("dumb", "unknown")


_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Characters that are line ends for some readers of lines, such as Node's, as JSON writes them."""


def json_line(value: Mapping[str, Any]) -> str:
    """Return a value as a line of JSON, which every reader of lines takes for one."""
    return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':')).translate(_LINE_ENDS)}\n"


class TextOut(Protocol):
    """Takes text for standard output."""

    async def write(self, text: str) -> None:
        """Write the text, or keep it to be written."""
        ...


class StdoutWriter:
    """Writes text to a stream's file descriptor.

    Args:
        stream: Usually `sys.stdout`; its own buffer is written first.
    """

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        self._fd = stream.fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)
        self._piece = min(PIECE, select.PIPE_BUF)
        self.is_terminal = stream.isatty()

    def has_colour(self, env: Mapping[str, str]) -> bool:
        """Return True if text may be coloured, bold or dim: on a terminal that knows it, unless `NO_COLOR` is set."""
        return self.is_terminal and not is_dumb(env) and not env.get("NO_COLOR")

    async def write(self, text: str) -> None:
        """Write `text` as UTF-8; half surrogates become question marks.

        Raises:
            BrokenPipeError: Nobody reads any more.
            OutputError: The text cannot be written, as on a full disk.
        """
        data = memoryview(text.encode(errors="replace"))
        while data:
            if not self._poll.poll(0):
                await anyio.wait_writable(self._fd)
            try:
                data = data[os.write(self._fd, data[: self._piece]) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
            except OSError as error:
                discard_output(self._fd)
                if error.errno in (errno.EPIPE, errno.EIO, errno.ENXIO):  # the reader or the terminal is gone
                    raise BrokenPipeError(error.errno, error.strerror) from error
                raise OutputError(f"cannot write the output: {error.strerror}") from error
