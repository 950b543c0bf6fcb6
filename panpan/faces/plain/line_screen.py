"""Screen for terminals that cannot move the cursor: questions are printed as lines, and answers are typed as lines.

The rule: nothing is printed while the user types; output waits until they are done.
"""

import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from panpan.cli_kit import failures
from panpan.cli_kit.failures import StdoutWriter
from panpan.faces.plain.line_face import LineFace
from panpan.faces.plain.line_reader import LineReader
from panpan.faces.terminal.background_watch import ExitRequest
from panpan.faces.terminal.dialogs.dialog import NARROWEST, Dialog
from panpan.faces.terminal.input.keys import SECOND_PRESS_S, SentPrompt
from panpan.faces.terminal.prompt_queue import PromptQueue
from panpan.faces.terminal.rendering.cells import say
from panpan.faces.terminal.rendering.displays import printed_rows_of
from panpan.faces.terminal.screen.external_program import EditorFailed, edit_in_editor
from panpan.faces.terminal.screen.screen import T
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import WaitingTime
from panpan.session.command import Leave
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import Display
from panpan.types.events import Event
from panpan.types.messages import Message, UserMessage
from panpan.types.permission import PermissionQuestion

PROMPT = "❯ "
HOW_TO_LEAVE = "press Ctrl+C again or Ctrl+D to leave"
DROPPED = "(your input before this question was dropped)\n"
LEAVING = {"exit", "quit", "q", "/exit", "/quit", "/q"}
"""Lines that leave; several of them, typed during a turn, arrive as one text."""

CUT = "not sent: the terminal keeps 4,095 bytes of a line; break it up, or put it into a file and mention that with @"

_MOST_LINE_BYTES = 4_095
"""Most bytes that Linux keeps of a line that is typed or pasted; it drops the rest without a word."""
_POLL_S = 0.02
"""Seconds between two checks for unfinished work."""
_AT_END_S = 0.5
"""Seconds that the terminal has to take the last lines."""
_MOST_ENDS = 1
"""Ctrl+D at the prompt in a row; after more of them, nobody is there to answer."""

Printing = Callable[[LineFace], Awaitable[None]]


