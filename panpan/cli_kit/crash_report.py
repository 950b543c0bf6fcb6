"""What happens when panpan itself fails: a private file with the traceback, and one line for the user.

Nothing in the report has not gone through the redactor, and nothing here may raise where the user needs the line.
"""

import os
import platform
import secrets
import shlex
import sys
import time
import traceback
from pathlib import Path

from panpan.config.keys import shown
from panpan.config.locations import CRASH_FOLDER
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.redact import Redactor
from panpan.version import __version__

_MAX_CHARS = 200_000
"""Of a traceback; chained errors have no bound of their own."""

_MAX_LINE_CHARS = 300
"""Of what the error says, in the line for the user."""


def report_crash(exc: BaseException, home: Path, redactor: Redactor) -> Path:
    """Write a report of an unexpected error, readable by the user alone.

    Returns:
        The file.

    Raises:
        OSError: It cannot be written.
        PanpanError: Its folder cannot be made private.
    """
    folder = home / CRASH_FOLDER
    make_private_folder(folder)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}.txt"
    text = redactor.redact(_report(exc))
    fd = open_private_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path


def crash_line(exc: BaseException, home: Path, redactor: Redactor) -> str:
    """Report the error and return the one line that the user reads; says so when the report cannot be written."""
    what = _one_line(exc, redactor)
    try:
        path = report_crash(exc, home, redactor)
    except Exception as failure:  # the disk may be full, the home may be a file: the user still gets the first error
        return f"{what}; no report could be written ({_one_line(failure, redactor)})"
    return f"{what}; this is a fault in panpan, the report for its authors is {shown(path)}"


def _one_line(exc: BaseException, redactor: Redactor) -> str:
    try:
        message = redactor.redact(str(exc))
    except Exception:  # an error whose __str__ fails
        message = ""
    first_line = shown(message.strip().partition("\n")[0])[:_MAX_LINE_CHARS]
    return f"unexpected {type(exc).__name__}" + (f": {first_line}" if first_line else "")


def _report(exc: BaseException) -> str:
    head = {
        "panpan": __version__,
        "python": f"{platform.python_version()} {sys.executable}",
        "platform": platform.platform(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": shlex.join(sys.argv),
    }
    lines = "".join(traceback.format_exception(exc))
    if len(lines) > _MAX_CHARS:
        half = _MAX_CHARS // 2
        lines = f"{lines[:half]}\n… {len(lines) - 2 * half} characters left out …\n{lines[-half:]}"
    return "".join(f"{name}: {value}\n" for name, value in head.items()) + "\n" + lines
