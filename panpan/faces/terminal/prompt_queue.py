"""What the user has asked for: what runs, what waits, and how both are stopped or taken back."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Protocol

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from panpan.errors import ConfigError, PanpanError
from panpan.faces.terminal.commands.registry import command_in, find, unknown
from panpan.faces.terminal.input.keys import Sent
from panpan.faces.terminal.rendering.cells import Scrollback, output_of_users_command, say
from panpan.faces.terminal.rendering.messages import LiveOutput, command_head_lines, prompt_lines, running_line
from panpan.faces.terminal.screen.screen import TurnShower
from panpan.faces.terminal.turn_runner import TurnRunner
from panpan.session.capability import NO_SHELL, UserShell
from panpan.session.command import Command, Terminal
from panpan.types.dataclass import dataclass
from panpan.types.messages import UserMessage


class ReplTerminal(Terminal, Scrollback, Protocol):
    """A terminal in which the user types."""

    def echo(self, *lines: str) -> None:
        """Show what was typed, unless it stands there already."""


class Inbox:
    """Hands on what is put in.

    Args:
        handle: Does what a text asks for; one at a time.
        has_to_wait: True if something cannot be handled at the moment; what comes after it and can be is not held up.
        give_back: Gets the text of what was interrupted before it was done.
    """

    def __init__(
        self,
        handle: Callable[[Sent], Awaitable[None]],
        has_to_wait: Callable[[Sent], bool],
        give_back: Callable[[str], None],
    ) -> None:
        self._handle = handle
        self._has_to_wait = has_to_wait
        self._give_back = give_back
        self._is_closed = False
        self._waiting: deque[Sent] = deque()
        self._has_changed = anyio.Event()
        self._at_hand: Sent | None = None
        """What is being handled, and stays so where all is ended meanwhile."""
        self._scope: anyio.CancelScope | None = None

    @property
    def is_busy(self) -> bool:
        return self._scope is not None

    @property
    def is_at_command(self) -> bool:
        """True if what is being handled looks like a slash command."""
        return self.is_busy and self._at_hand is not None and self._at_hand.text.startswith("/")

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(sent.text for sent in self._waiting)

    @property
    def left_over(self) -> tuple[Sent, ...]:
        """What was not handled, or not to its end."""
        return (*([] if self._at_hand is None else [self._at_hand]), *self._waiting)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Handle nothing more; what waits stays."""
        self._is_closed = True

    def open(self) -> None:
        self._is_closed = False
        self.look_again()

    def put(self, sent: Sent) -> None:
        self._waiting.append(sent)
        self.look_again()

    def look_again(self) -> None:
        """Handle what had to wait and has not to any more."""
        self._has_changed.set()

    def take_back(self) -> str | None:
        return self._waiting.pop().text if self._waiting else None

    def interrupt(self) -> bool:
        """End what is being handled, or is about to be.

        Returns:
            Whether there was something that had not been told to end before.
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
                    self._give_back(sent.text)

    def _give_back_next(self) -> bool:
        """Give back what would be handled now, and return whether there was anything."""
        given_back: list[str] = []
        while (sent := self._next()) is not None:
            given_back.append(sent.text)
        if given_back:
            self._give_back("\n".join(given_back))
        return bool(given_back)

    def _next(self) -> Sent | None:
        if self._is_closed:
            return None
        sent = next((sent for sent in self._waiting if not self._has_to_wait(sent)), None)
        if sent is not None:
            self._waiting.remove(sent)
        return sent


_LIVE_LINES = 3
_SHOWN_ROWS = 40
"""Of what a command printed; the model gets more."""


class _Running:
    """A command that runs, and what it has printed."""

    def __init__(self, shell: UserShell, command: str) -> None:
        self.shell = shell
        self.command = command
        self.output = LiveOutput()
        self.began_s = monotonic()
        self.scope = anyio.CancelScope()


class ShellLine:
    """Runs one command at a time.

    Args:
        terminal: Where its output goes.
        tell_model: Gets the message that says what was run and printed.
        has_ended: Called when a command has ended and the model was told.
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
        """True if a command runs, or is about to."""
        return self._running is not None

    def begin(self, command: str) -> None:
        """Begin a command; none may run.

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
        """Stop the command that runs; return whether there was one that had not been told to end before."""
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
            terminal.show(*output_of_users_command(printed, terminal.width, terminal.theme, _SHOWN_ROWS))
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


class Sending:
    """Decides who gets a line.

    Args:
        terminal: What commands may use.
        commands: All there are.
        turns: Runs prompts.
        shell: Runs the user's own commands.
    """

    def __init__(
        self, terminal: ReplTerminal, commands: Sequence[Command], turns: TurnRunner, shell: ShellLine
    ) -> None:
        self._terminal = terminal
        self._commands = commands
        self._turns = turns
        self._shell = shell

    def has_to_wait(self, sent: Sent) -> bool:
        """True if it has to wait for the shell command that runs, as all but what a command does at any time."""
        if not self._shell.is_running:
            return False
        line = self._command_in(sent)
        if line is None:
            return True
        found = find(self._commands, line)
        return found is not None and not found[0].is_immediate

    async def handle(self, sent: Sent) -> None:
        """Do what a text asks for; what goes wrong is said in one line."""
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

    def _command_in(self, sent: Sent) -> str | None:
        return command_in(sent.text.strip(), self._commands) if sent.message is None else None

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
        await command.run(self._terminal, rest)

    async def _prompt(self, sent: Sent) -> None:
        message = await self._terminal.session.prepared(sent.message or sent.text)
        await checkpoint_if_cancelled()  # from here on it is the turn that an interrupt ends
        if sent.is_for_later:
            self._turns.submit(message)
        else:
            self._turns.steer(message)

    def _warn(self, text: str) -> None:
        say(self._terminal, text, "warn")


# What the user has asked for: what runs, what waits for it, and how both are stopped or taken back.
#
# Three things run side by side: the lines that are handled (`Inbox`), the user's own shell command (`ShellLine`) and
# the turn (`TurnRunner`). What the user sends goes through the inbox; what asks the model for something, or runs a
# command of the shell, waits there while such a command runs, so that it comes behind it.


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that was sent and is not delivered."""

    until: str
    """When its turn comes, in a few words."""
    text: str
    """As it was typed."""


