"""Screen of one session with a cursor: live rows are redrawn, and keys are handled at any time."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from time import monotonic

import anyio

from panpan.core.background import Background
from panpan.core.tool import count_label_of
from panpan.faces.terminal.background_watch import ExitRequest
from panpan.faces.terminal.dialogs.dialog import Dialog
from panpan.faces.terminal.dialogs.dialog_queue import DialogKeys, DialogQueue
from panpan.faces.terminal.input.completion import FileIndex, InputCompleter
from panpan.faces.terminal.input.draft import ClipboardPaste
from panpan.faces.terminal.input.key_actions import KeyActions
from panpan.faces.terminal.input.keys import DraftKeys, SecondPress, SentPrompt, key_bindings
from panpan.faces.terminal.prompt_queue import PromptQueue
from panpan.faces.terminal.rendering.displays import pager_rows
from panpan.faces.terminal.screen.external_program import EditorFailed, ExternalProgram
from panpan.faces.terminal.screen.footer import Footer, PassingHint, TodosView
from panpan.faces.terminal.screen.notify import Attention
from panpan.faces.terminal.screen.screen import T
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.screen.windows import Contents, DialogView
from panpan.faces.terminal.terminal_state import TerminalState
from panpan.faces.terminal.views.status import StatusView
from panpan.faces.terminal.views.turn_view import TurnCallbacks, TurnView
from panpan.faces.turn_text import WaitingTime
from panpan.hub.hub import Hub
from panpan.hub.questions import Questions
from panpan.session.command import Command, Leave
from panpan.session.log.agent_log import PastSubagents
from panpan.session.session import Session
from panpan.types.agent import AgentKinds
from panpan.types.attachments import OtherMentions
from panpan.types.content import ChecklistDisplay, ChecklistItem, Display

FILES_S = 0.3
"""Seconds from the start to listing files, which keeps a processor busy."""


class CursorScreen:
    """Draws one session; implements `Screen`.

    Args:
        hub: The hub of an open session.
        state: The terminal it is drawn on.
        commands: Slash commands of the session.
        waiting: Time spent waiting for the user.
    """

    def __init__(self, hub: Hub, state: TerminalState, commands: Sequence[Command], waiting: WaitingTime) -> None:
        self._session = session = hub.session
        self._state = state
        self._app = state.app
        self._hint = PassingHint(monotonic)
        self._dialogs = DialogQueue(self.refresh, monotonic, lambda: bool(state.draft.text), state.draft.insert)
        self._status = StatusView(session, state.env, lambda: state.app.vi_mode, self.refresh, self._hint.show)
        self._todos = TodosView(partial(_todos_of, session))
        definitions = session.find(AgentKinds)
        kinds = () if definitions is None else definitions.all
        colours = {one.name: one.color for one in kinds}
        self.view = TurnView(
            self,
            session.conversation,
            self._turn_callbacks(hub.questions),
            waiting=waiting,
            subagents=session.find(PastSubagents),
            colour_of=lambda kind: colours.get(kind, ""),
            count_label_of=lambda use: count_label_of(use, session.agent.model.tools),
        )
        paths = session.agent.context.paths
        self._files = FileIndex(paths)
        agents = {one.name: " ".join(one.description.split()) for one in kinds}
        mentions = session.find(OtherMentions)
        self._completer = InputCompleter(
            commands,
            self._files,
            paths,
            lambda command: command.completions(session),
            agents,
            lambda: {} if mentions is None else mentions.offered_mentions,
        )
        self._external_program = ExternalProgram(state.draft, self.view.transcript, state.env, self._hint.show)
        self._clipboard = ClipboardPaste(state.draft, state.env, session.folders.add, self._hint.show)
        self._second_press = SecondPress(monotonic)
        self._attention = Attention(self._app.send, session.settings.ui.notify, state.env, session.info.cwd)

    def _turn_callbacks(self, questions: Questions) -> TurnCallbacks:
        background = self._session.find(Background)
        return TurnCallbacks(
            has_begun=self._turn_has_begun,
            is_over=self._turn_is_over,
            is_asking=self._is_asking,
            can_move=lambda: background is not None and bool(background.movable),
            doing=lambda: self._todos.doing,
            asked_about=lambda: questions.asked_about,
            spent_usd=lambda: self._session.budget.spent.known_usd,
        )

    @property
    def look(self) -> TerminalState:
        return self._state

    @property
    def theme(self) -> Theme:
        return self._state.theme

    @property
    def width(self) -> int:
        return self._app.width

    @property
    def room(self) -> int:
        return self._app.room_for_dialog

    def show(self, *lines: str) -> None:
        self._app.show(*lines)

    echo = show

    def refresh(self) -> None:
        self._app.refresh()

    async def drain(self) -> None:
        await self._app.drain()

    async def ask(self, dialog: Dialog[T]) -> T:
        return await self._dialogs.ask(dialog)

    def question_waits(self) -> None:
        self._attention.question_waits()

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        rows = pager_rows(shapes, self.width, self.theme)
        await self._external_program.read(rows, self._app, from_end=from_end)

    async def edited(self, text: str) -> str | EditorFailed:
        return await self._external_program.edited(text, self._app)

    def released(self) -> AbstractAsyncContextManager[None]:
        return self._app.released()

    def prefill_input(self, text: str) -> None:
        """Insert a text before the typed text."""
        self._state.draft.put(text)
        self.refresh()

    def return_prompt(self, text: str) -> None:
        self._state.draft.return_prompt(text)
        self.refresh()

    def interrupted(self) -> bool:
        return self._app.is_handed_over

    @asynccontextmanager
    async def serving(
        self, prompts: PromptQueue, exit_request: ExitRequest, first_prompt: str | None
    ) -> AsyncGenerator[None, None]:
        actions = self._actions(prompts, exit_request)
        footer = self._footer(prompts)
        self._attention.idle()
        self._state.box.serve(self._completer, footer.mark, footer.example)
        self._app.use(self._contents(footer, actions, prompts))
        if first_prompt is not None:
            prompts.send(SentPrompt(first_prompt))
        self._state.waiting.hand_over(actions, prompts.send)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._status.run)
                tasks.start_soon(self._external_program.run, self._app)
                tasks.start_soon(self._clipboard.run)
                tasks.start_soon(self._list_files)
                yield
                tasks.cancel_scope.cancel("the user left")
        finally:
            # the next session gets undelivered texts; if there is none, they are reported at the end
            if isinstance(exit_request.then, Leave):
                self._state.take_back(sent.text for sent in prompts.left_over)
            else:
                self._state.waiting.take(prompts.left_over)
            self._app.use(self._state.waiting.contents)

    async def _list_files(self) -> None:
        await anyio.sleep(FILES_S)
        await self._files.run()

    def _actions(self, prompts: PromptQueue, exit_request: ExitRequest) -> KeyActions:
        return KeyActions(
            self._session,
            DraftKeys(self._state.draft, self._second_press, self._hint.show),
            prompts,
            self.view,
            self._todos,
            external_program=self._external_program,
            paste_picture=self._clipboard.want,
            exit_request=exit_request,
        )

    def _footer(self, prompts: PromptQueue) -> Footer:
        return Footer(
            self._session,
            self._state,
            dialogs=self._dialogs,
            view=self.view,
            todos=self._todos,
            prompts=prompts,
            status=self._status,
            hint=self._hint,
        )

    def _contents(self, footer: Footer, actions: KeyActions, prompts: PromptQueue) -> Contents:
        keys_of_dialogs = DialogKeys(
            self._dialogs,
            interrupt_turn=prompts.interrupt_turn,
            type_elsewhere=self._state.draft.insert,
            paste_elsewhere=actions.paste,
            take_back=actions.take_back,
        )
        return Contents(
            key_bindings(actions, self._state.box.buffer, keys_of_dialogs),
            live=footer.live,
            dialog=DialogView(footer.dialog, lambda: self._dialogs.caret, self._dialogs.was_drawn),
            queue=footer.queue,
            status=footer.status,
            is_moving=footer.is_moving,
            key_pressed=self._key_pressed,
        )

    def _is_asking(self) -> bool:
        """True if the turn waits for the user, and not only a list that they opened or a background subagent."""
        return any(dialog.blocks_turn for dialog in self._dialogs.all)

    def _turn_has_begun(self) -> None:
        self._todos.turn_has_begun()
        self._attention.begun()

    def _turn_is_over(self, duration_s: float) -> None:
        self._attention.turn_is_over(duration_s)
        self._status.turn_ended()

    def _key_pressed(self) -> None:
        self._second_press.key_pressed()
        if not self._dialogs.takes_keys:
            self._dialogs.typed_elsewhere()


def _todos_of(session: Session) -> Sequence[ChecklistItem]:
    shown = session.capabilities.status()
    return [todo for item in shown if isinstance(item, ChecklistDisplay) for todo in item.todos]
