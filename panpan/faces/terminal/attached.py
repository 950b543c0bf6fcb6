"""A terminal that joins a session which is open in another panpan: the same turns and questions, on a second screen.

The rule: this process has no session. What the user says goes to the other panpan, and leaving here ends nothing there.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import anyio
from anyio.abc import TaskGroup

from panpan.errors import PanpanError, SessionHeldError
from panpan.faces.terminal.commands.registry import note_in
from panpan.faces.terminal.dialogs.question_dialogs import QuestionDialogs
from panpan.faces.terminal.input.keys import KEYS_HELP, DraftKeys, SentPrompt
from panpan.faces.terminal.rendering.cells import say
from panpan.faces.terminal.run import ShownSessions
from panpan.faces.terminal.screen.attached_screen import AttachedScreen
from panpan.faces.terminal.session_client import ShownQuestions, ShownTurn
from panpan.faces.terminal.terminal_state import TerminalState
from panpan.hub.choices import MODES
from panpan.hub.events import (
    CommandRequested,
    HubEvent,
    MessageRecorded,
    PromptsReturned,
    QuestionAsked,
    QuestionClosed,
    Resync,
    Rewound,
    StatusChanged,
    TaskChanged,
    TurnBegan,
    Warned,
)
from panpan.hub.questions import Answer
from panpan.hub.remote import Joined, NotSharedError, RemoteSession, joined
from panpan.session.descriptions import ended_line
from panpan.system.text.terminal_text import printable
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage

if TYPE_CHECKING:
    from panpan.faces.terminal.repl import Sessions

LEAVING = frozenset({"/exit", "/quit", "/q", "/detach", "exit", "quit"})
"""Texts that leave the session, which goes on in the other panpan."""

HELP = (
    "This terminal has joined a session of another panpan, which goes on when you leave.",
    "Enter sends, to the running turn if there is one. Alt+Enter sends after the turn. Esc stops the turn.",
    "Shift+Tab changes the mode. Ctrl+O shows everything. Ctrl+D or /exit leaves.",
    "Slash commands run in the other panpan; those that need a terminal, only there, as well as ! and #.",
)


class _Keys:
    """Actions of the keys; what needs the other process is done beside the keys."""

    def __init__(self, screen: AttachedScreen, state: TerminalState, client: "AttachedClient") -> None:
        self._screen = screen
        self._draft = state.draft
        self._draft_keys = DraftKeys(state.draft, screen.second_press, screen.hint.show)
        self._client = client

    @property
    def is_busy(self) -> bool:
        return self._client.is_busy

    @property
    def has_queued(self) -> bool:
        return bool(self._screen.status.waiting)

    @property
    def is_in_retry_pause(self) -> bool:
        return self._screen.view.is_in_retry_pause

    def enter(self) -> None:
        if text := self._draft.enter():
            self._client.say(SentPrompt(text))

    def enter_later(self) -> None:
        if text := self._draft.enter():
            self._client.say(SentPrompt(text, is_for_later=True))

    def take_back(self) -> None:
        self._client.take_back()

    def interrupt(self) -> bool:
        return self._client.interrupt()

    def escape(self) -> None:
        if not self._client.interrupt() and self._draft.text:
            self._draft_keys.escape()

    def control_c(self) -> None:
        if self._draft.text:
            self._draft_keys.clear()
        elif self._client.interrupt():
            pass
        elif self._screen.second_press.is_second("c-c"):
            self._client.leave()
        else:
            self._screen.hint.show("Ctrl+C again, or Ctrl+D, leaves")

    def control_d(self) -> None:
        self._client.leave()

    def expand(self) -> None:
        if not self._screen.view.toggle_expanded():
            self._screen.external_program.open_pager()

    def next_mode(self) -> None:
        self._client.next_mode()

    def edit_elsewhere(self) -> None:
        self._screen.external_program.open_editor()

    def suspend(self) -> None:
        self._screen.external_program.suspend()

    def stash(self) -> None:
        self._draft_keys.stash()

    def paste(self, text: str) -> None:
        self._draft_keys.paste(text)

    def backspace(self) -> None:
        self._draft.backspace()

    def retry_now(self) -> None:
        self._client.retry_now()

    def help(self) -> None:
        self._client.say(SentPrompt(KEYS_HELP))

    def _elsewhere(self) -> None:
        self._screen.hint.show("only the panpan that has the session can do this")

    choose_model = switch_thinking = to_background = show_todos = paste_picture = _elsewhere


class AttachedClient:
    """Reads a session of another process, and sends what the user says.

    Args:
        remote: The connection.
        session: The session as it was when this terminal joined.
        screen: Shows it.
        tasks: Runs requests beside the keys.
    """

    def __init__(self, remote: RemoteSession, session: Joined, screen: AttachedScreen, tasks: TaskGroup) -> None:
        self._remote = remote
        self._screen = screen
        self._tasks = tasks
        self._name = session.client
        self._session = session
        self._turn = ShownTurn(screen.view)
        self._questions = ShownQuestions(QuestionDialogs(screen, screen.waiting), screen.view, self._answer, self._name)
        self._left = anyio.Event()
        self.is_closed = False
        """True if the other panpan has closed the session."""

    @property
    def is_busy(self) -> bool:
        return self._screen.status.activity != "idle"

    def leave(self) -> None:
        self._left.set()

    async def run(self) -> None:
        """Show the session until the user leaves, or until it is closed."""
        self._tasks.start_soon(self._read)
        await self._left.wait()

    def say(self, sent: SentPrompt) -> None:
        """Send a text, or do what it asks of this terminal."""
        text = sent.text.strip()
        if text.lower() in LEAVING:
            self.leave()
        elif text in ("/help", KEYS_HELP):
            say(self._screen, "\n".join(HELP), "dim")
        elif text.startswith("!") or note_in(text):
            self._screen.prefill_input(sent.text)
            say(self._screen, "only the panpan that has the session takes shell commands and notes", "warn")
        else:
            self._beside(partial(self._send, sent))

    def interrupt(self) -> bool:
        """Stop the running turn; return True if there is one."""
        if self.is_busy:
            self._turn.stop()
            self._beside(self._remote.interrupt)
        return self.is_busy

    def take_back(self) -> None:
        async def take() -> None:
            if (text := await self._remote.take_back()) is not None:
                self._screen.prefill_input(text)

        self._beside(take)

    def next_mode(self) -> None:
        mode = self._screen.status.mode
        at = MODES.index(mode) + 1 if mode in MODES else 0
        self._beside(partial(self._remote.change, mode=MODES[at % len(MODES)]))

    def retry_now(self) -> None:
        self._beside(self._remote.retry_now)

    async def _send(self, sent: SentPrompt) -> None:
        try:
            await self._remote.send(sent.text, "queue" if sent.is_for_later else "steer")
        except PanpanError:
            self._screen.prefill_input(sent.text)
            raise

    async def _answer(self, number: int, answer: Answer) -> None:
        await self._tell(partial(self._remote.answer, number, answer))

    def _beside(self, request: Callable[[], Awaitable[object]]) -> None:
        self._tasks.start_soon(self._tell, request)

    async def _tell(self, request: Callable[[], Awaitable[object]]) -> None:
        """Make a request; what is wrong with it is shown."""
        try:
            await request()
        except PanpanError as error:
            say(self._screen, str(error), "warn")

    async def _read(self) -> None:
        async with anyio.create_task_group() as asking:
            for question in self._session.questions:
                self._questions.follow(question, asking)
            while events := await self._remote.take():
                for one in events:
                    if one.number > self._session.last or not isinstance(one.event, QuestionAsked | CommandRequested):
                        await self._follow(one.event, asking)
            asking.cancel_scope.cancel("the session is closed")
        say(self._screen, self._remote.reason or "the session was closed in the other panpan", "warn")
        self.is_closed = True
        self.leave()

    async def _follow(self, event: HubEvent, asking: TaskGroup) -> None:
        self._keep(event)
        match event:
            case StatusChanged(status=status):
                self._screen.show_status(status)
            case QuestionAsked() | QuestionClosed():
                self._questions.follow(event, asking)
            case PromptsReturned(prompts=prompts, client=client) if client == self._name:
                self._screen.return_prompt("\n".join(message.typed for message in prompts))
            case CommandRequested():
                self._run_command(event)
            case TaskChanged(task=task) if not task.is_running:
                say(self._screen, f"\n{ended_line(task)}", "dim")
            case Warned(text=text):
                say(self._screen, text, "warn")
            case Rewound():
                say(self._screen, "the conversation was taken back to an earlier message", "warn")
            case Resync(is_whole=False):
                self._screen.view.note(
                    "this terminal was too slow, and some of the turn is not shown; Ctrl+O may lack it"
                )
                await self._turn.show(event)
            case _:
                await self._turn.show(event)

    def _run_command(self, asked: CommandRequested) -> None:
        """Do what another client asks of the input box."""
        draft = self._screen.draft
        match asked.command:
            case "prompt.submit":
                if text := draft.take():
                    self.say(SentPrompt(text))
            case "prompt.append":
                draft.append(asked.text)
            case "prompt.clear":
                draft.clear()
            case "hint.show":
                self._screen.hint.show(asked.text)
            case _:
                assert_never(asked.command)
        self._screen.refresh()

    def _keep(self, event: HubEvent) -> None:
        """Follow the conversation, for the transcript."""
        messages = self._screen.conversation.messages
        match event:
            case UserMessage() | AssistantMessage() | ToolResultMessage():
                messages.append(event)
            case TurnBegan(prompt=UserMessage() as prompt):
                messages.append(prompt)
            case MessageRecorded(message=message):
                messages.append(message)
            case Rewound(last=last):
                at = next((index for index, one in enumerate(messages) if one.uuid == last), -1)
                del messages[at + 1 :]
            case _:
                pass


class AttachedSession:
    """Shows one session of another process on a terminal; implements `ShownSessions`.

    Args:
        state: The terminal.
        sockets: Folder of the sockets.
        session_id: Id of the session.
    """

    def __init__(self, state: TerminalState, sockets: Path, session_id: str) -> None:
        self._state = state
        self._sockets = sockets
        self._session_id = session_id
        self._client: AttachedClient | None = None
        self.resume_hint = ""

    def interrupt(self, number: int) -> bool:
        """Stop the running turn for a signal; return True if there is one."""
        return self._client is not None and self._client.interrupt()

    @property
    def is_busy(self) -> bool:
        return self._client is not None and self._client.is_busy

    async def run(self, first_prompt: str | None) -> None:
        """Show the session until the user leaves, or until it is closed.

        Raises:
            PanpanError: It cannot be joined.
        """
        async with joined(self._sockets, self._session_id) as remote, anyio.create_task_group() as tasks:
            session = await remote.join("terminal", answers=True)
            self.resume_hint = f"join again with: panpan attach {session.info.id}"
            screen = AttachedScreen(self._state, session)
            client = self._client = AttachedClient(remote, session, screen, tasks)
            self._greet(screen, session)
            await screen.view.show_past(session.messages)
            actions = _Keys(screen, self._state, client)
            screen.use(actions, client.interrupt)
            tasks.start_soon(screen.external_program.run, self._state.app)
            if first_prompt is not None:
                client.say(SentPrompt(first_prompt))
            self._state.waiting.hand_over(actions, client.say)
            try:
                await client.run()
            finally:
                if client.is_closed:
                    self.resume_hint = f"resume with: panpan -r {session.info.id}"
                self._state.app.use(self._state.waiting.contents)
                self._client = None
            tasks.cancel_scope.cancel("the user left")

    def _greet(self, screen: AttachedScreen, session: Joined) -> None:
        where = printable(str(session.info.cwd))
        say(screen, f"joined the session {session.info.id} in {where}; Ctrl+D leaves it open there", "accent")


class JoinedIfHeld:
    """Shows sessions of this process, or the wanted one of another process that has it open.

    Args:
        sessions: The sessions of this process.
        join: Returns a session of another process by its id.
    """

    def __init__(self, sessions: "Sessions", join: Callable[[str], AttachedSession]) -> None:
        self._sessions = sessions
        self._shown: ShownSessions = sessions
        self._join = join

    def interrupt(self, number: int) -> bool:
        return self._shown.interrupt(number)

    @property
    def is_busy(self) -> bool:
        return self._shown.is_busy

    @property
    def resume_hint(self) -> str:
        return self._shown.resume_hint

    async def run(self, first_prompt: str | None) -> None:
        """Show sessions until the user leaves.

        Raises:
            PanpanError: A session could neither be opened nor joined.
        """
        try:
            await self._shown.run(first_prompt)
        except SessionHeldError as held:
            self._shown = self._join(held.session_id)
            try:
                await self._shown.run(None if self._sessions.has_shown else first_prompt)
            except NotSharedError:
                raise held from None
