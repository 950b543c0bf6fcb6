"""The interactive loop in its plainest form: a prompt, a turn, a prompt."""

from contextlib import AbstractAsyncContextManager, aclosing

import anyio

from panpan.core.single_exception import unwrap_single_exception
from panpan.errors import PanpanError
from panpan.services.reply_limits import note_on_end
from panpan.services.sessions.session import Session
from panpan.system.terminal_text import clean_for_terminal
from panpan.types.messages import AssistantMessage
from panpan.ui.line_face import LineFace
from panpan.ui.line_reader import LineReader
from panpan.ui.signals import Received, watch_signals
from panpan.ui.stdout import StdoutWriter

PROMPT = "❯ "
ASKING_FOR_HELP = {"help", "/help", "?"}
HELP = """\
Type what you want done; each line is a prompt of its own.
  Ctrl+C     ends what runs; at the prompt it leaves
  exit       leaves, as Ctrl+D does; panpan -c goes on where you were
  questions  y is yes, a is always, n is no; anything else is a no with your words for the model
"""
LEAVING = {"exit", "quit", "q", "/exit", "/quit", "/q"}


async def run_line_loop(
    opening: AbstractAsyncContextManager[Session], out: StdoutWriter, lines: LineReader, *, has_colour: bool
) -> int:
    """Take prompts until the user leaves, and return the exit code.

    Raises:
        PanpanError: The session could not be opened.
    """
    received = Received()
    with unwrap_single_exception():
        async with anyio.create_task_group() as task_group, opening as session:
            stop = task_group.cancel_scope.cancel
            task_group.start_soon(lambda: watch_signals(received, interrupt=session.interrupt, stop=stop))
            face = LineFace(out, has_colour=has_colour)
            info = session.info
            await out.write(
                f"panpan in {info.cwd}, mode {info.permission_mode}: {info.choice}\n'help' tells the keys\n"
            )
            while (prompt := await _ask_for_prompt(out, lines)) is not None:
                if not prompt:
                    continue
                if prompt.lower() in ASKING_FOR_HELP:
                    await out.write(HELP)
                    continue
                await _show_turn(session, prompt, face, out)
                if received.exit_code is not None:
                    break
            if session.conversation.messages:
                await out.write(f"to go on from here: panpan -c, or panpan -r {info.id}\n")
            stop("the user left")
    return received.exit_code or 0


async def _ask_for_prompt(out: StdoutWriter, lines: LineReader) -> str | None:
    """Return what the user typed, or None when he leaves."""
    await out.write(PROMPT)
    line = await lines.next()
    if line is None:
        await out.write("\n")
        return None
    return None if line.strip().lower() in LEAVING else line.strip()


async def _show_turn(session: Session, prompt: str, face: LineFace, out: StdoutWriter) -> None:
    last_reply: AssistantMessage | None = None
    try:
        async with aclosing(session.submit(prompt)) as events:
            async for event in events:
                await face.show(event)
                if isinstance(event, AssistantMessage):
                    last_reply = event
    except PanpanError as error:
        await face.end_line()
        await out.write(f"panpan: {clean_for_terminal(str(error))}\n")
        return
    if last_reply is not None and (note := note_on_end(last_reply)):
        await out.write(f"panpan: {note}\n")
