"""Screen of one session with a cursor: live rows are redrawn, and keys are handled at any time."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import anyio

from panpan.core.background import Background
from panpan.core.tool import count_label_of
from panpan.faces.terminal.background_watch import ExitRequest
from panpan.faces.terminal.dialogs.dialog_queue import DialogKeys
from panpan.faces.terminal.input.completion import InputCompleter
from panpan.faces.terminal.input.draft import ClipboardPaste
from panpan.faces.terminal.input.key_actions import KeyActions
from panpan.faces.terminal.input.keys import DraftKeys, SentPrompt, key_bindings
from panpan.faces.terminal.prompt_queue import PromptQueue
from panpan.faces.terminal.rendering.displays import pager_rows
from panpan.faces.terminal.screen.app_screen import AppScreen
from panpan.faces.terminal.screen.external_program import ExternalProgram
from panpan.faces.terminal.screen.footer import Footer, TodosView
from panpan.faces.terminal.screen.windows import Contents, DialogView
from panpan.faces.terminal.terminal_state import TerminalState
from panpan.faces.terminal.views.status import StatusView
from panpan.faces.terminal.views.turn_view import TurnCallbacks, TurnView
from panpan.faces.turn_text import WaitingTime
from panpan.hub.hub import Hub
from panpan.hub.path_search import FileIndex
from panpan.hub.questions import Questions
from panpan.session.command import Command, Leave
from panpan.session.log.agent_log import PastSubagents
from panpan.session.session import Session
from panpan.types.agent import AgentKinds
from panpan.types.attachments import OtherMentions
from panpan.types.content import ChecklistDisplay, ChecklistItem, Display

FILES_S = 0.3
"""Seconds from the start to listing files, which keeps a processor busy."""


class CursorScreen(AppScreen):
    """Draws one session; implements `Screen`.

    Args:
        hub: The hub of an open session.
        state: The terminal it is drawn on.
        commands: Slash commands of the session.
        waiting: Time spent waiting for the user.
    """

    def __init__(self, hub: Hub, state: TerminalState, commands: Sequence[Command], waiting: WaitingTime) -> None:
        self._session = session = hub.session
        super().__init__(state, session.settings.ui.notify, session.info.cwd)
        self._status = StatusView(session, state.env, lambda: state.app.vi_mode, self.refresh, self.hint.show)
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
        self.external_program = ExternalProgram(state.draft, self.view.transcript, state.env, self.hint.show)
        self._clipboard = ClipboardPaste(state.draft, state.env, session.folders.add, self.hint.show)

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

    echo = AppScreen.show

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        rows = pager_rows(shapes, self.width, self.theme)
        await self.external_program.read(rows, self._app, from_end=from_end)

    def released(self) -> AbstractAsyncContextManager[None]:
        return self._app.released()

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
                tasks.start_soon(self.external_program.run, self._app)
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
            DraftKeys(self._state.draft, self.second_press, self.hint.show),
            prompts,
            self.view,
            self._todos,
            external_program=self.external_program,
            paste_picture=self._clipboard.want,
            exit_request=exit_request,
        )

    def _footer(self, prompts: PromptQueue) -> Footer:
        return Footer(
            self._session,
            self._state,
            dialogs=self.dialogs,
            view=self.view,
            todos=self._todos,
            prompts=prompts,
            status=self._status,
            hint=self.hint,
        )

    def _contents(self, footer: Footer, actions: KeyActions, prompts: PromptQueue) -> Contents:
        keys_of_dialogs = DialogKeys(
            self.dialogs,
            interrupt_turn=prompts.interrupt_turn,
            type_elsewhere=self._state.draft.insert,
            paste_elsewhere=actions.paste,
            take_back=actions.take_back,
        )
        return Contents(
            key_bindings(actions, self._state.box.buffer, keys_of_dialogs),
            live=footer.live,
            dialog=DialogView(footer.dialog, lambda: self.dialogs.caret, self.dialogs.was_drawn),
            queue=footer.queue,
            status=footer.status,
            is_moving=footer.is_moving,
            key_pressed=self._key_pressed,
        )

    def _turn_has_begun(self) -> None:
        self._todos.turn_has_begun()
        self._attention.begun()

    def _turn_is_over(self, duration_s: float) -> None:
        self._attention.turn_is_over(duration_s)
        self._status.turn_ended()


def _todos_of(session: Session) -> Sequence[ChecklistItem]:
    shown = session.capabilities.status()
    return [todo for item in shown if isinstance(item, ChecklistDisplay) for todo in item.todos]
