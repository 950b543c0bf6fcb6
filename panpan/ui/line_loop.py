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
AGAIN_S = 3.0
"""How soon a second Ctrl+C has to follow to leave; a later one has a line of its own to drop."""
HOW_TO_LEAVE = "press Ctrl+C again or Ctrl+D to leave"
ASKING_FOR_HELP = {"help", "/help", "?"}
HELP = """\
Type what you want done, then Enter; lines that are pasted together are one prompt.
  Ctrl+C     ends what runs; at the prompt it drops the line, and twice it leaves
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
            loop = _LineLoop(session, out, lines, LineFace(out, has_colour=has_colour))
            stop = task_group.cancel_scope.cancel
            task_group.start_soon(
                lambda: watch_signals(received, interrupt=loop.interrupt, stop=stop, may_leave=loop.may_leave)
            )
            await loop.run(received)
            stop("the user left")
    return received.exit_code or 0


class _LineLoop:
    """Prompts and turns of one session, and what Ctrl+C does in each."""

    def __init__(self, session: Session, out: StdoutWriter, lines: LineReader, face: LineFace) -> None:
        self._session = session
        self._out = out
        self._lines = lines
        self._face = face
        self._is_in_turn = False
        self._warned_at = float("-inf")
        """When the user was told how to leave, in seconds of the event loop's clock."""

    async def run(self, received: Received) -> None:
        """Take prompts until the user leaves, or a signal has come that ends the process."""
        info = self._session.info
        await self._out.write(
            f"panpan in {info.cwd}, mode {info.permission_mode}: {info.choice}\n'help' tells the keys\n"
        )
        while received.exit_code is None and (prompt := await self._ask_for_prompt()) is not None:
            if prompt.lower() in ASKING_FOR_HELP:
                await self._out.write(HELP)
            elif prompt:
                await self._show_turn(prompt)
        await self._say_how_to_go_on()

    def interrupt(self) -> bool:
        """End the running turn, and forget what is half typed; return whether there was a turn to end."""
        self._lines.forget()
        return self._session.interrupt()

    async def may_leave(self) -> bool:
        """Return whether a Ctrl+C that ended no turn leaves; at the prompt, only one that follows another does."""
        if self._is_in_turn:  # it was told to end before, and does not
            return True
        if anyio.current_time() - self._warned_at < AGAIN_S:
            await self._out.write("\n")
            await self._say_how_to_go_on()
            return True
        self._warned_at = anyio.current_time()
        await self._out.write(f"\n{HOW_TO_LEAVE}\n{PROMPT}")
        return False

    async def _ask_for_prompt(self) -> str | None:
        """Return what the user typed, or None when he leaves."""
        await self._out.write(PROMPT)
        text = await self._lines.next()
        if text is None:
            await self._out.write("\n")
            return None
        prompt = text.strip()
        # typed more than once while a turn ran, it comes as several lines
        return None if {line.strip().lower() for line in prompt.split("\n")} <= LEAVING else prompt

    async def _show_turn(self, prompt: str) -> None:
        self._warned_at = float("-inf")
        self._is_in_turn = True
        last_reply: AssistantMessage | None = None
        try:
            async with aclosing(self._session.submit(prompt)) as events:
                async for event in events:
                    await self._face.show(event)
                    if isinstance(event, AssistantMessage):
                        last_reply = event
        except PanpanError as error:
            await self._face.end()
            await self._out.write(f"panpan: {clean_for_terminal(str(error))}\n")
            return
        finally:
            self._is_in_turn = False
        if last_reply is not None and (note := note_on_end(last_reply)):
            await self._out.write(f"panpan: {note}\n")

    async def _say_how_to_go_on(self) -> None:
        if self._session.conversation.messages:
            await self._out.write(f"to go on from here: panpan -c, or panpan -r {self._session.info.id}\n")