class LineScreen:
    """Prints one session after the other; implements `Screen`.

    Args:
        out: Standard output.
        lines: Reads the lines that the user types.
        env: The environment that panpan was started in.
        waiting: Time spent waiting for the user.
        has_colour: True if headings are bold, notes dim and diffs coloured.
    """

    look = None
    room = sys.maxsize

    def __init__(
        self, out: StdoutWriter, lines: LineReader, env: Mapping[str, str], waiting: WaitingTime, *, has_colour: bool
    ) -> None:
        self.theme = Theme("plain", has_sequences=has_colour)
        self.view = LineView(self)
        self._out = out
        self._lines = lines
        self._env = env
        self._face = LineFace(out, has_colour=has_colour, waiting=waiting)
        self._unprinted = deque[Printing]()
        self._has_more = anyio.Event()
        self._has_printed = anyio.Event()
        self._printer = anyio.CancelScope()
        self._is_serving = False
        """True while a session is shown."""
        self._is_typing = False
        """True while the user may type, and nothing is printed."""
        self._is_handed_over = False
        """True while another program has the terminal, such as an editor, which then also gets Ctrl+C."""
        self._keyboard = anyio.Lock()
        self._at_prompt: anyio.CancelScope | None = None
        """Scope of the prompt; a question cancels it, since questions go first."""
        self._at_question: anyio.CancelScope | None = None
        """Scope of the question; Ctrl+C cancels it, and the question is printed again unless it was withdrawn."""
        self._question: Dialog[Any] | None = None
        """Question that waits for the user's answer."""
        self._warned_at_s = float("-inf")
        self._ends = 0
        """Ends of input (Ctrl+D) at the prompt since the last typed line."""

    @property
    def width(self) -> int:
        return self._face.width

    def put(self, printing: Printing) -> None:
        """Print in order, as soon as the user does not type."""
        self._unprinted.append(printing)
        self._has_more.set()

    def show(self, *lines: str) -> None:
        self.put(lambda face: face.rows(lines))

    def warn(self, text: str) -> None:
        """Print a warning: with a session behind what the user types, else at once to standard error."""
        if self._is_serving:
            say(self, f"panpan: {text}", "warn")
        else:
            failures.say(text)

    def echo(self, *lines: str) -> None:
        """Print nothing: the terminal has shown what was typed."""

    def refresh(self) -> None:
        """Print nothing: lines cannot be redrawn."""

    async def drain(self) -> None:
        """Wait until everything is printed, but not while the user may type, which may take long."""
        await checkpoint()
        while self._unprinted and not self._is_typing:
            await self._has_printed.wait()

    async def ask(self, dialog: Dialog[T]) -> T:
        if dialog.is_transient:
            self.show(*dialog.as_lines(self._room, self.theme))
            dialog.press("escape")
        while dialog.answer is None:
            if self._at_prompt is not None:
                self._at_prompt.cancel("a question goes first")
            async with self._typing():
                self._question = dialog
                try:
                    await self._put(dialog)
                finally:
                    self._question = None
        return dialog.answer

    async def _put(self, dialog: Dialog[T]) -> None:
        """Print a question and take lines until it is answered or Ctrl+C comes."""
        with anyio.CancelScope() as self._at_question:
            try:
                # text that was typed before the question appeared does not answer it
                note = DROPPED if await self._lines.drop_typed_ahead() else ""
                while dialog.answer is None:
                    await self._out.write("\n" + note + "\n".join(dialog.as_lines(self._room, self.theme)))
                    note = self._take(await self._next(), dialog)
            except anyio.get_cancelled_exc_class():
                self._unprinted.appendleft(lambda face: face.rows([""]))
                raise
            finally:
                self._at_question = None

    def _take(self, said: str | None, dialog: Dialog[T]) -> str:
        """Pass a typed line to a dialog and return the problem with it."""
        if said is None:
            dialog.press("c-c")
            return ""
        problem = dialog.take_line(said.strip("\x1b \t"))
        return f"{problem}\n" if problem else ""

    def question_waits(self) -> None:
        """Notify nobody: the user reads along."""

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        """Print everything, or with `from_end` the last rows."""
        self.show(*printed_rows_of(shapes, self._room, self.theme, from_end=from_end))

    async def edited(self, text: str) -> str | EditorFailed:
        async with self.released():
            return await edit_in_editor(text, self._env, self._tell_of)

    def _tell_of(self, file: Path) -> None:
        say(self, f"the editor's saved text is in {file}")

    @asynccontextmanager
    async def released(self) -> AsyncGenerator[None, None]:
        async with self._typing():
            self._is_handed_over = True
            try:
                yield
            finally:
                self._is_handed_over = False

    def prefill_input(self, text: str) -> None:
        """Print the text so that it can be copied: there is no input box that could hold it."""
        say(self, "what you said:", "dim")
        self.show(*clean_for_terminal(text).splitlines())

    def return_prompt(self, text: str) -> None:
        say(self, "not done:", "dim")
        self.show(*clean_for_terminal(text).splitlines())

    def interrupted(self) -> bool:
        """Forget the half-typed text, as the terminal does, and print an open question again unless it is withdrawn."""
        self._lines.forget()
        self._ends = 0
        if not self._is_typing:
            self._face.note_echo()  # the terminal has echoed ^C
        if self._at_question is not None:
            self._at_question.cancel("Ctrl+C")
        return self._is_handed_over

    async def may_leave(self) -> bool:
        """Return True if a Ctrl+C that stopped nothing leaves: the second in a row does, and the first explains it.

        It declines an open question instead. If no session is shown yet, it leaves at once.
        """
        if not self._is_serving:
            return True
        if self._question is not None:
            self._question.press("c-c")
            return False
        before_s, self._warned_at_s = self._warned_at_s, anyio.current_time()
        if self._warned_at_s - before_s < SECOND_PRESS_S:
            return True
        await self._out.write(f"\n{HOW_TO_LEAVE}\n{PROMPT if self._at_prompt is not None else ''}")
        return False

    async def say_last(self, line: str, *, is_after_signal: bool) -> None:
        """Print the last line; after a signal, begin a new row first.

        Raises:
            OSError: The terminal is gone.
            OutputError: The terminal takes no output.
        """
        with anyio.move_on_after(_AT_END_S):
            await self._out.write(f"\n{line}\n" if is_after_signal else f"{line}\n")

    @asynccontextmanager
    async def serving(
        self, prompts: PromptQueue, exit_request: ExitRequest, first_prompt: str | None
    ) -> AsyncGenerator[None, None]:
        self._is_serving, self._printer = True, anyio.CancelScope(shield=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._print)
            tasks.start_soon(self._take_prompts, prompts, exit_request, first_prompt)
            try:
                yield
            finally:
                self._is_serving, self._printer.deadline = False, anyio.current_time() + _AT_END_S
                self._has_more.set()
                tasks.cancel_scope.cancel("the user left")

    async def _take_prompts(self, prompts: PromptQueue, exit_request: ExitRequest, first_prompt: str | None) -> None:
        text = first_prompt
        while True:
            while not prompts.is_settled:  # noqa: ASYNC110 - there is no event to wait for
                await anyio.sleep(_POLL_S)
            if text is not None:
                self.show(f"{PROMPT}{clean_for_terminal(text)}")
            elif (text := await self._typed()) is None:
                self._ends += 1
                if self._ends > _MOST_ENDS:
                    exit_request.request_now()
                else:
                    exit_request.request(Leave())
                continue
            elif any(len(line.encode()) >= _MOST_LINE_BYTES for line in text.split("\n")):
                say(self, CUT, "warn")
                text = None
                continue
            prompt, text, self._warned_at_s = text.strip(), None, float("-inf")
            if {line.strip().lower() for line in prompt.split("\n")} <= LEAVING:
                prompts.send(SentPrompt("/exit"))
            elif prompt:
                prompts.send(SentPrompt(prompt))

    async def _typed(self) -> str | None:
        """Return the text that the user types at the prompt; None at the end of the input."""
        while True:
            try:
                with anyio.CancelScope() as self._at_prompt:
                    async with self._typing():
                        # what was typed ahead was echoed further up, and a log gets no echo
                        has_no_echo = await self._lines.has_more() or not self._out.is_terminal
                        await self._out.write(PROMPT)
                        try:
                            text = await self._next()
                        except anyio.get_cancelled_exc_class():
                            if self._unprinted:
                                self._unprinted.appendleft(lambda face: face.rows([""]))
                            raise
                        if has_no_echo and text is not None:
                            self.show(clean_for_terminal(text))
                        return text
            finally:
                self._at_prompt = None

    async def _next(self) -> str | None:
        """Return the next typed text; None at the end of the input, such as Ctrl+D, after which more may follow."""
        if (text := await self._lines.next()) is None:
            await self._out.write("\n")
            self._lines.go_on()
        else:
            self._ends = 0
        return text

    @property
    def _room(self) -> int:
        return max(self.width, NARROWEST)

    @asynccontextmanager
    async def _typing(self) -> AsyncGenerator[None, None]:
        """Print all waiting output, then let the user type; later output waits until the block is left."""
        may_type = anyio.Event()

        async def begin(face: LineFace) -> None:
            self._is_typing = True
            may_type.set()

        async with self._keyboard:
            self.put(begin)
            try:
                await may_type.wait()
                yield
            finally:
                self._is_typing = False
                if begin in self._unprinted:
                    self._unprinted.remove(begin)
                self._has_more.set()

    async def _print(self) -> None:
        """Print output in whole pieces, also during an interrupt; when the user leaves, the rest has `_AT_END_S`."""
        with self._printer:
            while self._is_serving or self._unprinted:
                await self._has_more.wait()
                self._has_more = anyio.Event()
                while self._unprinted and not (self._is_typing and self._is_serving):
                    printing = self._unprinted[0]
                    await printing(self._face)
                    self._unprinted.remove(printing)
                    self._has_printed.set()
                    self._has_printed = anyio.Event()


class LineView:
    """Prints turns on a screen of lines; implements `TurnRenderer`."""

    is_moving = False

    def __init__(self, screen: LineScreen) -> None:
        self._screen = screen

    async def show_past(self, messages: Sequence[Message]) -> None:
        self._screen.put(lambda face: face.show_past(messages))

    def begin(self, prompt: UserMessage | None) -> None:
        """Print nothing: the prompt is on the screen already, or comes with `prompt_came`."""

    def prompt_came(self, prompt: UserMessage) -> None:
        self._screen.put(lambda face: face.show_all([prompt]))

    def show(self, event: Event) -> None:
        self._screen.put(lambda face: face.show(event))

    async def drain(self) -> None:
        await self._screen.drain()

    def note(self, text: str) -> None:
        say(self._screen, text, "warn")

    def fail(self, message: str) -> None:
        say(self._screen, f"✗ {message}", "bad")

    def end(self) -> None:
        self._screen.put(lambda face: face.end())

    def keep_plan(self, text: str) -> None:
        """Print nothing: the plan is on the screen already."""

    def is_of_turn(self, question: PermissionQuestion) -> bool:
        return True
