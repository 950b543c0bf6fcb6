"""Conversations, compactions and background tasks as text, for people and for models that read of them."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from panpan.core.background import Background
from panpan.system.text.terminal_text import clean_line, counted, spoken_s
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import TaskInfo, TaskState
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    CompactionTrigger,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)

if TYPE_CHECKING:
    from panpan.session.session import Session


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message, or a call in one."""

    number: int
    """Number of the message in the conversation, from 1."""
    heading: str
    text: str
    tool_use_id: str = ""
    """Id of the call that it is or answers; empty for other messages."""

    @property
    def whole(self) -> str:
        return f"[{self.number}] {self.heading}:\n{self.text}"


def transcript_entries(messages: Sequence[Message], *, first: int = 1) -> Iterator[TranscriptEntry]:
    """Yield what messages say, numbered from `first`, without thinking; pictures and documents are only mentioned.

    They are the conversation, or a part of it in which each result has its call.
    """
    names: dict[str, str] = {}
    for number, message in enumerate(messages, first):
        match message:
            case UserMessage():
                yield TranscriptEntry(number, "The user", _text_of(message.content))
            case SystemReminder():
                yield TranscriptEntry(number, "panpan", message.text)
            case AssistantMessage():
                if text := message.text.strip():
                    yield TranscriptEntry(number, "The model", text)
                for use in message.tool_uses:
                    names[use.id] = use.name
                    yield TranscriptEntry(number, f"Call of {use.name} ({use.id})", _arguments(use), use.id)
            case ToolResultMessage(result=result):
                name = names.get(message.tool_use_id, "a tool")
                what = "Error" if message.is_error else "Result"
                yield TranscriptEntry(
                    number,
                    f"{what} of {name} ({message.tool_use_id})",
                    _text_of(result.content),
                    message.tool_use_id,
                )
            case _:
                assert_never(message)


def _text_of(blocks: Sequence[object]) -> str:
    texts = [
        block.text if isinstance(block, TextBlock) else f"[a {type(block).__name__.removesuffix('Block').lower()}]"
        for block in blocks
    ]
    return "\n".join(texts)


def _arguments(use: ToolUseBlock) -> str:
    return json.dumps(use.input, ensure_ascii=False)


_WHY: dict[CompactionTrigger, str] = {
    "auto": "the context window was nearly full",
    "overflow": "the request was too long for the provider",
    "manual": "as you wanted",
    "undo": "taken back",
}


def compaction_lines(compaction: Compaction) -> Sequence[str]:
    """Return it in one or more lines; the first says what happened, the others what became of what."""
    report, sizes = compaction.report, f"about {compaction.tokens_before:,} → {compaction.tokens_after:,} tokens"
    if compaction.trigger == "undo":
        return (f"the compaction was undone: {sizes}; the model gets {counted(report.kept, 'message')} again",)
    lines = [f"conversation compacted, {_WHY[compaction.trigger]}: {sizes}", f"kept: {_kept(compaction)}"]
    if report.quoted:
        lines.append(f"quoted in your words: {counted(report.quoted, 'message')} of yours")
    if report.computed:
        lines.append(f"computed: {report.computed}")
    if report.summarised:
        lines.append(f"summarised by the model: {counted(report.summarised, 'message')}")
    if report.dropped or report.outputs:
        lines.append(f"dropped: {_dropped(compaction)}")
    if report.problem:
        lines.append(f"no summary: {report.problem}; the computed record takes its place")
    lines.append("the session's log keeps all of it; /compact undo restores it")
    return lines


def _kept(compaction: Compaction) -> str:
    report = compaction.report
    older = f", and {report.pinned:,} older (project rules, the prompt)" if report.pinned else ""
    return f"{counted(report.kept, 'newest message')}{older}"


def _dropped(compaction: Compaction) -> str:
    report = compaction.report
    parts = []
    if report.dropped:
        parts.append(counted(report.dropped, "message"))
    if report.outputs:
        parts.append(f"{counted(report.outputs, 'output')} of tools, replaced by a note")
    return ", ".join(parts)


_ENDS: dict[TaskState, str] = {
    "running": "runs",
    "finished": "ended",
    "failed": "failed",
    "stopped": "was stopped",
    "lost": "was lost",
}
_MOST_NAMED = 5


def ended_line(task: TaskInfo) -> str:
    """Return the sentence that a task has ended."""
    facts = [fact for fact in (_exit_code(task), clean_line(task.note)) if fact]
    more = f" ({'; '.join(facts)})" if facts else ""
    return f"Background task {task.id} {_ENDS[task.state]}: {clean_line(task.title)}{more}"


def task_detail(task: TaskInfo, now: float) -> str:
    """Return the state of a task in a list: how long it has run by `now`, or how it ended, and its id."""
    end = now if task.is_running else task.ended_at
    time = "" if end is None else spoken_s(max(end - task.started_at, 0.0))
    facts = ["running" if task.is_running else task.state, _exit_code(task), time, clean_line(task.note), task.id]
    return ", ".join(fact for fact in facts if fact)


def count_tasks(tasks: Sequence[TaskInfo]) -> str:
    """Return a count such as "2 background tasks run"."""
    return f"{len(tasks)} background task{'s run' if len(tasks) != 1 else ' runs'}"


def cannot_be_kept(tasks: Sequence[TaskInfo]) -> str:
    """Return that tasks end with panpan."""
    return f"cannot be kept running: {titles(tasks)}"


def titles(tasks: Sequence[TaskInfo]) -> str:
    """Return the titles of the first tasks."""
    names = [clean_line(task.title) for task in tasks[:_MOST_NAMED]]
    more = [f"and {len(tasks) - _MOST_NAMED:,} more"] if len(tasks) > _MOST_NAMED else []
    return ", ".join([*names, *more])


def _exit_code(task: TaskInfo) -> str:
    return "" if task.exit_code is None else f"exit code {task.exit_code}"


@dataclass(frozen=True, slots=True)
class TasksAtExit:
    """Running tasks for which the settings say nothing."""

    keepable: Sequence[TaskInfo]
    """Tasks that can go on without panpan."""
    ending: Sequence[TaskInfo]
    """Tasks that end with it in any case: those that were moved to the background, and subagents."""

    @property
    def all(self) -> Sequence[TaskInfo]:
        return [*self.keepable, *self.ending]


def tasks_to_ask_about(session: "Session") -> TasksAtExit:
    """Return those that run, where the settings do not say what becomes of them."""
    background, at_exit = session.find(Background), session.settings.background.at_exit
    if background is None:
        return TasksAtExit((), ())
    keepable = background.keepable
    kept = {task.id for task in keepable}
    ending = [task for task in background.running if task.id not in kept]
    return TasksAtExit(keepable if at_exit == "ask" else (), ending if at_exit != "stop" else ())
