"""One line and an exit code for whatever went wrong; no traceback reaches the user."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from panpan.errors import PanpanError


def say(text: str) -> None:
    """Print one line on standard error; a standard error that is closed is no reason to fail."""
    from panpan.system.terminal_text import clean_for_terminal

    with suppress(OSError, ValueError):
        sys.stderr.write(f"panpan: {clean_for_terminal(text)}\n")
        sys.stderr.flush()


def report_failure(error: Exception) -> int:
    """Tell the user what went wrong, and return the exit code.

    Args:
        error: What ended the command; anything but a `PanpanError` or a closed pipe is a bug, and gets a report.
    """
    if isinstance(error, PanpanError):
        say(str(error))
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        return 1
    from panpan.cli.crash_report import crash_line
    from panpan.config.known_secrets import secrets_of_run
    from panpan.config.locations import Locations
    from panpan.system.redact import Redactor

    try:
        locations = Locations.find(Path.cwd(), os.environ)
        redactor = Redactor(secrets_of_run(locations, os.environ) | _keys_on_command_line(sys.argv))
    except (OSError, PanpanError):
        say(f"unexpected {type(error).__name__}; no report could be written")
        return 1
    say(crash_line(error, locations.home, redactor))
    return 1


def _keys_on_command_line(arguments: Sequence[str]) -> set[str]:
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return {following for argument, following in pairs if argument == "--api-key"} | {
        argument.removeprefix("--api-key=") for argument in arguments if argument.startswith("--api-key=")
    }
