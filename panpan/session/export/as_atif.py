"""Writes a session as a trajectory: the Agent Trajectory Interchange Format, which evaluation harnesses read.

The names are those of ATIF 1.7 (Harbor's RFC 0001, `harbor.models.trajectories`). A step is what one side said; what
the calls of a reply brought stands with the reply. Its steps hold all that the session's log holds, also what requests
leave out after a compaction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from panpan.errors import ConfigError
from panpan.session.budget.spending import SessionCosts, made_at, session_costs
from panpan.session.export.export import harmless_json
from panpan.session.export.transcript import Transcript, attachment, compaction_told
from panpan.types.content import DocumentBlock, ImageBlock, ResultContent, TextBlock, ThinkingBlock
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    Message,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from panpan.types.pattern import compile_late

SCHEMA_VERSION = "ATIF-v1.7"
"""Oldest version that has all the names here: embedded trajectories of subagents came with it."""

_SURROGATES = compile_late("[\ud800-\udfff]")
"""Halves of characters. As an escape they are no text for strict readers of JSON, such as Harbor's."""

Step = dict[str, Any]


def atif_text(transcript: Transcript) -> str:
    """Return the whole file.

    Raises:
        ConfigError: The session is empty, which the format has no form for.
    """
    return harmless_json(_whole_characters(trajectory(transcript)))


def trajectory(transcript: Transcript) -> Mapping[str, Any]:
    """Return the trajectory of a session, with those of its subagents.

    Raises:
        ConfigError: The session is empty.
    """
    found = _trajectory(transcript, transcript.session_id)
    if not found["steps"]:
        raise ConfigError("the session has no messages, and a trajectory needs one; send a prompt first")
    return found


def _whole_characters(value: Any) -> Any:
    match value:
        case str():
            return _SURROGATES.sub("\ufffd", value)
        case dict():
            return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole_characters(item) for item in value]
        case _:
            return value


def _trajectory(transcript: Transcript, trajectory_id: str) -> dict[str, Any]:
    agents = {call: subagent.agent_id for subagent in transcript.subagents for call in subagent.begun_by}
    steps = list(_steps(transcript.parts, agents))
    subagents = [one for one in (_trajectory(sub, sub.agent_id) for sub in transcript.subagents) if one["steps"]]
    known = {one["trajectory_id"] for one in subagents}
    _drop_unresolved(steps, known)
    about = {"title": transcript.title, "cwd": transcript.cwd, "git_branch": transcript.git_branch}
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": transcript.session_id,
        "trajectory_id": trajectory_id,
        "agent": {"name": "panpan", "version": transcript.panpan_version, **_given(model_name=transcript.model)},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": _final_metrics(transcript, len(steps)),
        **_given(extra=_given(**about), subagent_trajectories=subagents),
    }


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _steps(parts: Iterable[Message | Compaction], agents: Mapping[str, str]) -> Iterator[Step]:
    """Yield the steps, each reply with the results of its calls."""
    reply: Step | None = None
    calls: set[str] = set()
    for part in parts:
        if isinstance(part, ToolResultMessage) and reply is not None and part.tool_use_id in calls:
            reply.setdefault("observation", {"results": []})["results"].append(_result(part, agents))
            continue
        if reply is not None:
            yield reply
            reply, calls = None, set()
        match part:
            case AssistantMessage():
                reply, calls = _reply(part), {use.id for use in part.tool_uses}
            case UserMessage():
                yield _step(part, "user", _text(part.content))
            case SystemReminder():
                yield {**_step(part, "system", part.text), **_given(extra=_given(cause=part.cause))}
            case ToolResultMessage():  # of a call that the log does not hold
                result = {key: value for key, value in _result(part, {}).items() if key != "source_call_id"}
                yield {**_step(part, "system", ""), "observation": {"results": [result]}}
            case Compaction():
                yield _compaction(part)
    if reply is not None:
        yield reply


def _step(part: Message | Compaction, source: str, message: str) -> Step:
    return {**_given(timestamp=_timestamp(part.uuid)), "source": source, "message": message}


