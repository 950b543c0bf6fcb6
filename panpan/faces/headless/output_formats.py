"""The three output formats: the answer as text, one object at the end, or a JSON line for each event."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from panpan.cli_kit.failures import StdoutWriter, TextOut, json_line
from panpan.errors import AnswerNeededError, PanpanError, RetryableError
from panpan.faces.headless.face import HeadlessFace, Outcome, TurnSummary, allowed_with, outcome_of_error
from panpan.faces.turn_text import AnswerText, ToolLines
from panpan.session.descriptions import ended_line
from panpan.session.session import SessionInfo
from panpan.types.content import PlanDisplay, RedactedThinkingBlock, ThinkingBlock, ToolUseBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    CommandRan,
    Compacted,
    Event,
    PermissionDecided,
    ReplyStarted,
    RetryScheduled,
    StreamEvent,
    SubagentEvent,
    TaskInfo,
    TaskState,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    Waiting,
)
from panpan.types.messages import (
    PROJECT_CONTEXT,
    AssistantMessage,
    Compaction,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
    new_id,
)
from panpan.version import __version__

CLAUDE_CODE_VERSION = "2.1.257"
"""Version of the program whose shapes these are, for clients that look at it; panpan's own is `panpan_version`."""

_NO_FEATURES: Mapping[str, Callable[[], object]] = {}
_MOST_PROMPTS = 64
"""Most ids of messages in a result."""
_TASK_STATUS: Mapping[TaskState, str] = {
    "finished": "completed",
    "failed": "failed",
    "stopped": "stopped",
    "lost": "failed",  # there is no word for it
}


def init_line(
    info: SessionInfo, commands: Sequence[str] = (), features: Mapping[str, Callable[[], object]] = _NO_FEATURES
) -> dict[str, Any]:
    """Return the first line: facts about the session, its slash commands, and what its features say of themselves."""
    return {
        "type": "system",
        "subtype": "init",
        "session_id": info.id,
        "uuid": new_id(),
        "cwd": str(info.cwd),
        "tools": list(info.tools),
        "mcp_servers": [],
        "model": info.model,
        "permissionMode": info.permission_mode,
        "slash_commands": list(commands),
        "agents": [],
        "skills": [],
        "plugins": [],
        "output_style": "default",
        "apiKeySource": info.key_source,
        "claude_code_version": CLAUDE_CODE_VERSION,
        "panpan_version": __version__,
        "capabilities": [],
        "fast_mode_state": "off",
        **{key: ask() for key, ask in features.items()},
    }


def origin(event: SubagentEvent) -> dict[str, str]:
    """Return the fields that mark a line as a subagent's; the event has to be the innermost."""
    return {"parent_tool_use_id": event.parent_tool_use_id, "agent_id": event.agent_id}


def message_line(message: AssistantMessage | ToolResultMessage | UserMessage, session_id: str) -> dict[str, Any]:
    """Return the line of a message of the conversation."""
    line: dict[str, Any] = {
        "type": "assistant" if isinstance(message, AssistantMessage) else "user",
        "message": _message_body(message),
        "parent_tool_use_id": None,
        "session_id": session_id,
        "uuid": message.uuid,
    }
    if isinstance(message, ToolResultMessage) and message.display is not None:
        line["tool_use_result"] = message.display.model_dump(mode="json")
    return line


def _message_body(message: AssistantMessage | ToolResultMessage | UserMessage) -> dict[str, Any]:
    match message:
        case AssistantMessage():
            return {
                "role": "assistant",
                "type": "message",
                "model": message.model,
                "content": [block.model_dump(mode="json", exclude={"input_error"}) for block in message.content],
                "stop_reason": message.stop_reason,
                "usage": message.usage.model_dump(),
            }
        case ToolResultMessage():
            return {"role": "user", "content": [message.result.model_dump(mode="json")]}
        case UserMessage():
            return {"role": "user", "content": [block.model_dump(mode="json") for block in message.content]}


