"""`panpan` without a subcommand: from the options to a session and the face that shows it."""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import click

from panpan.app import open_session
from panpan.cli.failures import say
from panpan.errors import ConfigError, PanpanError
from panpan.llm.model_choice import NoModelError
from panpan.services.sessions.session import Session
from panpan.types.messages import UserMessage
from panpan.types.permission import Asker
from panpan.ui.headless.face import HeadlessFace
from panpan.ui.stdin import StdinReader
from panpan.ui.stdout import StdoutWriter

SETTING_BY_OPTION = {
    "model": "model",
    "provider": "provider",
    "base_url": "base_url",
    "api_key": "api_key",
    "thinking": "thinking",
    "thinking_budget": "thinking_budget_tokens",
    "effort": "effort",
    "permission_mode": "permission.mode",
    "allowed_tools": "permission.allow",
    "disallowed_tools": "permission.deny",
    "additional_directories": "additional_directories",
    "max_turns": "max_rounds",
    "max_budget_usd": "max_budget_usd",
}
"""Options that are settings, too."""

Options = dict[str, Any]


def run(options: Options) -> int:
    """Run a headless turn or the interactive loop, and return the exit code.

    Raises:
        PanpanError: It could not begin.
        click.UsageError: Options contradict each other.
    """
    _check(options)
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


def _check(options: Options) -> None:
    if options["continues"] and options["resume"]:
        raise click.UsageError("-c and -r exclude each other")
    if options["include_partial_messages"] and options["output_format"] != "stream-json":
        raise click.UsageError("--include-partial-messages goes with --output-format stream-json")
    if options["input_format"] == "stream-json" and options["output_format"] != "stream-json":
        raise click.UsageError("--input-format stream-json goes with --output-format stream-json")
    if options["input_format"] == "stream-json" and options["prompt"]:
        raise click.UsageError("-p TEXT and --input-format stream-json exclude each other")


@asynccontextmanager
async def _opening(
    options: Options, *, ask: Asker | None, is_attended: bool, warn: Callable[[str], None]
) -> AsyncGenerator[Session, None]:
    """Open the session that the options ask for; without a model, say what this machine offers."""
    overrides = {key: options[name] for name, key in SETTING_BY_OPTION.items()}
    for key in ("permission.allow", "permission.deny"):
        overrides[key] = tuple(rule for text in overrides[key] for rule in _rules(text))
    if options["thinking_budget"] is not None and options["thinking"] is None:
        overrides["thinking"] = True
    opening = open_session(
        Path(options["cwd"] or "."),
        overrides=overrides,
        continues=options["continues"],
        resume=options["resume"],
        system_prompt=options["system_prompt"],
        append_system_prompt=options["append_system_prompt"],
        ask=ask,
        says_yes=options["says_yes"],
        is_attended=is_attended,
        warn=warn,
    )
    try:
        async with opening as session:
            yield session
    except NoModelError as error:
        from panpan.llm.local_servers import advice_without_model, find_local_servers

        raise ConfigError(advice_without_model(await find_local_servers())) from error


def _rules(text: str) -> list[str]:
    from panpan.services.permissions.rules import split_rules

    return split_rules(text)


async def _run_headless(options: Options, out: StdoutWriter) -> int:
    from panpan.ui.headless.prompts import prompt_of_text, prompts_of_json_lines
    from panpan.ui.headless.run import run_headless

    async def one_prompt() -> AsyncGenerator[UserMessage, None]:
        has_pipe = not sys.stdin.isatty()
        yield await prompt_of_text(options["prompt"], StdinReader(sys.stdin) if has_pipe else None)

    prompts = one_prompt() if options["input_format"] == "text" else prompts_of_json_lines(StdinReader(sys.stdin))
    warn = (lambda _: None) if options["quiet"] else say
    opening = _opening(options, ask=None, is_attended=False, warn=warn)

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
    return TextFace(out, (lambda line: click.echo(line, err=True)) if shows_progress else None)


async def _run_interactive(options: Options, out: StdoutWriter) -> int:
    from panpan.ui.line_asker import LineAsker
    from panpan.ui.line_loop import run_line_loop
    from panpan.ui.line_reader import LineReader

    lines = LineReader(StdinReader(sys.stdin))
    has_colour = out.is_terminal and "NO_COLOR" not in os.environ
    opening = _opening(options, ask=LineAsker(out, lines), is_attended=True, warn=say)
    return await run_line_loop(opening, out, lines, has_colour=has_colour)
