"""`panpan` with nobody at the other end: from the options to a run that prints its result."""

import sys
from collections.abc import AsyncGenerator
from contextlib import suppress

import click

from panpan.cli.session_opening import session_of
from panpan.cli_kit.failures import say
from panpan.cli_kit.options import Options
from panpan.cli_kit.stdout import StdoutWriter
from panpan.errors import PanpanError
from panpan.faces.headless.face import HeadlessFace
from panpan.faces.stdin import StdinReader
from panpan.session.session import Session
from panpan.types.agent import AgentKinds


async def run_headless_for(options: Options, out: StdoutWriter) -> int:
    """Run the prompts that the options and standard input give, and return the exit code.

    Raises:
        PanpanError: The session could not be opened, or the output not be written.
    """
    from panpan.faces.headless.prompts import Prompt, prompt_of_text, prompts_of_json_lines
    from panpan.faces.headless.run import run_headless

    async def one_prompt() -> AsyncGenerator[Prompt, None]:
        has_pipe = not sys.stdin.isatty()
        words = options["prompt"] or options["first_prompt"]
        yield Prompt(await prompt_of_text(words, StdinReader(sys.stdin) if has_pipe else None, warn))

    prompts = one_prompt() if options["input_format"] == "text" else prompts_of_json_lines(StdinReader(sys.stdin))
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
        has_one_prompt=options["input_format"] == "text",
    )


def _face(options: Options, session: Session, out: StdoutWriter) -> HeadlessFace:
    if options["output_format"] == "json":
        from panpan.faces.headless.output_formats import JsonFace

        return JsonFace(out, session.info.id)
    if options["output_format"] == "stream-json":
        from panpan.faces.headless.output_formats import StreamJsonFace

        agents = session.find(AgentKinds)
        return StreamJsonFace(
            out,
            session.info,
            has_partial_messages=options["include_partial_messages"],
            commands=session.commands.names,
            agents=() if agents is None else agents.names,
        )
    from panpan.faces.headless.output_formats import TextFace

    shows_progress = options["verbose"] or (sys.stderr.isatty() and not options["quiet"])
    return TextFace(out, _note if shows_progress else None)


def _note(line: str) -> None:
    with suppress(OSError):  # nobody reads standard error any more
        click.echo(line, err=True)