def notice_line(
    event: RetryScheduled | Waiting | PermissionDecided | SystemReminder | Compacted, session_id: str
) -> dict[str, Any]:
    """Return the line of an event that is not a message; a decision is a denial, or a call that cannot be made."""
    match event:
        case RetryScheduled():
            body: dict[str, Any] = {
                "subtype": "api_retry",
                "attempt": event.attempt,
                "reason": event.reason,
                "retry_delay_ms": round(event.delay_s * 1000),
            }
        case Waiting():
            body = {"subtype": "waiting", "reason": event.reason}
        case PermissionDecided():
            body = {
                "subtype": "permission_denied" if event.is_denial else "call_rejected",
                "tool_name": event.name,
                "tool_use_id": event.tool_use_id,
                "reason": event.reason,
                "reasons": [reason.as_json() for reason in event.reasons],
                "digest": event.digest,
            }
        case Compacted(compaction=compaction):
            body = {"subtype": "compact_boundary", "compact_metadata": _compact_metadata(compaction)}
        case SystemReminder():
            about = {"cause": event.cause, "category": event.category, "priority": event.priority}
            body = {"subtype": "system_reminder", **about, "content": event.text}
    return {"type": "system", **body, "session_id": session_id, "uuid": new_id()}


def _compact_metadata(compaction: Compaction) -> dict[str, Any]:
    """Return the figures of a compaction: first under the names that other agents use, then under ours."""
    report = compaction.report
    return {
        "trigger": "manual" if compaction.trigger == "manual" else "auto",
        "pre_tokens": compaction.tokens_before,
        "post_tokens": compaction.tokens_after,
        "cause": compaction.trigger,
        "kept_messages": report.kept,
        "pinned_messages": report.pinned,
        "quoted_messages": report.quoted,
        "computed": report.computed,
        "summarised_messages": report.summarised,
        "dropped_messages": report.dropped,
        "dropped_outputs": report.outputs,
        "problem": report.problem,
    }


def command_line(event: CommandRan, session_id: str) -> dict[str, Any]:
    """Return the line with the output of a slash command."""
    return {
        "type": "system",
        "subtype": "local_command_output",
        "content": event.text,
        "session_id": session_id,
        "uuid": new_id(),
    }


def task_started_line(task: TaskInfo, session_id: str) -> dict[str, Any]:
    """Return the line of a background task that has started."""
    return {
        "type": "system",
        "subtype": "task_started",
        "task_id": task.id,
        "tool_use_id": task.tool_use_id,
        "description": task.title,
        "task_type": "local_bash" if task.kind == "command" else "local_agent",
        "session_id": session_id,
        "uuid": new_id(),
    }


def task_ended_line(task: TaskInfo, session_id: str) -> dict[str, Any]:
    """Return the line of a background task that has ended."""
    return {
        "type": "system",
        "subtype": "task_notification",
        "task_id": task.id,
        "tool_use_id": task.tool_use_id,
        "status": _TASK_STATUS[task.state],
        "summary": ended_line(task),
        "output_file": str(task.output),
        "exit_code": task.exit_code,
        "session_id": session_id,
        "uuid": new_id(),
    }


def result_line(session_id: str, summary: TurnSummary, outcome: Outcome, duration_s: float) -> dict[str, Any]:
    """Return the last line of a turn: its outcome and usage."""
    reply, spent, by_model = summary.last_reply, summary.spent, summary.spent_in_all.by_model
    line: dict[str, Any] = {
        "type": "result",
        "subtype": outcome.subtype,
        "is_error": outcome.subtype != "success",
        "duration_ms": round(duration_s * 1000),
        "duration_api_ms": round(spent.api_duration_s * 1000),
        "num_turns": summary.rounds,
        "result": summary.answer,
        "stop_reason": reply.stop_reason if reply is not None else None,
        "session_id": session_id,
        "total_cost_usd": summary.spent_in_all.usd,
        "usage": spent.usage.model_dump(),
        "modelUsage": {model: _model_usage(costs.usage, costs.cost_usd) for model, costs in by_model.items()},
        "permission_denials": [_denial(use, summary.decided[use.id]) for use in summary.denials],
        "files_changed": [change.as_json() for change in summary.files],
        "terminal_reason": outcome.reason,
        "uuid": new_id(),
    }
    if summary.prompts:
        line |= {"user_message_uuid": summary.prompts[0], "user_message_uuids": summary.prompts[:_MOST_PROMPTS]}
    if outcome.subtype != "success":
        line["api_error_status"] = outcome.api_status
    if summary.verification is not None:
        line["verification"] = summary.verification.as_json()
    for value in summary.structured:
        line["structured_output"] = value
    if outcome.error:
        line["errors"] = [outcome.error]
    if outcome.cause is not None:
        line |= _about_error(outcome.cause)
    return line


