"""`panpan` without a subcommand: chooses the face for the session.

The rule: nothing is imported before it is needed; on a terminal the user can type long before everything is loaded.
"""

import os
import sys
import termios
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from panpan.cli.start import PARENT
from panpan.cli_kit.failures import StdoutWriter, is_dumb, say
from panpan.cli_kit.options import PICKS_SESSION, Options, check_options, given_look, overrides_of, require_session_id
from panpan.config.ui_look import UiLook, read_ui_look
from panpan.errors import ConfigError, PanpanError

if TYPE_CHECKING:
    from panpan.faces.headless.face import HeadlessFace
    from panpan.session.session import Session


FIRST_SIGN = "❯ "
"""Mark in place of the input box, shown before its code is imported; the terminal echoes typed text after it."""


def run(options: Options) -> int:
    """Run a headless turn or the interactive loop, and return the exit code.

    Raises:
        PanpanError: The run could not begin.
        click.UsageError: Options contradict each other.
    """
    check_options(options)
    if options["end_with_parent"]:
        from panpan.system.processes.own_process import end_with_parent

        end_with_parent(PARENT)
    out = StdoutWriter(sys.stdout)
    with ExitStack() as stack:
        if options["debug"] or options["debug_file"] or options["debug_to_stderr"]:
            _start_debug_log(options, stack)
        if is_headless(options):
            require_session_id(options)
            if options["input_format"] == "stream-json":
                from panpan.cli.sdk_command import run_sdk

                return anyio.run(run_sdk, options, out)
            return anyio.run(_run_headless, options, out)
        for name in ("json_schema", "no_session_persistence"):
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} goes with -p or a pipe")
        if options["when_asked"] is not None:
            raise click.UsageError("--when-asked goes with -p or a pipe; on a terminal you are asked")
        if options["background"] is not None:
            raise click.UsageError("--background goes with -p or a pipe; on a terminal you are asked when you leave")
        if sys.__stdout__ is None:
            raise ConfigError(
                "standard output is closed, so there is nowhere to show a session; leave it open, or use -p"
            )
        look = _look(options, out)
        if options["resume"] == PICKS_SESSION:  # /resume lists them, in a session that is still empty
            options = {**options, "resume": None, "first_prompt": "/resume"}
        if look.plain:
            from panpan.cli.line_command import run_lines_for

            return anyio.run(run_lines_for, options, out)
        with enter_kept():  # until the end, since prompt_toolkit restores what it finds when it takes the terminal
            sys.stdout.write(FIRST_SIGN)
            sys.stdout.flush()
            from panpan.cli.repl_command import run_repl_for

            return anyio.run(partial(run_repl_for, options, look))


def _start_debug_log(options: Options, stack: ExitStack) -> None:
    """Begin the log that the options ask for, and name its file unless they have.

    Raises:
        ConfigError: The log cannot be written.
    """
    from panpan.cli.debug_command import STANDARD_ERROR, start_debug_log

    file = Path(options["debug_file"]).expanduser() if options["debug_file"] else None
    place = STANDARD_ERROR if options["debug_to_stderr"] else file
    path = start_debug_log(options["cwd"], overrides_of(options), stack, file=place)
    if place is None:
        say(f"writing the debug log to {path}")


@contextmanager
def enter_kept() -> Iterator[None]:
    """Make the terminal pass on Enter as a carriage return, not as a line feed, which is the key for a new line."""
    fd = sys.stdin.fileno()
    try:
        as_it_was = termios.tcgetattr(fd)
        kept = [as_it_was[0] & ~termios.ICRNL, *as_it_was[1:]]
        termios.tcsetattr(fd, termios.TCSANOW, kept)
    except termios.error:  # the terminal is gone; the first read will notice
        yield
        return
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, as_it_was)


def is_headless(options: Options) -> bool:
    """Return True if no person is at the other end."""
    return (
        options["prompt"] is not None
        or options["output_format"] != "text"
        or options["input_format"] != "text"
        or not sys.stdin.isatty()
    )


def _look(options: Options, out: StdoutWriter) -> UiLook:
    """Return the look of the terminal; plain lines if the user wants them or nothing else is possible.

    Raises:
        ConfigError: There is no such folder, or no panpan home.
    """
    if not out.is_terminal or is_dumb(os.environ):
        return UiLook(plain=True)
    folder = Path(options["cwd"] or ".").expanduser().absolute()
    return read_ui_look(folder, os.environ, plain=options["plain"], given=given_look(options))


async def _run_headless(options: Options, out: StdoutWriter) -> int:
    """Run the prompts that the options and standard input give, and return the exit code.

    Raises:
        PanpanError: The session could not be opened, or the output could not be written.
    """
    from panpan.cli.session_opening import session_of
    from panpan.cli_kit.stdin import StdinReader
    from panpan.faces.headless.prompts import Prompt, prompt_of_text
    from panpan.faces.headless.run import run_headless

    async def one_prompt() -> AsyncGenerator[Prompt, None]:
        has_pipe = not sys.stdin.isatty()
        words = options["prompt"] or options["first_prompt"]
        yield Prompt(await prompt_of_text(words, StdinReader(sys.stdin) if has_pipe else None, warn))

    prompts = one_prompt()
    warn = (lambda _: None) if options["quiet"] else say
    opening = session_of(options, ask=None, warn=warn)

    async def failed_start(error: PanpanError) -> None:
        if options["output_format"] != "text":
            from panpan.faces.headless.output_formats import show_failed_start

            await show_failed_start(out, error)

    return await run_headless(
        opening,
        prompts,
        lambda session: _face(options, session, out),
        say=say,
        warn=warn,
        show_failed_start=failed_start,
        background=options["background"],
    )


def _face(options: Options, session: "Session", out: StdoutWriter) -> "HeadlessFace":
    if options["output_format"] == "json":
        from panpan.faces.headless.output_formats import JsonFace

        return JsonFace(out, session.info.id)
    if options["output_format"] == "stream-json":
        from panpan.faces.headless.output_formats import StreamJsonFace

        return StreamJsonFace(
            out,
            session.info,
            has_partial_messages=options["include_partial_messages"],
            replays_prompts=options["replay_user_messages"],
            commands=session.commands.names,
            features=session.capabilities.described(),
        )
    if options["json_schema"] is not None:
        from panpan.faces.headless.output_formats import DataFace

        return DataFace(out)
    from panpan.faces.headless.output_formats import TextFace

    shows_progress = options["verbose"] or (sys.stderr.isatty() and not options["quiet"])
    return TextFace(out, _note if shows_progress else None)


def _note(line: str) -> None:
    with suppress(OSError):  # standard error is closed
        click.echo(line, err=True)
