"""The shell: commands of the model, and those that users run themselves with `!` before them.

What a command of the user's prints becomes part of the conversation. It is Bash in everything (shell, working
directory, limits, how it ends and what is kept of its output), but nobody is asked, since the user typed it, and it
gets all of their variables except keys.
"""

import logging
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from itertools import takewhile
from typing import Any

import anyio
from anyio import CancelScope, to_thread

from panpan.capabilities.shell.bash import MAX_COMMAND_BYTES, MAX_RESULT_CHARS, MAX_TIMEOUT_MS, BashInput, BashTool
from panpan.core.background import Background
from panpan.core.hooks import Addition, Hook, Round
from panpan.core.recorded_commands import NOT_RECORDED, CommandRecords, Runner, RunnerRecords
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.session.agent import Agent
from panpan.session.capability import Capability, UserCommandResult, UserShell, concurrently
from panpan.session.context import SessionContext
from panpan.system.processes.detached import mark_as_user_command
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.attachments import tag_shell_command
from panpan.types.events import Output, Progress
from panpan.types.messages import UserMessage, new_id
from panpan.types.pattern import compile_late

USER_COMMAND_TIMEOUT_S = MAX_TIMEOUT_MS / 1000
"""Seconds after which a command is ended."""
INTERRUPTED = "[interrupted by the user; what it printed until then is above]"


log = logging.getLogger(__name__)

_HEAD_START_S = 0.2
"""Seconds for the first request to go out, before something is loaded."""


class WarmUp(Hook):
    """Loads what the first calls need while the model writes its first reply."""

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        self._asked = anyio.Event()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        self._asked.set()
        return ()

    async def serve(self) -> None:
        """Wait for the first request, then load; to be run beside the session."""
        await self._asked.wait()
        await anyio.sleep(_HEAD_START_S)
        tools, sandbox = self._session.main.model.tools, self._session.tool_context.sandbox
        try:
            await to_thread.run_sync(_load, tuple(tools.values()), abandon_on_cancel=True)
            if BashTool.name in tools and sandbox.is_on:
                await sandbox.choice()
        except Exception:  # the first call says what is wrong
            log.exception("what the first calls need could not be loaded")


def _load(tools: Iterable[Tool[Any]]) -> None:
    for tool in tools:
        if isinstance(loaded := tool.load(), BashTool):
            loaded.warm_up()


class Shell(Capability):
    """Runs commands."""

    name = "shell"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._warm_up = WarmUp(session)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self._warm_up,) if agent.is_main else ()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with concurrently(self._warm_up.serve):
            yield

    def services(self) -> Iterable[object]:
        return (UserCommands(lambda: self.session.main.context, lambda: self._records(Runner(is_user=True))),)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        background = self.session.find(Background) if agent.is_main else None
        return (BashTool(background, self._records(agent.runner)),)

    def _records(self, runner: Runner) -> RunnerRecords:
        return RunnerRecords(self.session.find(CommandRecords), runner)


class UserCommands(UserShell):
    """Runs them in one session.

    Args:
        context: Returns what its tools work with.
        records: Returns the records of the user's commands.
    """

    timeout_s = USER_COMMAND_TIMEOUT_S

    def __init__(
        self, context: Callable[[], ToolContext], records: Callable[[], RunnerRecords] = lambda: NOT_RECORDED
    ) -> None:
        self._context = context
        self._records = records

    async def run(
        self, command: str, show: Callable[[str], None], *, scope: CancelScope | None = None
    ) -> UserCommandResult:
        return await run_user_command(command, self._context(), show, scope=scope, records=self._records())


_FULL_SCREEN = compile_late(
    "n?vim?|view|vimdiff|nano|pico|emacs|micro|hx|helix|kak|joe|mc|ranger|nnn|lf|tig|lazygit|ncdu|[hba]?top|nvtop"
)
_BEFORE_PROGRAM = frozenset({"sudo", "env", "command", "exec", "time", "nice"})
_WITHOUT_SCREEN = compile_late(r"-b\w*|-[eE]s\w*|--?(?:batch|headless|version|help)|-[hV]")
"""Options with which such a program prints lines."""


def full_screen_program(command: str) -> str:
    """Return the program in a command line that is known to draw on the whole terminal; empty where there is none."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        parts = re.split(r"\0[;&|()]+\0", "\0".join(["", *words, ""]))
    except ValueError:  # unbalanced quotes
        return ""
    for part in (part.strip("\0").split("\0") for part in parts):
        is_before = (word in _BEFORE_PROGRAM or re.match(r"\w+=", word) is not None for word in part)
        program, *rest = part[sum(takewhile(bool, is_before)) :] or [""]
        name = program.rpartition("/")[2]
        if _FULL_SCREEN.fullmatch(name) and not any(_WITHOUT_SCREEN.fullmatch(word) for word in rest):
            return name
    return ""


async def run_user_command(
    command: str,
    ctx: ToolContext,
    show: Callable[[str], None],
    *,
    scope: CancelScope | None = None,
    records: RunnerRecords = NOT_RECORDED,
) -> UserCommandResult:
    """Run a command in the session's working directory.

    Args:
        command: The text behind the `!`.
        ctx: As for a tool.
        show: Given what the command prints while it runs, at most ten times a second; not yet harmless for a terminal.
        scope: Cancelling it stops the command with all that it started; what it printed until then is the result.
        records: Records of the user's commands.

    Raises:
        ToolError: The command is empty, too long, not UTF-8, needs a terminal or cannot be started.
    """
    if not command.strip():
        raise ToolError("there is no command behind the !")
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolError(
            "the command has bytes that are not UTF-8, which the conversation cannot hold; "
            "write them as $'\\xff', or put the command into a script"
        ) from None
    if size > MAX_COMMAND_BYTES:
        raise ToolError(f"the command has more than {MAX_COMMAND_BYTES:,} bytes; write a script file")
    if program := full_screen_program(command):
        raise ToolError(f"{program} needs a terminal; press Ctrl+Z and run it in the shell, then fg comes back here")
    # Run it as the user's own shell would: outside the sandbox, with all variables but keys.
    ctx = replace(
        ctx,
        tool_use_id=f"user-{new_id()[-8:]}",
        runs_alone=True,
        sandbox=CommandSandbox(),
        environment=mark_as_user_command(ctx.processes, ctx.user_environment),
    )
    printed = ctx.outputs.collector("user-command", max_chars=MAX_RESULT_CHARS)
    output: Output | None = None
    with scope or CancelScope():
        bash = BashTool(records=records)
        async with aclosing(bash.run(BashInput(command=command, timeout=MAX_TIMEOUT_MS), ctx)) as yields:
            async for item in yields:
                if isinstance(item, Output):
                    output = item
                elif isinstance(item, Progress):
                    printed.feed(item.text.encode(errors="replace"))
                    show(item.text)
    if output is None:
        output = Output("\n".join(filter(None, (printed.finish().rstrip("\n"), INTERRUPTED))), is_error=True)
    return UserCommandResult(
        message=UserMessage.of(tag_shell_command(command, output.text)),
        lines=clean_for_terminal(output.text).split("\n"),
        is_error=output.is_error,
    )