def _about_error(error: PanpanError) -> dict[str, Any]:
    """Return the fields of a result that tell a program what to do about an error."""
    told: dict[str, Any] = {"error_name": type(error).__name__, "may_pass": error.may_pass}
    if isinstance(error, RetryableError) and error.retry_after_s is not None:
        told["retry_after_s"] = error.retry_after_s
    if isinstance(error, AnswerNeededError):
        told["asked"] = {
            "kind": error.kind,
            "text": error.question,
            "choices": list(error.choices),
            "allowed_with": list(error.allowed_with),
        }
    return told


def _denial(use: ToolUseBlock, decided: PermissionDecided) -> dict[str, Any]:
    flags = allowed_with(decided)
    given = use.input if decided.input is None else decided.input
    denial = {"tool_name": decided.name, "tool_use_id": use.id, "tool_input": given}
    return {**denial, "allowed_with": flags} if flags else denial


def _model_usage(usage: Usage, cost_usd: float | None) -> dict[str, Any]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadInputTokens": usage.cache_read_input_tokens,
        "cacheCreationInputTokens": usage.cache_creation_input_tokens,
        "costUSD": cost_usd,
    }


def partial_lines(event: StreamEvent, session_id: str) -> list[dict[str, Any]]:
    """Return the lines of the deltas that come before a message is whole."""
    return [
        {
            "type": "stream_event",
            "event": raw,
            "parent_tool_use_id": None,
            "session_id": session_id,
            "uuid": new_id(),
        }
        for raw in _messages_api_events(event)
    ]


def _messages_api_events(event: StreamEvent) -> Sequence[Mapping[str, Any]]:
    """Return the equivalent Messages API events, built from ours so that every provider's look alike."""
    match event:
        case Waiting():
            return ()
        case ReplyStarted():
            message: dict[str, Any] = {
                "id": event.message_id,
                "type": "message",
                "role": "assistant",
                "model": event.model,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": event.usage.model_dump(),
            }
            return ({"type": "message_start", "message": message},)
        case BlockStarted():
            block = _empty_block(event)
            return () if block is None else (_start(event.index, block),)
        case TextDelta():
            return (_delta(event.index, {"type": "text_delta", "text": event.text}),)
        case ThinkingDelta():
            return (_delta(event.index, {"type": "thinking_delta", "thinking": event.text}),)
        case ToolInputDelta():
            return (_delta(event.index, {"type": "input_json_delta", "partial_json": event.json}),)
        case BlockFinished():
            return (*_end_of_block(event), {"type": "content_block_stop", "index": event.index})
        case AssistantMessage():
            delta = {"stop_reason": event.stop_reason, "stop_sequence": None}
            return (
                {"type": "message_delta", "delta": delta, "usage": event.usage.model_dump()},
                {"type": "message_stop"},
            )


def _end_of_block(event: BlockFinished) -> Sequence[Mapping[str, Any]]:
    """Return the events for what a block has only when it is whole, such as a signature."""
    match event.block:
        case ThinkingBlock(signature=signature) if signature:
            return (_delta(event.index, {"type": "signature_delta", "signature": signature}),)
        case RedactedThinkingBlock():
            return (_start(event.index, event.block.model_dump()),)
        case _:
            return ()


def _start(index: int, block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, str]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _empty_block(event: BlockStarted) -> dict[str, Any] | None:
    """Return the block before its deltas; None for a block without deltas, which is sent whole at its end."""
    match event.kind:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "redacted_thinking":
            return None
        case "tool_use":
            return {"type": "tool_use", "id": event.tool_use_id, "name": event.tool_name, "input": {}}


