"""The user's prompts and commands: running, waiting, interrupted and taken back."""

import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from time import monotonic
from typing import Protocol

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from panpan.errors import ConfigError, PanpanError
from panpan.faces.terminal.commands.choice_commands import look_of
from panpan.faces.terminal.commands.registry import command_in, find, note_in, unknown
from panpan.faces.terminal.input.keys import SentPrompt
from panpan.faces.terminal.rendering.cells import Scrollback, output_of_users_command, say
from panpan.faces.terminal.rendering.messages import LiveOutput, command_head_lines, prompt_lines, running_line
from panpan.faces.terminal.screen.screen import TurnRenderer
from panpan.faces.terminal.session_client import SessionClient
from panpan.session.capability import NO_SHELL, UserShell
from panpan.session.command import Command, Terminal
from panpan.types.dataclass import dataclass
from panpan.types.messages import UserMessage


class ReplTerminal(Terminal, Scrollback, Protocol):
    """A terminal in which the user types."""

    def echo(self, *lines: str) -> None:
        """Show the typed text, unless it is on the screen already."""


class Inbox:
    """Handles sent texts one after the other.

    Args:
        handle: Does what a text asks for; called for one text at a time.
        has_to_wait: Returns True if a text cannot be handled at the moment; later ones that can be do not wait for it.
        give_back: Gets a text whose handling was interrupted.
    """

    def __init__(
        self,
        handle: Callable[[SentPrompt], Awaitable[None]],
        has_to_wait: Callable[[SentPrompt], bool],
        return_prompt: Callable[[str], None],
    ) -> None:
        self._handle = handle
        self._has_to_wait = has_to_wait
        self._return_prompt = return_prompt
        self._is_closed = False
        self._waiting: deque[SentPrompt] = deque()
        self._has_changed = anyio.Event()
        self._at_hand: SentPrompt | None = None
        """Text that is being handled; kept if the session ends meanwhile."""
        self._scope: anyio.CancelScope | None = None

    @property
    def is_busy(self) -> bool:
        return self._scope is not None

    @property
    def is_at_command(self) -> bool:
        """True if the text being handled looks like a slash command."""
        return self.is_busy and self._at_hand is not None and self._at_hand.text.startswith("/")

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(sent.text for sent in self._waiting)

    @property
    def left_over(self) -> tuple[SentPrompt, ...]:
        """Texts that were not handled, or not to the end."""
        return (*([] if self._at_hand is None else [self._at_hand]), *self._waiting)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Handle nothing more; waiting texts stay."""
        self._is_closed = True

    def open(self) -> None:
        self._is_closed = False
        self.look_again()

    def put(self, sent: SentPrompt) -> None:
        self._waiting.append(sent)
        self.look_again()

    def look_again(self) -> None:
        """Handle texts that no longer have to wait."""
        self._has_changed.set()

    def take_back(self) -> str | None:
        return self._waiting.pop().text if self._waiting else None

    def interrupt(self) -> bool:
        """Cancel the text that is being handled, or give back those that are about to be.

        Returns:
            True if there was something to cancel that was not cancelled before.
        """
        if self._scope is None:
            return self._give_back_next()
        if self._scope.cancel_called:
            return False
        self._scope.cancel("the user interrupted it")
        return True

    async def run(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed = anyio.Event()
            while (sent := self._next()) is not None:
                self._at_hand = sent
                with anyio.CancelScope() as scope:
                    self._scope = scope
                    await self._handle(sent)
                self._scope = self._at_hand = None
                if scope.cancelled_caught:
                    self._return_prompt(sent.text)

    def _give_back_next(self) -> bool:
        """Give back the texts that would be handled now, and return True if there were any."""
        given_back: list[str] = []
        while (sent := self._next()) is not None:
            given_back.append(sent.text)
        if given_back:
            self._return_prompt("\n".join(given_back))
        return bool(given_back)

    def _next(self) -> SentPrompt | None:
        if self._is_closed:
            return None
        sent = next((sent for sent in self._waiting if not self._has_to_wait(sent)), None)
        if sent is not None:
            self._waiting.remove(sent)
        return sent


_LIVE_LINES = 3
_SHOWN_ROWS = 40
"""Most rows of a command's output on the screen; the model gets more."""


class _Running:
    """A running command and its output."""

    def __init__(self, shell: UserShell, command: str) -> None:
        self.shell = shell
        self.command = command
        self.output = LiveOutput()
        self.began_s = monotonic()
        self.scope = anyio.CancelScope()


