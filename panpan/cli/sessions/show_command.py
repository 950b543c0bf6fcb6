"""`panpan sessions show`: what was said in a session, as it was shown."""

import os
import sys
from pathlib import Path

import anyio
import click

from panpan.cli.sessions.common import CWD, JSON, locations_of, log_of
from panpan.cli_kit.stdout import StdoutWriter
from panpan.config.known_secrets import secrets_of_run
from panpan.faces.plain.line_face import LineFace
from panpan.session.export.transcript import (
    Transcript,
    compaction_told,
    facts_of,
    title_of,
    transcript_of,
    without_secrets,
)
from panpan.session.export.write import SUFFIX_BY_FORMAT, exported_text
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.compaction import Compaction
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Message
from panpan.version import __version__


@click.command("show")
@click.argument("session")
@JSON
@CWD
@click.pass_context
def command(ctx: click.Context, session: str, as_json: bool, cwd: Path | None) -> int:
    """Print what was said in SESSION: its id, title or first words. Keys, and what looks like one, are taken out."""
    locations = locations_of(ctx, cwd)
    transcript = transcript_of(log_of(locations, session), panpan_version=__version__)
    redactor = Redactor(secrets_of_run(locations, os.environ))
    if as_json:
        click.echo(exported_text(transcript, redactor, SUFFIX_BY_FORMAT["json"]), nl=False)
        return 0
    anyio.run(_show, without_secrets(transcript, redactor))
    return 0


async def _show(transcript: Transcript) -> None:
    out = StdoutWriter(sys.stdout)
    await out.write(f"{title_of(transcript)}\n")
    for name, text in facts_of(transcript):
        if name != "Exported":
            await out.write(f"{name}: {text}\n")
    await out.write("\n")
    face = LineFace(out, has_colour=out.is_terminal and "NO_COLOR" not in os.environ)
    said: list[Message] = []
    for part in transcript.parts:
        if not isinstance(part, Compaction):
            said.append(_harmless(part))
            continue
        await face.show_all(said)
        said.clear()
        await out.write(f"… {compaction_told(part)[0]}\n")
    await face.show_all(said)


def _harmless(message: Message) -> Message:
    """Return a message whose text drives no terminal, also behind a pipe: what is shown is read, and not worked on."""
    if not isinstance(message, AssistantMessage):
        return message  # the face makes them harmless, wherever they go
    content = [
        block.model_copy(update={"text": clean_for_terminal(block.text)}) if isinstance(block, TextBlock) else block
        for block in message.content
    ]
    return message.model_copy(update={"content": tuple(content)})