class JsonFace(HeadlessFace):
    """Prints the result object and nothing else."""

    def __init__(self, out: TextOut, session_id: str) -> None:
        self._out = out
        self._session_id = session_id
        self._line_at_a_time = anyio.Lock(fast_acquire=True)  # tasks may end while a turn prints

    async def show(self, event: Event) -> None:
        pass

    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        await self._print(result_line(self._session_id, summary, outcome, duration_s))

    async def _print(self, line: Mapping[str, Any]) -> None:
        async with self._line_at_a_time:
            await self._out.write(json_line(line))


class StreamJsonFace(JsonFace):
    """Prints a line for each message, each notice, and each delta where asked for; the result object ends a turn.

    Events of a subagent are printed in the same way, with the id of the call that started it. Its project context is
    left out, since it is the session's.

    Args:
        out: Standard output.
        info: The session, as the first line describes it.
        has_partial_messages: True to print deltas, too.
        replays_prompts: True to print each message of the user, too, when a turn takes it in.
        commands: Names of the slash commands that a message may be.
        features: What the features say of themselves, by keys of the first line.
    """

    def __init__(
        self,
        out: TextOut,
        info: SessionInfo,
        *,
        has_partial_messages: bool,
        replays_prompts: bool = False,
        commands: Sequence[str] = (),
        features: Mapping[str, Callable[[], object]] = _NO_FEATURES,
    ) -> None:
        super().__init__(out, info.id)
        self._info = info
        self._commands = commands
        self._features = features
        self._has_partial_messages = has_partial_messages
        self._replays_prompts = replays_prompts
        self._answers_to = ""
        """Id of the message with which the turn began; empty if its sender does not know it."""

    async def begin(self) -> None:
        await self._print(init_line(self._info, self._commands, self._features))

    async def prompt_taken(self, prompt: UserMessage, *, is_named: bool) -> None:
        self._answers_to = prompt.uuid if is_named else ""
        if self._replays_prompts:
            await self._print({**message_line(prompt, self._session_id), "isReplay": True})

    async def task_started(self, task: TaskInfo) -> None:
        await self._print(task_started_line(task, self._session_id))

    async def task_ended(self, task: TaskInfo) -> None:
        await self._print(task_ended_line(task, self._session_id))

    async def show(self, event: Event) -> None:
        if isinstance(event, SubagentEvent):
            here = event.innermost
            await self._show(here.event, origin(here))
        else:
            await self._show(event, {})

    async def _show(self, event: Event, origin: Mapping[str, str]) -> None:
        """Print an event; `origin` names its subagent, and is empty for events of the session itself."""
        if self._has_partial_messages and isinstance(event, StreamEvent):
            for line in partial_lines(event, self._session_id):
                await self._print({**line, **origin})
        match event:
            case AssistantMessage() if self._answers_to and not origin:
                await self._print({**message_line(event, self._session_id), "user_message_uuid": self._answers_to})
            case AssistantMessage() | ToolResultMessage() | UserMessage():
                await self._print({**message_line(event, self._session_id), **origin})
            case SystemReminder(cause=cause) if origin and cause == PROJECT_CONTEXT:
                pass  # skip the session's own project context, which is long
            case CommandRan():
                await self._print(command_line(event, self._session_id))
            case RetryScheduled() | Waiting() | PermissionDecided(is_allowed=False) | SystemReminder() | Compacted():
                await self._print({**notice_line(event, self._session_id), **origin})
            case _:
                pass


async def show_failed_start(out: TextOut, error: PanpanError) -> None:
    """Print the result object of a run whose session could not be opened."""
    await JsonFace(out, new_id()).end(TurnSummary(), outcome_of_error(error), 0.0)


class DataFace(HeadlessFace):
    """Prints the answer as JSON that fits the schema of the session, and nothing else."""

    def __init__(self, out: TextOut) -> None:
        self._out = out

    async def show(self, event: Event) -> None:
        pass

    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        if summary.structured:
            await self._out.write(f"{summary.answer}\n")


class TextFace(HeadlessFace):
    """Prints the text of the replies, and a plan that is the result of the run.

    Args:
        out: Standard output.
        note: Prints one line of progress; None if there is no terminal for it.
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