class ShellLine:
    """Runs the user's shell commands, one at a time.

    Args:
        terminal: Shows their output.
        tell_model: Gets the message with the command and its output.
        has_ended: Called when a command has ended and the model has its message.
    """

    def __init__(
        self, terminal: ReplTerminal, tell_model: Callable[[UserMessage], None], has_ended: Callable[[], None]
    ) -> None:
        self._terminal = terminal
        self._tell_model = tell_model
        self._has_ended = has_ended
        self._running: _Running | None = None
        self._has_begun = anyio.Event()

    @property
    def is_running(self) -> bool:
        """True if a command runs or is about to."""
        return self._running is not None

    def begin(self, command: str) -> None:
        """Start a command; none may be running.

        Raises:
            ConfigError: The session has no shell.
        """
        assert self._running is None, "one command at a time"
        if (shell := self._terminal.session.find(UserShell)) is None:
            raise ConfigError(NO_SHELL)
        self._terminal.echo(*command_head_lines(command, self._terminal.width, self._terminal.theme))
        self._running = _Running(shell, command)
        self._has_begun.set()

    def interrupt(self) -> bool:
        """Stop the running command; return True if there was one that was not stopped before."""
        if self._running is None or self._running.scope.cancel_called:
            return False
        self._running.scope.cancel("the user interrupted it")
        return True

    async def run(self) -> None:
        while True:
            await self._has_begun.wait()
            self._has_begun = anyio.Event()
            if self._running is not None:
                await self._run(self._running)
                self._running = None
                self._has_ended()

    async def _run(self, running: _Running) -> None:
        try:
            result = await running.shell.run(running.command, running.output.feed, scope=running.scope)
            terminal = self._terminal
            printed = "\n".join(result.lines)
            most = _SHOWN_ROWS if look_of(terminal) is not None else sys.maxsize
            terminal.show(*output_of_users_command(printed, terminal.width, terminal.theme, most))
            self._tell_model(result.message)
        except PanpanError as error:
            say(self._terminal, str(error), "warn")

    def live_lines(self, width: int) -> Sequence[str]:
        if (running := self._running) is None:
            return ()
        theme, now_s = self._terminal.theme, monotonic()
        return [
            running_line(
                "!", running.command, now_s, now_s - running.began_s, width, theme, timeout_s=running.shell.timeout_s
            ),
            *running.output.preview(_LIVE_LINES, width, theme),
        ]


class PromptDispatcher:
    """Dispatches a text: to a slash command, the shell or the model.

    Args:
        terminal: The terminal, for commands.
        commands: All slash commands.
        turns: Runs prompts.
        shell: Runs the user's own commands.
        return_prompt: Gets the text of a prompt that may not be sent.
    """

    def __init__(
        self,
        terminal: ReplTerminal,
        commands: Sequence[Command],
        turns: SessionClient,
        shell: ShellLine,
        return_prompt: Callable[[str], None],
    ) -> None:
        self._return_prompt = return_prompt
        self._terminal = terminal
        self._commands = commands
        self._turns = turns
        self._shell = shell

    def has_to_wait(self, sent: SentPrompt) -> bool:
        """True if it has to wait for the running shell command; only immediate slash commands do not."""
        if not self._shell.is_running:
            return False
        line = self._command_in(sent)
        if line is None:
            return True
        found = find(self._commands, line)
        return found is not None and not found[0].is_immediate

    async def handle(self, sent: SentPrompt) -> None:
        """Do what a text asks for; an error is shown in one line."""
        line = sent.text.strip()
        try:
            if (command := self._command_in(sent)) is not None:
                await self._command(command)
            elif line.startswith("!") and len(line) > 1 and sent.message is None:
                self._shell.begin(line[1:].strip())
            else:
                await self._prompt(sent)
        except PanpanError as error:
            self._warn(str(error))

    def _command_in(self, sent: SentPrompt) -> str | None:
        return None if sent.message is not None else note_in(sent.text) or command_in(sent.text.strip(), self._commands)

    async def _command(self, line: str) -> None:
        found = find(self._commands, line)
        if found is None:
            self._warn(unknown(self._commands, line))
            return
        command, rest = found
        if self._turns.is_busy and not command.is_immediate:
            self._warn(f"/{command.name} can't run during a turn; Esc stops it")
            return
        if not (command.is_panel or command.sends_itself):
            self._terminal.echo("", *prompt_lines(line, self._terminal.width, self._terminal.theme))
        with nullcontext() if command.is_immediate else self._turns.held():
            await command.run(self._terminal, rest)

    async def _prompt(self, sent: SentPrompt) -> None:
        try:
            message = await self._terminal.session.prepare_message(sent.message or sent.text)
            await checkpoint_if_cancelled()  # from here on an interrupt ends the turn
            if sent.is_for_later:
                self._turns.submit(message)
            else:
                self._turns.steer(message)
        except PanpanError:
            self._return_prompt(sent.text)
            raise

    def _warn(self, text: str) -> None:
        say(self._terminal, text, "warn")


