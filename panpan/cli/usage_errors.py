"""What is wrong with the command line: one line for people, and the result object for programs that asked for JSON."""

import re
import sys
from collections.abc import Sequence
from itertools import pairwise

import click

from panpan.cli_kit.failures import say
from panpan.errors import ConfigError

_FORMAT_FLAG = re.compile(r"-[cqvy]*f|--output-format")
_FORMAT = re.compile(r"(?:-[cqvy]*f|--output-format=)([a-z-]+)")
"""The option with its value, also behind short flags that take none."""


def report_usage_error(error: click.ClickException, arguments: Sequence[str]) -> int:
    """Tell what is wrong, and return the exit code.

    Raises:
        PanpanError: The result object cannot be written.
        BrokenPipeError: Nobody reads it.
    """
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return ConfigError.exit_code
    line = _line(error)
    if wants_json(arguments):
        _show_result(line)
    say(line)
    return ConfigError.exit_code


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether the output is for a program, as far as a command line that is wrong can tell."""
    chosen = ""
    for argument, following in pairwise([*arguments, ""]):
        if argument == "--":
            break
        if _FORMAT_FLAG.fullmatch(argument):
            chosen = following
        elif match := _FORMAT.fullmatch(argument):
            chosen = match[1]
    return chosen in ("json", "stream-json")


def _line(error: click.ClickException) -> str:
    text = " ".join(error.format_message().split()).rstrip(".").replace(". Did you mean", "; did you mean")
    if text[1:2].islower():
        text = text[0].lower() + text[1:]
    context = getattr(error, "ctx", None)
    link = " See" if text.endswith("?") else "; see"
    return f"{text}{link} {context.command_path if context else 'panpan'} --help"


def _show_result(line: str) -> None:
    import anyio

    from panpan.cli_kit.stdout import StdoutWriter
    from panpan.faces.headless.output_formats import show_failed_start

    anyio.run(show_failed_start, StdoutWriter(sys.stdout), ConfigError(line))
