"""The interactive loop in its plainest form: a prompt, a turn, a prompt."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from time import monotonic

import anyio

from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.signals import Received, watch_signals
from panpan.core.background import Background
from panpan.errors import ConfigError, OutputError, PanpanError, unwrap_single_exception
from panpan.faces.plain.line_commands import LineCommands
from panpan.faces.plain.line_face import LineFace, LineReader
from panpan.faces.session_change import SessionChange
from panpan.faces.terminal.rendering.cells import LEAST_WIDTH, plain_rows
from panpan.faces.turn_text import WaitingTime, note_on_end
from panpan.session.capability import NO_SHELL, UserShell
from panpan.session.command import Leave, Next, OpenSession
from panpan.session.in_words import cannot_be_kept, counted, ended_line, tasks_to_ask_about, titles
from panpan.session.session import Session
from panpan.types.events import TaskInfo
from panpan.types.messages import AssistantMessage, UserMessage

# Background tasks where there are only lines: the ends are told before a prompt, and who leaves is asked about them.
#
# The rule: nothing is printed while the user types, so the model is not woken for them; it hears of them with his next
# prompt.

STOP_OR_KEEP = "s stops before you leave, k keeps running, b goes back to the session: "
STOP_OR_STAY = "s stops and leaves, b goes back to the session: "


class LineTasks:
    """Tells of the tasks of one session.

    Args:
        session: The session.
        out: Standard output.
        lines: What the user types.
    """

    def __init__(self, session: Session, out: StdoutWriter, lines: LineReader) -> None:
        self._session = session
        self._out = out
        self._lines = lines
        self._told = {task.id for task in self._tasks if not task.is_running}

    @property
    def _tasks(self) -> Sequence[TaskInfo]:
        tasks = self._session.find(Background)
        return () if tasks is None else tasks.tasks

    async def say_what_ended(self) -> None:
        """Print a line for each task that has ended since this was last asked for."""
        for task in self._tasks:
            if not task.is_running and task.id not in self._told:
                self._told.add(task.id)
                await self._out.write(f"{ended_line(task)}\n")

    async def may_leave(self) -> bool:
        """Let the user who leaves say what becomes of those that run, and return whether he still wants to leave.

        Without an answer they are stopped.
        """
        tasks = tasks_to_ask_about(self._session)
        if not tasks.all:
            return True
        unkept = f"{cannot_be_kept(tasks.ending)}\n" if tasks.ending else ""
        choices = STOP_OR_KEEP if tasks.keepable else STOP_OR_STAY
        await self._out.write(f"{counted(tasks.all)}: {titles(tasks.all)}\n{unkept}{choices}")
        self._lines.go_on()  # a second Ctrl+D is no answer
        answer = (await self._lines.next() or "").strip().lower()
        stays = answer in ("b", "back")
        if tasks.keepable and not stays:
            self._session[Background].keep_at_exit(keeps=answer in ("k", "keep"))
        return not stays


PROMPT = "❯ "
AGAIN_S = 3.0
"""How soon a second Ctrl+C has to follow to leave; a later one has a line of its own to drop."""
HOW_TO_LEAVE = "press Ctrl+C again or Ctrl+D to leave"
WAY_BACK_S = 0.5
"""What a terminal gets to take the last line when a signal ends the process."""
LEAVING = {"exit", "quit", "q", "/exit", "/quit", "/q"}


async def run_line_loop(
    open_session: Callable[[], AbstractAsyncContextManager[Session]],
    change: SessionChange,
    out: StdoutWriter,
    lines: LineReader,
    *,
    env: Mapping[str, str],
    has_colour: bool,
    waiting: WaitingTime | None = None,
) -> int:
    """Take prompts until the user leaves, and return the exit code.

    Args:
        open_session: Opens the session that the command line asks for.
        change: Opens other ones.
        out: Standard output.
        lines: What the user types.
        env: The environment that panpan was started in.
        has_colour: True if diffs are coloured and notes dim.
        waiting: How long the user was waited for; None: nobody is asked.

    Raises:
        PanpanError: The session could not be opened.
    """
    received = Received()
    loop: _LineLoop | None = None
    waiting = waiting or WaitingTime(monotonic)
    with unwrap_single_exception():
        async with anyio.create_task_group() as task_group:
            stop = task_group.cancel_scope.cancel
            opening, then = open_session(), None
            while not isinstance(then, Leave):
                async with opening as session:
                    if loop is None:
                        face = LineFace(out, has_colour=has_colour, waiting=waiting)
                        commands = LineCommands(out, env, has_colour=has_colour)
                        loop = _LineLoop(session, out, lines, face, commands, env, waiting)
                        task_group.start_soon(_watch, received, loop, stop)
                    then = await loop.run(session, received)
                    if isinstance(then, Leave):
                        stop("the user left")
                    else:
                        opening = change.to(then, session)
    if received.exit_code is not None and loop is not None:
        await loop.say_way_back_after_signal()
    return received.exit_code or 0


async def _watch(received: Received, loop: "_LineLoop", stop: Callable[[], object]) -> None:
    await watch_signals(received, interrupt=loop.interrupt, stop=stop, may_leave=loop.may_leave)


class _LineLoop:
    """Prompts, commands and turns of one session after the other, and what Ctrl+C does in each."""

    def __init__(
        self,
        session: Session,
        out: StdoutWriter,
        lines: LineReader,
        face: LineFace,
        commands: LineCommands,
        env: Mapping[str, str],
        waiting: WaitingTime,
    ) -> None:
        self._session = session
        self._out = out
        self._lines = lines
        self._face = face
        self._commands = commands
        self._env = env
        self._waiting = waiting
        self._waited_before_s = 0.0
        """When the session was opened."""
        self._shown_id = ""
        """Of the session whose turns were printed last."""
        self._tasks = LineTasks(session, out, lines)
        self._is_in_turn = False
        self._command_scope: anyio.CancelScope | None = None
        """Of the slash command, or the user's own command of the shell, that runs."""
        self._warned_at = float("-inf")
        """When the user was told how to leave, in seconds of the event loop's clock."""
        self._has_said_way_back = False

    async def run(self, session: Session, received: Received) -> Next:
        """Take prompts until the user leaves the session, or a signal has come that ends the process."""
        info = session.info
        is_shown = info.id == self._shown_id  # where the one that was wanted could not be opened
        self._session, self._shown_id = session, info.id
        self._waited_before_s = self._waiting.answered_s
        self._tasks = LineTasks(session, self._out, self._lines)
        note = f"{session.model_note}\n" if session.model_note else ""
        await self._out.write(
            f"panpan in {info.cwd}, mode {session.permission_mode}: {info.choice}\n{note}"
            "'help' tells the commands and keys\n"
        )
        if not is_shown:
            await self._face.show_past(session.conversation.messages)
        while received.exit_code is None:
            prompt = await self._ask_for_prompt()
            if prompt is None:
                if received.exit_code is not None or await self._tasks.may_leave():
                    break
            elif (command := self._commands.line_in(prompt)) is not None:
                then = await self._run_command(command)
                if then is not None and await self._tasks.may_leave():
                    await self._say_what_comes(then)
                    return then
            elif prompt.startswith("!") and len(prompt) > 1:
                await self._run_in_shell(prompt[1:].strip())
            elif prompt:
                await self._show_turn(prompt)
        await self._say_how_to_go_on()
        return Leave()

    def interrupt(self) -> bool:
        """End the turn or the command that runs, and forget what is half typed; return whether there was one to end."""
        self._lines.forget()
        if (scope := self._command_scope) is not None and not scope.cancel_called:
            scope.cancel("the user interrupted it")
            return True
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

    async def say_way_back_after_signal(self) -> None:
        """Tell the user how to go on, unless that was said, or the terminal is gone or takes nothing."""
        if self._has_said_way_back:
            return
        with suppress(OSError, OutputError), anyio.move_on_after(WAY_BACK_S):
            await self._out.write("\n")
            await self._say_how_to_go_on()

    async def _ask_for_prompt(self) -> str | None:
        """Return what the user typed, or None when he leaves."""
        await self._tasks.say_what_ended()
        await self._out.write(PROMPT)
        text = await self._lines.next()
        if text is None:
            await self._out.write("\n")
            return None
        prompt = text.strip()
        # typed more than once while a turn ran, it comes as several lines
        return None if {line.strip().lower() for line in prompt.split("\n")} <= LEAVING else prompt

    async def _run_command(self, line: str) -> Next | None:
        """Run a slash command and the turns that it asks for; return what comes after this session, where it ends."""
        self._warned_at = float("-inf")
        terminal = None
        try:
            with anyio.CancelScope() as self._command_scope:
                waited_s = self._waiting.answered_s - self._waited_before_s
                terminal = await self._commands.run(line, self._session, waited_s)
        except PanpanError as error:
            await self._warn(str(error))
        finally:
            self._command_scope = None
        if terminal is None:
            return None
        for prompt in terminal.prompts:
            await self._show_turn(prompt)
        return terminal.then

    async def _run_in_shell(self, command: str) -> None:
        self._warned_at = float("-inf")
        self._command_scope = anyio.CancelScope()
        try:
            if (shell := self._session.find(UserShell)) is None:
                raise ConfigError(NO_SHELL)
            result = await shell.run(command, lambda _: None, scope=self._command_scope)
            await self._out.write("".join(f"{line}\n" for line in result.lines))
            self._session.add_message(result.message)
        except PanpanError as error:
            await self._warn(str(error))
        finally:
            self._command_scope = None

    async def _say_what_comes(self, then: Next) -> None:
        if isinstance(then, OpenSession) and then.said:
            await self._say(then.said)

    async def _warn(self, text: str) -> None:
        await self._say(f"panpan: {text}")

    async def _say(self, text: str) -> None:
        rows = plain_rows(text, max(shutil.get_terminal_size().columns, LEAST_WIDTH))
        await self._out.write("".join(f"{row}\n" for row in rows))

    async def _show_turn(self, prompt: str | UserMessage) -> None:
        self._warned_at = float("-inf")
        self._is_in_turn = True
        last_reply: AssistantMessage | None = None
        try:
            async with aclosing(self._session.send(await self._session.prepared(prompt))) as events:
                async for event in events:
                    await self._face.show(event)
                    if isinstance(event, AssistantMessage):
                        last_reply = event
        except PanpanError as error:
            await self._face.end()
            await self._warn(str(error))
            return
        finally:
            self._is_in_turn = False
        if last_reply is not None and (note := note_on_end(last_reply)):
            await self._warn(note)

    async def _say_how_to_go_on(self) -> None:
        if self._session.conversation.messages:
            await self._out.write(f"resume with: panpan -c, or panpan -r {self._session.info.id}\n")
        self._has_said_way_back = True