# Three things run side by side: the handling of texts (`Inbox`), the user's own shell command (`ShellLine`) and the
# turn (`SessionClient`). Everything that the user sends goes through the inbox. Prompts and shell commands wait there
# while a shell command runs.


@dataclass(frozen=True, slots=True)
class Waiting:
    """A sent text that is not delivered yet."""

    until: str
    """Time of its delivery in a few words, such as "after the turn"."""
    text: str
    """Text as it was typed."""


class PromptQueue:
    """Runs the prompts and commands that the user sends.

    Args:
        terminal: Terminal that they were typed in.
        connect: Returns the terminal as a client of its session, by a function that returns True while waking the
            model has to wait.
        view: Shows the turns.
        commands: All slash commands.
        return_prompt: Gets a text that was interrupted before it was done or delivered.
    """

    def __init__(
        self,
        terminal: ReplTerminal,
        connect: Callable[[Callable[[], bool]], SessionClient],
        view: TurnRenderer,
        commands: Sequence[Command],
        return_prompt: Callable[[str], None],
    ) -> None:
        self._view = view
        self._turns = connect(self._is_handling)
        self._shell = ShellLine(terminal, self._turns.note, self._shell_has_ended)
        self._sending = PromptDispatcher(terminal, commands, self._turns, self._shell, return_prompt)
        self._inbox = Inbox(self._handle, self._sending.has_to_wait, return_prompt)

    @property
    def is_busy(self) -> bool:
        return self._shell.is_running or self._inbox.is_busy or self._turns.is_busy

    @property
    def is_settled(self) -> bool:
        """True if everything sent is done, and more may be sent."""
        return not (self.is_busy or self._inbox.waiting or self._inbox.is_closed)

    @property
    def is_moving(self) -> bool:
        return self._shell.is_running or self._view.is_moving

    @property
    def waiting(self) -> Sequence[Waiting]:
        sent: list[Waiting] = []
        if self._shell.is_running or self._inbox.is_busy:  # otherwise texts are handled before anybody could read them
            until = "after the command" if self._shell.is_running else "next"
            sent = [Waiting(until, text) for text in self._inbox.waiting]
        return [
            *(Waiting("next round", message.typed) for message in self._turns.steering),
            *(Waiting("after the turn", message.typed) for message in self._turns.queued),
            *sent,
        ]

    @property
    def left_over(self) -> Sequence[SentPrompt]:
        """Sent texts that were not delivered, oldest first; valid once the queue is closed and has stopped."""
        return [*(SentPrompt(message.typed) for message in self._turns.left_over), *self._inbox.left_over]

    def send(self, sent: SentPrompt) -> None:
        self._inbox.put(sent)

    def submit(self, prompt: str | UserMessage) -> None:
        """Begin a turn with a prompt from a command, or queue the prompt after the running turn."""
        message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
        self._inbox.put(SentPrompt(message.typed, is_for_later=True, message=message))

    def wake(self) -> None:
        """Wake the model for its news as soon as nothing runs that the user has asked for."""
        self._turns.wake()

    def take_back(self) -> str | None:
        if (text := self._inbox.take_back()) is not None:
            return text
        message = self._turns.take_back()
        return None if message is None else message.typed

    def interrupt(self) -> bool:
        """Stop the shell command, else a slash command beside the turn, else the turn and waiting texts.

        Returns:
            True if there was something to stop that was not stopped before.
        """
        if self._shell.interrupt():
            return True
        is_beside_turn = self._turns.is_busy and self._inbox.is_at_command
        is_told = self._inbox.interrupt()
        return is_told if is_beside_turn else self.interrupt_turn() or is_told

    def interrupt_turn(self) -> bool:
        """End the running turn and nothing else; return True if there was one, as for `interrupt`."""
        return self._turns.interrupt()

    def close(self) -> None:
        """Handle nothing more; waiting texts are left over, unless the queue is opened again."""
        self._inbox.close()

    def open(self) -> None:
        self._inbox.open()
        self._turns.look_again()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._inbox.run)
            tasks.start_soon(self._shell.run)
            tasks.start_soon(self._turns.run)

    def shell_lines(self, width: int) -> Sequence[str]:
        return self._shell.live_lines(width)

    def _is_handling(self) -> bool:
        return self._shell.is_running or self._inbox.is_busy or self._inbox.is_closed

    async def _handle(self, sent: SentPrompt) -> None:
        try:
            await self._sending.handle(sent)
        finally:
            self._turns.look_again()

    def _shell_has_ended(self) -> None:
        self._inbox.look_again()
        self._turns.look_again()
