"""The three output formats: the answer as text, one object at the end, or a JSON line for each event."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from panpan.cli_kit.stdout import StdoutWriter
from panpan.errors import PanpanError
from panpan.faces.answer_text import AnswerText
from panpan.faces.headless import wire
from panpan.faces.headless.face import HeadlessFace, Outcome, TurnSummary, outcome_of_error
from panpan.faces.tool_lines import ToolLines
from panpan.session.background_tasks import ended_line
from panpan.session.session import SessionInfo
from panpan.types.background import TaskInfo
from panpan.types.display import PlanDisplay
from panpan.types.events import (
    CommandRan,
    Compacted,
    Event,
    PermissionDecided,
    RetryScheduled,
    StreamEvent,
    SubagentEvent,
    Waiting,
)
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage, new_id
from panpan.types.reminders import PROJECT_CONTEXT


class JsonFace(HeadlessFace):
    """Prints the result object and nothing else."""

    def __init__(self, out: StdoutWriter, session_id: str) -> None:
        self._out = out
        self._session_id = session_id
        self._line_at_a_time = anyio.Lock(fast_acquire=True)  # tasks end while a turn prints

    async def show(self, event: Event) -> None:
        pass

    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        await self._print(wire.result_line(self._session_id, summary, outcome, duration_s))

    async def _print(self, line: Mapping[str, Any]) -> None:
        async with self._line_at_a_time:
            await self._out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


class StreamJsonFace(JsonFace):
    """Prints a line for each message, each notice, and each delta where asked for; the result object ends a turn.

    What happens in a subagent is printed in the same way, with the id of the call that started it; but for the project
    context, which is that of the session.

    Args:
        out: Standard output.
        info: What the first line tells of the session.
        has_partial_messages: Whether deltas are printed, too.
        commands: Names of the slash commands that a message may be.
        agents: Names of the kinds of subagents that the model may start.
    """

    def __init__(
        self,
        out: StdoutWriter,
        info: SessionInfo,
        *,
        has_partial_messages: bool,
        commands: Sequence[str] = (),
        agents: Sequence[str] = (),
    ) -> None:
        super().__init__(out, info.id)
        self._info = info
        self._commands = commands
        self._agents = agents
        self._has_partial_messages = has_partial_messages

    async def begin(self) -> None:
        await self._print(wire.init_line(self._info, self._commands, self._agents))

    async def task_started(self, task: TaskInfo) -> None:
        await self._print(wire.task_started_line(task, self._session_id))

    async def task_ended(self, task: TaskInfo) -> None:
        await self._print(wire.task_ended_line(task, self._session_id))

    async def show(self, event: Event) -> None:
        if isinstance(event, SubagentEvent):
            here = event.innermost
            await self._show(here.event, wire.origin(here))
        else:
            await self._show(event, {})

    async def _show(self, event: Event, origin: Mapping[str, str]) -> None:
        """Print what an event says, with what tells the agent in which it happens; nothing for the session's own."""
        if self._has_partial_messages and isinstance(event, StreamEvent):
            for line in wire.partial_lines(event, self._session_id):
                await self._print({**line, **origin})
        match event:
            case AssistantMessage() | ToolResultMessage() | UserMessage():
                await self._print({**wire.message_line(event, self._session_id), **origin})
            case SystemReminder(cause=cause) if origin and cause == PROJECT_CONTEXT:
                pass  # what the session itself was told, which is long
            case CommandRan():
                await self._print(wire.command_line(event, self._session_id))
            case RetryScheduled() | Waiting() | PermissionDecided(is_allowed=False) | SystemReminder() | Compacted():
                await self._print({**wire.notice_line(event, self._session_id), **origin})
            case _:
                pass


async def show_failed_start(out: StdoutWriter, error: PanpanError) -> None:
    """Print the result object of a run whose session could not be opened."""
    await JsonFace(out, new_id()).end(TurnSummary(), outcome_of_error(error), 0.0)


class TextFace(HeadlessFace):
    """Prints the text of the replies, and a plan that is the result of the run.

    Args:
        out: Standard output.
        note: Prints one line of progress; None where there is no terminal for it.
    """

    def __init__(self, out: StdoutWriter, note: Callable[[str], None] | None) -> None:
        self._note = note
        self._answer = AnswerText(out)
        self._tool_lines = ToolLines()

    async def show(self, event: Event) -> None:
        await self._answer.follow(event)
        match event:
            case ToolResultMessage(display=PlanDisplay(is_result=True, text=text)) | CommandRan(text=text):
                await self._answer.add_whole(text)
            case _:
                pass
        if self._note is not None:
            for line in self._tool_lines.lines(event):
                await self._answer.make_room()
                self._note(line)

    async def task_ended(self, task: TaskInfo) -> None:
        if self._note is not None:
            await self._answer.make_room()
            self._note(ended_line(task))

    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        await self._answer.end()
