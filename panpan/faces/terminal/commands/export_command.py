"""/export: this session as a file."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from anyio import to_thread

from panpan.core.command import Command, Terminal
from panpan.faces.terminal.screen.canvas import say
from panpan.system.text.terminal_text import clean_line
from panpan.version import __version__


async def _export(terminal: Terminal, wanted: str) -> None:
    from panpan.config.known_secrets import known_secrets
    from panpan.session.export.of_log import subagent_transcripts
    from panpan.session.export.transcript import Transcript
    from panpan.session.export.write import export_session
    from panpan.system.text.redact import Redactor

    session = terminal.session
    if not session.conversation.messages:
        say(terminal, "nothing has been said in this session yet, so there is nothing to export")
        return
    info = session.info
    transcript = Transcript(
        session_id=info.id,
        title=session.title or "",
        model=info.model,
        cwd=str(info.cwd),
        panpan_version=__version__,
        exported_at=datetime.now().astimezone(),
        messages=tuple(session.conversation.messages),
        compactions=tuple(session.conversation.compactions),
        git_branch=session.git_branch,
        subagents=await to_thread.run_sync(partial(subagent_transcripts, session.log_path, panpan_version=__version__)),
    )
    redactor = Redactor(known_secrets(terminal.env, session.settings))
    path = await export_session(transcript, redactor, folder=info.cwd, wanted=_unquoted(wanted))
    say(terminal, f"written to {clean_line(str(path))}; only you can read it, and keys were taken out", "good")


def _unquoted(path: str) -> str:
    """Return a path without the quotes that a shell would want around blanks."""
    return path[1:-1] if len(path) > 1 and path[0] == path[-1] and path[0] in "'\"" else path


EXPORT_COMMANDS: Sequence[Command] = (
    Command(
        "export",
        "Write this session to a file: .md, .html, .json or .jsonl",
        _export,
        arguments="[file]",
        is_immediate=True,
    ),
)
