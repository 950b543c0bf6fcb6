"""`panpan` without a subcommand: which face shows the session.

The rule: nothing is imported before it is needed; on a terminal the user can type long before all is there.
"""

import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
import click

from panpan.cli.start import PARENT
from panpan.cli_kit.failures import say
from panpan.cli_kit.options import Options, check_options, given_look, overrides_of, require_session_id
from panpan.cli_kit.stdout import StdoutWriter
from panpan.config.ui_look import UiLook, read_ui_look
from panpan.errors import ConfigError


def run(options: Options) -> int:
    """Run a headless turn or the interactive loop, and return the exit code.

    Raises:
        PanpanError: It could not begin.
        click.UsageError: Options contradict each other.
    """
    check_options(options)
    if options["end_with_parent"]:
        from panpan.system.processes.own_process import end_with_parent

        end_with_parent(PARENT)
    out = StdoutWriter(sys.stdout)
    with ExitStack() as stack:
        if options["debug"]:
            from panpan.cli.debug_log import start_debug_log

            say(f"writing the debug log to {start_debug_log(options['cwd'], overrides_of(options), stack)}")
        if is_headless(options):
            require_session_id(options)
            from panpan.cli.headless_command import run_headless_for

            return anyio.run(run_headless_for, options, out)
        if options["background"] is not None:
            raise click.UsageError("--background goes with -p or a pipe; on a terminal you are asked when you leave")
        if sys.__stdout__ is None:
            raise ConfigError(
                "standard output is closed, so there is nowhere to show a session; leave it open, or use -p"
            )
        look = _look(options, out)
        if look.plain:
            require_session_id(options)
            from panpan.cli.line_command import run_line_loop_for

            return anyio.run(run_line_loop_for, options, out)
        from panpan.cli.repl_command import run_repl_for

        return anyio.run(partial(run_repl_for, options, look))


def is_headless(options: Options) -> bool:
    """Return whether there is no person at the other end."""
    return (
        options["prompt"] is not None
        or options["output_format"] != "text"
        or options["input_format"] != "text"
        or not sys.stdin.isatty()
    )


def _look(options: Options, out: StdoutWriter) -> UiLook:
    """Return how the terminal shall look; as lines only, where that is wanted or nothing else is possible.

    Raises:
        ConfigError: There is no such folder, or no panpan home.
    """
    if not out.is_terminal or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return UiLook(plain=True)
    folder = Path(options["cwd"] or ".").expanduser().absolute()
    return read_ui_look(folder, os.environ, plain=options["plain"], given=given_look(options))
