"""The REPL of one session: it holds the parts together; how a part works is in its own file."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from time import monotonic

import anyio

from panpan.cli_kit.questions import TerminalQuestions
from panpan.config.locations import Locations
from panpan.config.ui_look import ThemeSetting
from panpan.core.background import Background
from panpan.core.tool import looking_step
from panpan.faces.session_change import SessionChange
from panpan.faces.terminal.background_watch import BackgroundWatch, Leaving
from panpan.faces.terminal.commands.registry import with_further
from panpan.faces.terminal.dialogs.asking import Asking, AskingScreen
from panpan.faces.terminal.dialogs.dialog_queue import DialogKeys, DialogQueue
from panpan.faces.terminal.dialogs.panel import PanelDialog, watched
from panpan.faces.terminal.dialogs.pick import picked
from panpan.faces.terminal.input.completion import FileIndex, InputCompleter
from panpan.faces.terminal.input.draft import ClipboardPaste
from panpan.faces.terminal.input.key_actions import KeyActions
from panpan.faces.terminal.input.keys import DraftKeys, SecondPress, Sent, key_bindings
from panpan.faces.terminal.prompt_queue import PromptQueue
from panpan.faces.terminal.rendering.cells import say
from panpan.faces.terminal.rendering.displays import pager_rows, show_displays
from panpan.faces.terminal.screen.external_program import ExternalProgram
from panpan.faces.terminal.screen.footer import Footer, PassingHint, TodosView
from panpan.faces.terminal.screen.notify import Attention
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.screen.windows import Contents, DialogView
from panpan.faces.terminal.terminal_state import TerminalState
from panpan.faces.terminal.views.status import StatusView
from panpan.faces.terminal.views.turn_view import AroundTurn, TurnView, greeting
from panpan.session.command import Command, Leave, Look, Next, Option, OptionSearch, Questions
from panpan.session.log.agent_log import PastSubagents
from panpan.session.session import Session
from panpan.types.agent import AgentKinds
from panpan.types.content import ChecklistDisplay, ChecklistItem, Display
from panpan.types.messages import UserMessage

WARM_UP_S = 0.3
"""How long after the start the SDK is loaded and files are listed: both keep a processor busy."""


class Repl:
    """One session on the terminal; also what commands may use of it.

    Args:
        session: An open one.
        state: The terminal it is shown on.
        commands: What `/` offers.
        asking: Puts the session's questions to the user.
    """

    def __init__(self, session: Session, state: TerminalState, commands: Sequence[Command], asking: Asking) -> None:
        self.session = session
        self._state = state
        self._screen = state.screen
        self._asking = asking
        self._waited_before_s = asking.waiting.answered_s
        self._hint = PassingHint(monotonic)
        self._dialogs = DialogQueue(self.refresh, monotonic, lambda: bool(state.draft.text), state.draft.insert)
        self._status = StatusView(session, state.env, lambda: state.screen.vi_mode, self.refresh, self._hint.show)
        self._todos = TodosView(partial(_todos_of, session))
        definitions, background = session.find(AgentKinds), session.find(Background)
        kinds = () if definitions is None else definitions.all
        colours = {one.name: one.color for one in kinds}
        around = AroundTurn(
            has_begun=self._turn_has_begun,
            is_over=self._turn_is_over,
            is_asking=self._is_asking,
            can_move=lambda: background is not None and bool(background.movable),
            doing=lambda: self._todos.doing,
            asked_about=lambda: asking.asked_about,
            spent_usd=lambda: session.budget.spent.known_usd,
        )
        self._view = TurnView(
            self,
            session.conversation,
            around,
            waiting=asking.waiting,
            subagents=session.find(PastSubagents),
            colour_of=lambda kind: colours.get(kind, ""),
            step_of=lambda use: looking_step(use, session.agent.model.tools),
        )
        self._prompts = PromptQueue(self, self._view, commands, self._give_back)
        self._leaving = Leaving(session, self._prompts, self)
        self._background = BackgroundWatch(
            background, lambda line: say(self, f"\n{line}", "dim"), self._prompts.wake, self.refresh
        )
        self._footer = Footer(
            session,
            state,
            dialogs=self._dialogs,
            view=self._view,
            todos=self._todos,
            prompts=self._prompts,
            status=self._status,
            hint=self._hint,
        )
        paths = session.agent.context.paths
        self._files = FileIndex(paths)
        agents = {one.name: " ".join(one.description.split()) for one in kinds}
        self._completer = InputCompleter(commands, self._files, paths, lambda command: command.offers(session), agents)
        self._external_program = ExternalProgram(state.draft, self._view.transcript, state.env, self._hint.show)
        self._clipboard = ClipboardPaste(state.draft, state.env, session.folders.add, self._hint.show)
        self._second_press = SecondPress(monotonic)
        self._actions = KeyActions(
            session,
            DraftKeys(state.draft, self._second_press, self._hint.show),
            self._prompts,
            self._view,
            self._todos,
            external_program=self._external_program,
            paste_picture=self._clipboard.want,
            leaving=self._leaving,
        )
        self._attention = Attention(self._screen.send, session.settings.ui.notify, state.env, session.info.cwd)

    async def run(self, first_prompt: str | None, *, shows_past: bool) -> Next:
        """Show the session until the user leaves it, and return what comes then.

        Args:
            first_prompt: Sent at once.
            shows_past: Whether its last turns are shown again; they may be on the screen still.
        """
        questions = AskingScreen(
            self._dialogs,
            room=self._room_for_dialog,
            look=lambda: (self.width, self.theme),
            note_waiting=self._attention.question_waits,
            edit=lambda text: self._external_program.edited(text, self._screen),
            shown=Locations.find(self.session.info.cwd, self.env).shown,
            keep_plan=self._view.keep_plan,
            is_of_turn=self._view.is_of_turn,
        )
        self._attention.idle()
        self._state.box.serve(self._completer, self._footer.mark, self._footer.example)
        self._screen.use(self._contents())
        self.show(*greeting(self.session, self.width, self.theme))
        if first_prompt is not None:
            self._prompts.send(Sent(first_prompt))
        self._state.waiting.hand_over(self._actions, self._prompts.send)
        try:
            if shows_past:
                await self._view.show_past(self.session.conversation.messages)
            with self._asking.shown_by(questions):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._prompts.run)
                    tasks.start_soon(self._status.run)
                    tasks.start_soon(self._prepare)
                    tasks.start_soon(self._external_program.run, self._screen)
                    tasks.start_soon(self._clipboard.run)
                    tasks.start_soon(self._background.run)
                    await self._leaving.wait()
                    tasks.cancel_scope.cancel("the user left")
        finally:
            self._keep_left_over()
        return self._leaving.then

    def _keep_left_over(self) -> None:
        """Let the next session have what nobody got; where there is none, it is told at the end."""
        if isinstance(self._leaving.then, Leave):
            self._state.take_back(sent.text for sent in self._prompts.left_over)
        else:
            self._state.waiting.take(self._prompts.left_over)

    async def _prepare(self) -> None:
        """Do what makes later things quick, once the first keys have been taken."""
        await anyio.sleep(WARM_UP_S)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._files.run)
            tasks.start_soon(self.session.prepare)

    # What commands use

    @property
    def theme(self) -> Theme:
        return self._state.theme

    @property
    def theme_setting(self) -> ThemeSetting:
        return self._state.look.setting

    @property
    def width(self) -> int:
        return self._screen.width

    @property
    def waited_s(self) -> float:
        return self._asking.waiting.answered_s - self._waited_before_s

    @property
    def env(self) -> Mapping[str, str]:
        return self._state.env

    def show(self, *lines: str) -> None:
        self._screen.show(*lines)

    def display(self, *shapes: Display) -> None:
        show_displays(self, shapes)

    def refresh(self) -> None:
        self._screen.refresh()

    async def caught_up(self) -> None:
        await self._screen.caught_up()

    async def choose(self, title: str, options: Sequence[Option], search: OptionSearch | None = None) -> int | None:
        return await picked(self._dialogs, title, options, search, room=self._room_for_dialog, refresh=self.refresh)

    async def show_panel(self, sections: Mapping[str, Display]) -> None:
        await self._dialogs.ask(PanelDialog(sections, room=self._room_for_dialog))

    @asynccontextmanager
    async def questions(self) -> AsyncGenerator[Questions, None]:
        async with self._screen.handed_over():
            yield TerminalQuestions()

    async def watch(self, look: Look) -> None:
        await watched(self._dialogs, look, room=self._room_for_dialog, refresh=self.refresh)

    def submit(self, prompt: str | UserMessage) -> None:
        self._prompts.submit(prompt)

    def hand_back(self, text: str) -> None:
        """Put a text into the input, before what is typed there."""
        self._state.draft.put(text)
        self.refresh()

    def send(self, sequence: bytes) -> None:
        self._screen.send(sequence)

    def use_theme(self, setting: ThemeSetting) -> None:
        self._state.use_theme(setting)

    def toggle_vim(self) -> bool:
        return self._state.toggle_vim()

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        rows = pager_rows(shapes, self.width, self.theme)
        await self._external_program.read(rows, self._screen, from_end=from_end)

    def leave(self, then: Next) -> None:
        """Close the session, once the user has said what becomes of background tasks."""
        self._leaving.want(then)

    @property
    def is_busy(self) -> bool:
        return self._prompts.is_busy

    def interrupt(self) -> bool:
        """End what runs, as for a signal; return whether something runs that had not been told to end before."""
        return self._screen.is_handed_over or self._prompts.interrupt()

    # What the screen shows

    def _contents(self) -> Contents:
        keys_of_dialogs = DialogKeys(
            self._dialogs,
            interrupt_turn=self._prompts.interrupt_turn,
            type_elsewhere=self._state.draft.insert,
            paste_elsewhere=self._actions.paste,
            take_back=self._actions.take_back,
        )
        return Contents(
            key_bindings(self._actions, self._state.box.buffer, keys_of_dialogs),
            live=self._footer.live,
            dialog=DialogView(self._footer.dialog, lambda: self._dialogs.caret, self._dialogs.was_drawn),
            queue=self._footer.queue,
            status=self._footer.status,
            is_moving=self._footer.is_moving,
            key_pressed=self._key_pressed,
        )

    def _room_for_dialog(self) -> int:
        return self._screen.room_for_dialog

    def _is_asking(self) -> bool:
        """True if the turn waits for the user; a list that he opened and a subagent beside it hold nothing up."""
        return any(dialog.holds_up_turn for dialog in self._dialogs.all)

    # What comes from below

    def _turn_has_begun(self) -> None:
        self._todos.turn_has_begun()
        self._attention.begun()

    def _turn_is_over(self, duration_s: float) -> None:
        self._attention.turn_is_over(duration_s)
        self._status.turn_ended()

    def _give_back(self, text: str) -> None:
        self._state.draft.give_back(text)
        self.refresh()

    def _key_pressed(self) -> None:
        self._second_press.key_pressed()
        if not self._dialogs.takes_keys:
            self._dialogs.typed_elsewhere()


def _todos_of(session: Session) -> Sequence[ChecklistItem]:
    shown = session.capabilities.status()
    return [todo for item in shown if isinstance(item, ChecklistDisplay) for todo in item.todos]


class Sessions:
    """Shows sessions on a terminal, one after the other.

    Args:
        state: The terminal.
        asking: Puts the questions of sessions to the user.
        commands: What `/` offers.
        open_first: Opens the session that the command line asks for.
        open_other: Opens another one: that of an id, or a new one.
    """

    def __init__(
        self,
        state: TerminalState,
        asking: Asking,
        commands: Sequence[Command],
        open_first: Callable[[], AbstractAsyncContextManager[Session]],
        open_other: Callable[[str | None], AbstractAsyncContextManager[Session]],
    ) -> None:
        self._state = state
        self._asking = asking
        self._commands = commands
        self._open_first = open_first
        self._change = SessionChange(open_other, self._not_as_wanted)
        self._repl: Repl | None = None
        self.way_back = ""
        """How to go on with what was shown last; empty where there was nothing."""

    def interrupt(self) -> bool:
        """End the turn that runs; return whether there was one."""
        return self._repl is not None and self._repl.interrupt()

    @property
    def is_busy(self) -> bool:
        return self._repl is not None and self._repl.is_busy

    async def run(self, first_prompt: str | None) -> None:
        """Show sessions until the user leaves.

        Args:
            first_prompt: Sent at once.

        Raises:
            PanpanError: The first one could not be opened.
        """
        state, opening, prompt, shown_id = self._state, self._open_first(), first_prompt, ""
        while True:
            async with opening as session:
                self._repl = Repl(
                    session,
                    state,
                    with_further(self._commands, session.capabilities.outside_commands),
                    self._asking,
                )
                is_shown = session.info.id == shown_id  # where the one that was wanted could not be opened
                try:
                    then = await self._repl.run(prompt, shows_past=not is_shown)
                finally:  # also where a signal ends it
                    if session.conversation.messages:
                        self.way_back = f"resume with: panpan -c, or panpan -r {session.info.id}"
                shown_id = session.info.id
                state.screen.use(state.waiting.contents)
            if isinstance(then, Leave):
                return
            prompt, opening = None, self._change.to(then, session)

    def _not_as_wanted(self, text: str) -> None:
        """Say what did not go as it was wanted; what was sent for it is the user's again."""
        self._state.warn(text)
        self._state.waiting.give_back()