def _timestamp(uuid: str) -> str | None:
    try:
        at = made_at(uuid)
        made = None if at is None else datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return None
    return None if made is None else made.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _reply(message: AssistantMessage) -> Step:
    thinking = "\n".join(block.thinking for block in message.content if isinstance(block, ThinkingBlock))
    calls = [
        {
            "tool_call_id": use.id,
            "function_name": use.name,
            "arguments": use.input,
            **_given(extra=_given(input_error=use.input_error)),
        }
        for use in message.tool_uses
    ]
    return {
        **_step(message, "agent", message.text),
        **_given(
            model_name=message.model,
            reasoning_content=thinking,
            tool_calls=calls,
            metrics=_metrics(message.usage, message.cost_usd),
        ),
        "llm_call_count": 1,
        "extra": {"stop_reason": message.stop_reason, "duration_s": message.duration_s},
    }


def _metrics(usage: Usage, cost_usd: float | None) -> Mapping[str, Any]:
    """Return the tokens and the cost of a reply; empty if the provider counted nothing."""
    if not usage.context_tokens and cost_usd is None:
        return {}
    metrics: dict[str, Any] = {
        "prompt_tokens": usage.uncached_tokens + usage.cache_read_input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_input_tokens,
    }
    if cost_usd is not None:
        metrics["cost_usd"] = cost_usd
    if usage.cache_creation_input_tokens:
        metrics["extra"] = {"cache_creation_input_tokens": usage.cache_creation_input_tokens}
    return metrics


def _result(message: ToolResultMessage, agents: Mapping[str, str]) -> dict[str, Any]:
    agent = agents.get(message.tool_use_id)
    return {
        "source_call_id": message.tool_use_id,
        "content": _text(message.result.content),
        **_given(
            subagent_trajectory_ref=[{"trajectory_id": agent}] if agent else [],
            extra={"is_error": True} if message.is_error else {},
        ),
    }


def _text(content: Sequence[ResultContent]) -> str:
    """Return the text of blocks; a picture needs a file of its own in this format, so only a word about it remains."""
    return "\n".join(_block_text(block) for block in content)


def _block_text(block: TextBlock | ImageBlock | DocumentBlock) -> str:
    return block.text if isinstance(block, TextBlock) else attachment(block)


def _compaction(compaction: Compaction) -> Step:
    reply = compaction.reply
    extra = {
        "compaction": compaction.trigger,
        "tokens_before": compaction.tokens_before,
        "tokens_after": compaction.tokens_after,
        **_given(summary_metrics=_metrics(reply.usage, reply.cost_usd) if reply is not None else {}),
    }
    return {**_step(compaction, "system", "\n".join(filter(None, compaction_told(compaction)))), "extra": extra}


def _drop_unresolved(steps: Sequence[Step], known: set[str]) -> None:
    """Remove references to subagents of which nothing is left, since each must lead somewhere."""
    for step in steps:
        for result in step.get("observation", {"results": []})["results"]:
            references = result.get("subagent_trajectory_ref", ())
            if any(reference["trajectory_id"] not in known for reference in references):
                del result["subagent_trajectory_ref"]


def _final_metrics(transcript: Transcript, steps: int) -> Mapping[str, Any]:
    """Return the sums: tokens of the agent itself, and the cost with that of its subagents."""
    own = _costs(transcript)
    every = [own, *map(_costs, transcript.subagents)]
    cost = None if any(one.cost_usd is None for one in every) else sum(one.known_cost_usd for one in every)
    usage = own.usage
    return {
        "total_prompt_tokens": usage.uncached_tokens + usage.cache_read_input_tokens,
        "total_completion_tokens": usage.output_tokens,
        "total_cached_tokens": usage.cache_read_input_tokens,
        **({} if cost is None else {"total_cost_usd": cost}),
        "total_steps": steps,
    }


def _costs(transcript: Transcript) -> SessionCosts:
    summaries = [compaction.reply for compaction in transcript.compactions if compaction.reply is not None]
    return session_costs(transcript.messages, summaries)
