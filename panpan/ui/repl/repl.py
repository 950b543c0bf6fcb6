"""The REPL of one session: it holds the parts together; how a part works is in its own file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import anyio
from prompt_toolkit.history import History
from prompt_toolkit.input import Input

from panpan.services.sessions.session import Session
from panpan.system.terminal_text import clean_for_terminal
from panpan.ui.repl.asking import Asking, AskingScreen
from panpan.ui.repl.caller import Caller
from panpan.ui.repl.commands.command import Command, Leave, Next, Option
from panpan.ui.repl.dialog_keys import DialogKeys
from panpan.ui.repl.dialog_queue import DialogQueue
from panpan.ui.repl.dialogs.dialog import Dialog
from panpan.ui.repl.dialogs.pick import NothingPicked, PickDialog
from panpan.ui.repl.draft import Draft
from panpan.ui.repl.greeting import greeting
from panpan.ui.repl.hand_over import HandOver
from panpan.ui.repl.inbox import Sent
from panpan.ui.repl.input.completion import InputCompleter
from panpan.ui.repl.input.file_index import FileIndex
from panpan.ui.repl.input.paste import Pastes
from panpan.ui.repl.input_box import InputBox
from panpan.ui.repl.key_actions import KeyActions
from panpan.ui.repl.keys import key_bindings
from panpan.ui.repl.passing_hint import PassingHint
from panpan.ui.repl.queue_rows import queue_rows
from panpan.ui.repl.reflow import reflows
from panpan.ui.repl.rendering.cells import cut
from panpan.ui.repl.screen import ROWS_FOR_INPUT, Screen, Views
from panpan.ui.repl.status_view import StatusView
from panpan.ui.repl.steady_output import SteadyOutput
from panpan.ui.repl.theme import Theme, ThemeName
from panpan.ui.repl.turn_view import TurnView
from panpan.ui.repl.work import Work

WARM_UP_S = 0.3
"""How long after the start the SDK is loaded and files are listed: both keep a processor busy."""


@dataclass(slots=True)
class Desk:
    """What outlives a session: the terminal, how it looks, and what was typed."""

    output: SteadyOutput
    keyboard: Input
    env: Mapping[str, str]
    history: History
    pastes: Pastes
    commands: Sequence[Command]
    asking: Asking
    theme: Theme
    has_vi_keys: bool = False
    left_over: str = ""
    """What was typed and not sent when a session was closed."""


class Repl:
    """One session on the terminal; also what commands may use of it.

    Args:
        session: An open one.
        desk: The terminal it is shown on.
    """

    def __init__(self, session: Session, desk: Desk) -> None:
        self.session = session
        self._desk = desk
        self._next: Next = Leave()
        self._hint = PassingHint(monotonic)
        self._dialogs = DialogQueue(self.refresh, monotonic)
        self._status = StatusView(session, desk.env, self.refresh, self._hint.show)

        self._view = TurnView(self, self._turn_has_begun, self._turn_is_over)
        self._work = Work(self, self._view, desk.commands, self._give_back)

        paths = session.parts.tool_context.paths
        self._files = FileIndex(paths)
        self._box = InputBox(desk.history, InputCompleter(desk.commands, self._files, paths), self._mark, self._example)
        draft = Draft(self._box, desk.pastes)
        self._other_programs = HandOver(draft, self._view.pages, desk.env, self._hint.show)

        actions = KeyActions(
            session, draft, self._work, self._view, self._other_programs, say=self._hint.show, leave=self.leave
        )
        dialog_keys = DialogKeys(self._dialogs, self._work.interrupt_turn)
        self._screen = Screen(
            desk.output,
            desk.keyboard,
            Views(self._live_lines, self._dialog_lines, self._caret, self._queue_lines, self._status_lines),
            self._box,
            key_bindings(actions, dialog_keys, self._box.buffer),
            desk.theme,
            was_drawn=self._dialogs.was_drawn,
            key_pressed=self._key_pressed,
            does_reflow=reflows(desk.env),
        )
        self._caller = Caller(self._screen.send, session.settings.ui.notify, desk.env, session.info.cwd)

    async def run(self, first_prompt: str | None = None) -> Next:
        """Show the session until the user leaves it, and return what comes then."""
        questions = AskingScreen(
            self._dialogs, self._room, lambda: (self.width - 2, self.theme), self._caller.question_waits, self._warn
        )
        self._caller.idle()
        self._screen.use_vi_keys(is_on=self._desk.has_vi_keys)
        self._box.put(self._desk.left_over)
        self.show(*greeting(self.session, self.width, self.theme))
        if first_prompt is not None:
            self._work.send(Sent(first_prompt))
        try:
            with self._desk.asking.shown_by(questions):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._work.run)
                    tasks.start_soon(self._status.run)
                    tasks.start_soon(self._prepare)
                    tasks.start_soon(self._other_programs.run, self._screen)
                    tasks.start_soon(self._screen.draw_frames, self._is_moving)
                    await self._screen.run()
                    tasks.cancel_scope.cancel("the user left")
        finally:
            self._screen.print_pending()
        self._desk.left_over = "\n".join(filter(None, (*self._work.left_over, self._box.text)))
        return self._next

    async def _prepare(self) -> None:
        """Do what makes later things quick, once the first keys have been taken."""
        await anyio.sleep(WARM_UP_S)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._files.run)
            tasks.start_soon(self.session.prepare)

    @property
    def is_terminal_gone(self) -> bool:
        """Whether the session was left because the terminal was closed."""
        return self._screen.is_terminal_gone

    # What commands use

    @property
    def theme(self) -> Theme:
        """How things look."""
        return self._desk.theme

    @property
    def width(self) -> int:
        """Cells of a row."""
        return self._screen.width

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that panpan was started in."""
        return self._desk.env

    def show(self, *lines: str) -> None:
        """Put lines into the scrollback."""
        self._screen.show(*lines)

    def refresh(self) -> None:
        """Draw what is live again with the next frame."""
        self._screen.refresh()

    async def choose(self, title: str, options: Sequence[Option]) -> int | None:
        """Let the user pick one."""
        dialog: Dialog[int | NothingPicked] = PickDialog(title, options)
        picked = await self._dialogs.ask(dialog)
        return None if isinstance(picked, NothingPicked) else picked

    def submit(self, prompt: str) -> None:
        """Begin a turn, or queue it."""
        self._work.submit(prompt)

    def use_theme(self, name: ThemeName) -> None:
        """Show everything from now on in another theme."""
        self._desk.theme = Theme(name, has_sequences=self._desk.theme.has_sequences)
        self._screen.use_theme(self._desk.theme)

    def toggle_vim(self) -> bool:
        """Switch the keys of vi on or off."""
        self._desk.has_vi_keys = not self._desk.has_vi_keys
        self._screen.use_vi_keys(is_on=self._desk.has_vi_keys)
        return self._desk.has_vi_keys

    def leave(self, then: Next) -> None:
        """Close the session."""
        self._next = then
        self._work.close()
        self._screen.close()

    def interrupt(self) -> bool:
        """End what runs, as for a signal; return whether something runs that had not been told to end before."""
        return self._screen.is_handed_over or self._work.interrupt()

    # What the screen shows

    def _live_lines(self, width: int) -> Sequence[str]:
        rows = [*self._view.live_lines(width), *self._work.shell_lines(width)]
        taken = len(self._dialog_lines(width)) + len(self._queue_lines(width))
        room = max(self._room() - taken, 0)  # a question stands whole
        return rows[len(rows) - min(len(rows), room) :]

    def _dialog_lines(self, width: int) -> Sequence[str]:
        dialog = self._dialogs.current
        return () if dialog is None else dialog.lines(width, self.theme)

    def _caret(self) -> tuple[int, int] | None:
        dialog = self._dialogs.current
        return dialog.cursor if dialog is not None and self._dialogs.takes_keys else None

    def _queue_lines(self, width: int) -> Sequence[str]:
        if self._dialogs.current is not None:  # a question needs the room
            return ()
        return queue_rows(self._work.waiting, width, self.theme)

    def _status_lines(self, width: int) -> Sequence[str]:
        if hint := self._hint.text:
            return [self.theme.paint("warn", cut(f"  {clean_for_terminal(hint)}", width))]
        return self._status.lines(width, self.theme)

    def _mark(self) -> str:
        if self._box.text.startswith("!"):
            return self.theme.paint("warn", "! ")
        if self.session.permission_mode == "plan":
            return self.theme.paint("plan", "⏸ ")
        return self.theme.paint("accent", "❯ ")

    def _example(self) -> str:
        if self.session.conversation.messages or self._work.is_busy:
            return ""
        return self.theme.paint("dim", "what shall be done?  / commands  @ files  ! shell  ? keys")

    def _room(self) -> int:
        return max(self._screen.rows - ROWS_FOR_INPUT, 1)

    def _is_moving(self) -> bool:
        return self._work.is_busy or self._hint.is_moving()

    # What comes from below

    def _turn_has_begun(self) -> None:
        self._caller.begun()

    def _turn_is_over(self, duration_s: float) -> None:
        self._caller.turn_is_over(duration_s)
        self._status.turn_ended()

    def _warn(self, text: str) -> None:
        self.show(*(self.theme.paint("warn", row) for row in clean_for_terminal(text).split("\n")))

    def _give_back(self, text: str) -> None:
        self._box.put(text)
        self.refresh()

    def _key_pressed(self) -> None:
        if not self._dialogs.takes_keys:
            self._dialogs.typed_elsewhere()
