"""`panpan` without a subcommand: from the options to a session and the face that shows it."""

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import click

from panpan.app import open_session
from panpan.cli.failures import say
from panpan.cli.options import Options, check_options, overrides_of
from panpan.config.locations import Locations, panpan_home
from panpan.config.sources import load_settings
from panpan.errors import PanpanError
from panpan.llm.model_choice import NoModelError
from panpan.services.sessions.session import Session
from panpan.types.messages import UserMessage
from panpan.types.permission import Asker
from panpan.types.user_questions import UserAsker
from panpan.ui.headless.face import HeadlessFace
from panpan.ui.stdin import StdinReader
from panpan.ui.stdout import StdoutWriter


def run(options: Options) -> int:
    """Run a headless turn or the interactive loop, and return the exit code.

    Raises:
        PanpanError: It could not begin.
        click.UsageError: Options contradict each other.
    """
    check_options(options)
    out = StdoutWriter(sys.stdout)
    with ExitStack() as stack:
        if options["debug"]:
            from panpan.cli.debug_log import start_debug_log

            say(f"writing the debug log to {start_debug_log(options['cwd'], options['api_key'], stack)}")
        if is_headless(options):
            return anyio.run(_run_headless, options, out)
        return anyio.run(_run_interactive, options, out)


def is_headless(options: Options) -> bool:
    """Return whether there is no person at the other end."""
    return (
        options["prompt"] is not None
        or options["output_format"] != "text"
        or options["input_format"] != "text"
        or not sys.stdin.isatty()
    )


@asynccontextmanager
async def _opening(
    options: Options,
    *,
    ask: Asker | None,
    ask_user: UserAsker | None = None,
    ask_yes_or_no: Callable[[str], Awaitable[bool | None]] | None = None,
    warn: Callable[[str], None],
) -> AsyncGenerator[Session, None]:
    """Open the session that the options ask for; where nothing says which model, with what this machine offers."""
    open_with = partial(
        open_session,
        Path(options["cwd"] or "."),
        continues=options["continues"],
        resume=options["resume"],
        system_prompt=options["system_prompt"],
        append_system_prompt=options["append_system_prompt"],
        ask=ask,
        ask_user=ask_user,
        says_yes=options["says_yes"],
        is_attended=ask is not None,
        warn=warn,
    )
    overrides = overrides_of(options)
    try:
        async with open_with(overrides=overrides) as session:
            yield session
            return
    except NoModelError:
        from panpan.cli.model_offer import has_embedded_model, offered_model

        has_embedded = has_embedded_model(os.environ)
        offered = await offered_model(_home(options), has_embedded=has_embedded, ask=ask_yes_or_no, say=warn)
    async with open_with(overrides={**overrides, "model": offered.name}, why_model=offered.reason) as session:
        yield session


def _home(options: Options) -> Path:
    """Return the panpan home as the session finds it, which may be relative to `--cwd`."""
    return panpan_home(os.environ, Path(options["cwd"] or ".").expanduser())


async def _run_headless(options: Options, out: StdoutWriter) -> int:
    from panpan.ui.headless.prompts import prompt_of_text, prompts_of_json_lines
    from panpan.ui.headless.run import run_headless

    async def one_prompt() -> AsyncGenerator[UserMessage, None]:
        has_pipe = not sys.stdin.isatty()
        words = options["prompt"] or options["first_prompt"]
        yield await prompt_of_text(words, StdinReader(sys.stdin) if has_pipe else None, warn)

    prompts = one_prompt() if options["input_format"] == "text" else prompts_of_json_lines(StdinReader(sys.stdin))
    warn = (lambda _: None) if options["quiet"] else say
    opening = _opening(options, ask=None, warn=warn)

    async def failed_start(error: PanpanError) -> None:
        if options["output_format"] != "text":
            from panpan.ui.headless.json_faces import show_failed_start

            await show_failed_start(out, error)

    return await run_headless(
        opening,
        prompts,
        lambda session: _face(options, session, out),
        say=say,
        warn=warn,
        show_failed_start=failed_start,
    )


def _face(options: Options, session: Session, out: StdoutWriter) -> HeadlessFace:
    if options["output_format"] == "json":
        from panpan.ui.headless.json_faces import JsonFace

        return JsonFace(out, session.info.id)
    if options["output_format"] == "stream-json":
        from panpan.ui.headless.json_faces import StreamJsonFace

        return StreamJsonFace(out, session.info, has_partial_messages=options["include_partial_messages"])
    from panpan.ui.headless.text import TextFace

    shows_progress = options["verbose"] or (sys.stderr.isatty() and not options["quiet"])
    return TextFace(out, _note if shows_progress else None)


def _note(line: str) -> None:
    with suppress(OSError):  # nobody reads standard error any more
        click.echo(line, err=True)


async def _run_interactive(options: Options, out: StdoutWriter) -> int:
    """Show the session on the terminal; as lines only, where that is wanted or nothing else is possible."""
    if _is_plain(options, out):
        return await _run_line_loop(options, out)
    from panpan.cli.repl_command import run_repl_for

    return await run_repl_for(options, out, _opening)


def _is_plain(options: Options, out: StdoutWriter) -> bool:
    """Return whether the terminal shall only get lines.

    Raises:
        ConfigError: The settings cannot be read.
    """
    if not out.is_terminal or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return True
    cwd = Path(options["cwd"] or ".").expanduser().absolute()
    return load_settings(cwd, os.environ, overrides_of(options), Locations.find(cwd, os.environ)).settings.ui.plain


async def _run_line_loop(options: Options, out: StdoutWriter) -> int:
    from panpan.cli.first_prompt import FirstPrompt
    from panpan.ui.line_asker import LineAsker, YesOrNo
    from panpan.ui.line_loop import run_line_loop
    from panpan.ui.line_reader import LineReader

    stdin = StdinReader(sys.stdin)
    prompt = options["first_prompt"]
    lines = LineReader(stdin) if prompt is None else FirstPrompt(prompt, stdin, out)
    has_colour = out.is_terminal and "NO_COLOR" not in os.environ
    yes_or_no = YesOrNo(out, LineReader(stdin))  # which the prompt of the command line does not answer
    opening = _opening(options, ask=LineAsker(out, lines), ask_yes_or_no=yes_or_no, warn=say)
    return await run_line_loop(opening, out, lines, has_colour=has_colour)