class PromptQueue:
    """Does what the user sends.

    Args:
        terminal: The one it was typed in.
        view: Shows the turns.
        commands: What slash commands there are.
        give_back: Gets the text of what was interrupted before it was done or delivered.
    """

    def __init__(
        self, terminal: ReplTerminal, view: TurnShower, commands: Sequence[Command], give_back: Callable[[str], None]
    ) -> None:
        self._view = view
        self._turns = TurnRunner(terminal.session, view, give_back, self._is_handling)
        self._shell = ShellLine(terminal, self._turns.note, self._shell_has_ended)
        self._sending = Sending(terminal, commands, self._turns, self._shell)
        self._inbox = Inbox(self._handle, self._sending.has_to_wait, give_back)

    @property
    def is_busy(self) -> bool:
        return self._shell.is_running or self._inbox.is_busy or self._turns.is_busy

    @property
    def is_settled(self) -> bool:
        """True if all that was sent is done, and more may be sent."""
        return not (self.is_busy or self._inbox.waiting or self._inbox.is_closed)

    @property
    def is_moving(self) -> bool:
        return self._shell.is_running or self._view.is_moving

    @property
    def waiting(self) -> Sequence[Waiting]:
        sent: list[Waiting] = []
        if self._shell.is_running or self._inbox.is_busy:  # what waits for nothing is handled before it could be read
            until = "after the command" if self._shell.is_running else "next"
            sent = [Waiting(until, text) for text in self._inbox.waiting]
        return [
            *(Waiting("next round", message.typed) for message in self._turns.steering),
            *(Waiting("after the turn", message.typed) for message in self._turns.queued),
            *sent,
        ]

    @property
    def left_over(self) -> Sequence[Sent]:
        """What was sent and nobody got, once this is closed and does not run any more; what came first is first."""
        return [*(Sent(message.typed) for message in self._turns.left_over), *self._inbox.left_over]

    def send(self, sent: Sent) -> None:
        self._inbox.put(sent)

    def submit(self, prompt: str | UserMessage) -> None:
        """Begin a turn with a prompt that a command made, or queue it behind what runs."""
        message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
        self._inbox.put(Sent(message.typed, is_for_later=True, message=message))

    def wake(self) -> None:
        """Let the model know what is new as soon as nothing goes on that the user has asked for."""
        self._turns.wake()

    def take_back(self) -> str | None:
        if (text := self._inbox.take_back()) is not None:
            return text
        message = self._turns.take_back()
        return None if message is None else message.typed

    def interrupt(self) -> bool:
        """End what runs, or is about to: the shell command, else a slash command beside the turn, else the rest.

        Returns:
            Whether there was something that had not been told to end before.
        """
        if self._shell.interrupt():
            return True
        is_beside_turn = self._turns.is_busy and self._inbox.is_at_command
        is_told = self._inbox.interrupt()
        return is_told if is_beside_turn else self.interrupt_turn() or is_told

    def interrupt_turn(self) -> bool:
        """End the turn that runs and nothing else; return whether there was one, as for `interrupt`."""
        return self._turns.interrupt()

    def close(self) -> None:
        """Handle nothing more; what waits is left over, unless it is opened again."""
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

    async def _handle(self, sent: Sent) -> None:
        try:
            await self._sending.handle(sent)
        finally:
            self._turns.look_again()

    def _shell_has_ended(self) -> None:
        self._inbox.look_again()
        self._turns.look_again()
