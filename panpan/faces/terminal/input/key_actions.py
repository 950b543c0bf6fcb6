"""Actions of the keys in a session."""

from collections.abc import Callable

from panpan.core.background import Background
from panpan.errors import PanpanError
from panpan.faces.terminal.background_watch import ExitRequest
from panpan.faces.terminal.input.keys import KEYS_HELP, DraftKeys, SentPrompt
from panpan.faces.terminal.prompt_queue import PromptQueue
from panpan.faces.terminal.screen.external_program import ExternalProgram
from panpan.faces.terminal.screen.footer import TodosView
from panpan.faces.terminal.views.turn_view import TurnView
from panpan.hub.choices import usable_modes
from panpan.session.command import Leave
from panpan.session.session import Session


class KeyActions:
    """Performs the actions of keys in a session."""

    def __init__(
        self,
        session: Session,
        draft_keys: DraftKeys,
        prompts: PromptQueue,
        view: TurnView,
        todos: TodosView,
        *,
        external_program: ExternalProgram,
        paste_picture: Callable[[], None],
        exit_request: ExitRequest,
    ) -> None:
        self._session = session
        self._draft_keys = draft_keys
        self._draft = draft_keys.draft
        self._second = draft_keys.second
        self._say = draft_keys.say
        self._prompts = prompts
        self._view = view
        self._todos = todos
        self._external_program = external_program
        self.paste_picture = paste_picture
        self._exit_request = exit_request

    @property
    def is_busy(self) -> bool:
        return self._prompts.is_busy

    @property
    def has_queued(self) -> bool:
        return bool(self._prompts.waiting)

    @property
    def is_in_retry_pause(self) -> bool:
        return self._view.is_in_retry_pause

    def enter(self) -> None:
        self._send(is_for_later=False)

    def enter_later(self) -> None:
        self._send(is_for_later=True)

    def _send(self, *, is_for_later: bool) -> None:
        if text := self._draft.enter():
            self._prompts.send(SentPrompt(text, is_for_later))

    def take_back(self) -> None:
        if (text := self._prompts.take_back()) is not None:
            self._draft.put(text)

    def escape(self) -> None:
        if self._draft.cancel_completion() or self._interrupt():
            return
        if self._draft.text:
            self._draft_keys.escape()
        elif self._second.is_second("escape"):
            self._prompts.send(SentPrompt("/rewind"))

    def control_c(self) -> None:
        if self._draft.text:
            self._draft_keys.clear()
        elif self._interrupt():
            pass
        elif self._second.is_second("c-c"):
            self._exit_request.request_now()
        else:
            self._say("Ctrl+C again, or Ctrl+D, leaves")

    def control_d(self) -> None:
        self._exit_request.request(Leave())  # a running turn is ended cleanly with the session

    def expand(self) -> None:
        if not self._view.toggle_expanded():
            self._external_program.open_pager()

    def next_mode(self) -> None:
        mode = self._session.permission_mode
        modes = usable_modes(self._session)
        at = modes.index(mode) + 1 if mode in modes else 0
        self._session.set_permission_mode(modes[at % len(modes)])

    def edit_elsewhere(self) -> None:
        self._external_program.open_editor()

    def suspend(self) -> None:
        self._external_program.suspend()

    def stash(self) -> None:
        self._draft_keys.stash()

    def choose_model(self) -> None:
        self._prompts.send(SentPrompt("/model"))

    def switch_thinking(self) -> None:
        try:
            self._session.use_thinking(is_on=not self._session.thinks)
        except PanpanError as error:
            self._say(str(error))
        else:
            self._say(f"thinking is {'on' if self._session.thinks else 'off'} from the next message on")

    def to_background(self) -> None:
        tasks = self._session.find(Background)
        if tasks is not None and tasks.move():
            self._say("moved to the background until you quit · /tasks")
        elif self._view.runs_tools:
            self._say("nothing can move to the background: no command or subagent is running")
        else:
            self._prompts.send(SentPrompt("/tasks"))

    def show_todos(self) -> None:
        self._say(self._todos.toggle())

    def paste(self, text: str) -> None:
        self._draft_keys.paste(text)

    def backspace(self) -> None:
        self._draft.backspace()

    def retry_now(self) -> None:
        self._session.retry_now()

    def help(self) -> None:
        self._prompts.send(SentPrompt(KEYS_HELP))

    def _interrupt(self) -> bool:
        """Stop the running work; return True if there was any, even if it was stopped before."""
        return self._prompts.interrupt() or self._prompts.is_busy
