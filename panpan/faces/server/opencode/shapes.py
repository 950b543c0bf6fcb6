"""Sessions, messages and parts as the SDK has them.

The rule: a message is told from the conversation alone, so that a client that lists messages gets the parts that
events told before.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from panpan.faces.server.opencode.ids import part_id, time_of, wire_id
from panpan.faces.turn_text import title_of
from panpan.hub.events import Status
from panpan.hub.hub import Hub
from panpan.hub.operations.prompts import SUBTASK
from panpan.session.models import SessionModels
from panpan.types.agent import AgentKinds
from panpan.types.content import ChecklistItem, DiffDisplay, TextBlock, ThinkingBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import FileChange
from panpan.types.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from panpan.types.pattern import compile_late
from panpan.version import __version__

Json: TypeAlias = dict[str, Any]

PRIMARY: Mapping[str, str] = {"build": "default", "plan": "plan"}
"""Agents of OpenCode that a prompt may name, and the mode of ours that is meant."""

_FINISH: Mapping[StopReason, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content-filter",
}
_MENTION = compile_late(r"(?<![\w@])@([\w:.-]*\w)")
_SUBTASK = compile_late(re.escape(SUBTASK).replace(r"\{agent\}", r"(\S+)").replace(r"\{prompt\}", "(.*)"), re.DOTALL)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a session that its messages repeat."""

    session: str
    """Its id, as the SDK knows it."""
    cwd: Path
    provider: str
    model: str
    agent: str
    agents: frozenset[str]
    """Names of the subagents."""

    @classmethod
    def of(cls, hub: Hub) -> "Facts":
        session = hub.session
        models, kinds = session.find(SessionModels), session.find(AgentKinds)
        provider = "" if models is None else models.setup.model.provider
        agent = "plan" if session.permission_mode == "plan" else "build"
        names = frozenset(() if kinds is None else kinds.names)
        return cls(wire_id("ses", session.info.id), session.info.cwd, provider, session.model, agent, names)

    def part(self, message: str, number: int, kind: str, **fields: Any) -> Json:
        """Return a part of a message.

        Args:
            message: Our id of the message.
            number: Number of the part in the message.
            kind: Its type.
            fields: Its other fields.
        """
        return {
            "id": part_id(message, number),
            "sessionID": self.session,
            "messageID": wire_id("msg", message),
            "type": kind,
            **fields,
        }


def session_json(own: str, folder: str, title: str, updated_ms: int) -> Json:
    """Return a session."""
    created = time_of(own)
    return {
        "id": wire_id("ses", own),
        "slug": own,
        "projectID": project_id(folder),
        "directory": folder,
        "title": title or "New session",
        "version": __version__,
        "time": {"created": created, "updated": max(updated_ms, created)},
    }


def session_of(hub: Hub) -> Json:
    """Return an open session."""
    info, messages = hub.session.info, hub.session.conversation.messages
    updated = time_of(messages[-1].uuid) if messages else 0
    return session_json(info.id, str(info.cwd), hub.session.title or "", updated)


def project_id(folder: str) -> str:
    """Return the id of the project in a folder."""
    return blake2b(folder.encode(errors="surrogateescape"), digest_size=20).hexdigest()


def status_json(status: Status) -> Json:
    """Return the state of a session; one that asks is busy."""
    if status.activity == "retrying":
        next_ms = round(status.retry_at * 1000)
        return {"type": "retry", "attempt": status.attempt, "message": status.reason, "next": next_ms}
    return {"type": "idle" if status.activity == "idle" else "busy"}


def todos_json(items: Sequence[ChecklistItem]) -> list[Json]:
    """Return a todo list; ours have no priorities, so all are of the middle one."""
    return [
        {"id": one.id or str(number), "content": one.content, "status": one.status, "priority": "medium"}
        for number, one in enumerate(items, 1)
    ]


def diff_json(files: Sequence[FileChange]) -> list[Json]:
    """Return changed files with their lines."""
    return [
        {"file": one.path, "additions": one.added or 0, "deletions": one.deleted or 0, "status": one.kind}
        for one in files
        if not one.is_folder
    ]


def told_messages(messages: Sequence[Message], facts: Facts) -> Iterator[Json]:
    """Yield the messages of a conversation, each as `info` and `parts`; a result is in the part of its call."""
    results = {one.tool_use_id: one for one in messages if isinstance(one, ToolResultMessage)}
    parent = ""
    for message in messages:
        match message:
            case UserMessage():
                parent = message.uuid
                yield user_message(message, facts)
            case AssistantMessage():
                yield reply(message, facts, parent, results)
            case _:
                pass


def user_message(message: UserMessage, facts: Facts) -> Json:
    """Return a message of the user with its parts."""
    info = {
        "id": wire_id("msg", message.uuid),
        "sessionID": facts.session,
        "role": "user",
        "time": {"created": time_of(message.uuid)},
        "agent": facts.agent,
        "model": {"providerID": facts.provider, "modelID": facts.model},
    }
    return {"info": info, "parts": list(_user_parts(message, facts))}


def _user_parts(message: UserMessage, facts: Facts) -> Iterator[Json]:
    is_typed = True
    for number, block in enumerate(message.content):
        if not isinstance(block, TextBlock):
            source = block.source
            url = f"data:{source.media_type};base64,{source.data}"
            yield facts.part(message.uuid, number, "file", mime=source.media_type, url=url)
        elif is_typed and (found := _SUBTASK.fullmatch(block.text)):
            told = {"agent": found[1], "prompt": found[2], "description": found[2].partition("\n")[0][:200]}
            yield facts.part(message.uuid, number, "subtask", **told)
            is_typed = False
        else:  # later texts are data that goes along, such as files
            yield facts.part(message.uuid, number, "text", text=block.text, **({} if is_typed else {"synthetic": True}))
            is_typed = False
    mentions = [one for one in _MENTION.finditer(message.typed) if one[1] in facts.agents]
    for number, found in enumerate(mentions[:1_000], len(message.content)):
        place = {"value": found[0], "start": found.start(), "end": found.end()}
        yield facts.part(message.uuid, number, "agent", name=found[1], source=place)


def reply(message: AssistantMessage, facts: Facts, parent: str, results: Mapping[str, ToolResultMessage]) -> Json:
    """Return a reply with its parts.

    Args:
        message: The reply.
        facts: Facts about the session.
        parent: Our id of the user's message before it; empty if there is none.
        results: Results of its calls, by the id of the call.
    """
    ended = ended_at(message)
    info = open_reply(message.uuid, facts, parent) | {
        "modelID": message.model,
        "cost": message.cost_usd or 0,
        "tokens": _tokens(message),
        "finish": _FINISH.get(message.stop_reason, "unknown"),
    }
    info["time"]["completed"] = ended
    if message.stop_reason == "interrupted":
        info["error"] = aborted_json()
    parts = [facts.part(message.uuid, 0, "step-start")]
    for number, block in enumerate(message.content):
        parts += [block_part(message.uuid, number, block, facts, ended)] if is_shown(block) else []
        if isinstance(block, ToolUseBlock) and (result := results.get(block.id)) is not None:
            parts[-1] = parts[-1] | {"state": ended_call(block, result, ended, title_of(block))}
    parts.append(step_finish(message, facts))
    patch = patch_part(message, facts, results)
    return {"info": info, "parts": [*parts, *([patch] if patch else [])]}


def open_reply(own: str, facts: Facts, parent: str) -> Json:
    """Return the head of a reply that is arriving."""
    zero = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    return {
        "id": wire_id("msg", own),
        "sessionID": facts.session,
        "role": "assistant",
        "time": {"created": time_of(own)},
        "parentID": wire_id("msg", parent) if parent else "",
        "modelID": facts.model,
        "providerID": facts.provider,
        "mode": facts.agent,
        "agent": facts.agent,
        "path": {"cwd": str(facts.cwd), "root": str(facts.cwd)},
        "cost": 0,
        "tokens": zero,
    }


def ended_at(message: AssistantMessage) -> int:
    """Return the time at which a reply was whole."""
    return time_of(message.uuid) + round(message.duration_s * 1000)


def is_shown(block: object) -> bool:
    """Return True if a block of a reply is a part for clients."""
    return isinstance(block, TextBlock | ThinkingBlock | ToolUseBlock)


def block_part(message: str, number: int, block: object, facts: Facts, at_ms: int) -> Json:
    """Return the part of a block that is whole; a call without a result runs, or is about to."""
    match block:
        case TextBlock(text=text):
            return facts.part(message, number + 1, "text", text=text, time={"start": time_of(message), "end": at_ms})
        case ThinkingBlock(thinking=text):
            times = {"start": time_of(message), "end": at_ms}
            return facts.part(message, number + 1, "reasoning", text=text, time=times)
        case ToolUseBlock():
            state = {"status": "pending", "input": block.input, "raw": ""}
            return facts.part(message, number + 1, "tool", callID=block.id, tool=block.name, state=state)
        case _:
            raise TypeError(f"{type(block).__name__} is no part")


def ended_call(use: ToolUseBlock, result: ToolResultMessage, began_ms: int, title: str) -> Json:
    """Return the state of a call that has its result."""
    times = {"start": began_ms, "end": max(time_of(result.uuid), began_ms)}
    if result.is_error:
        return {"status": "error", "input": use.input, "error": result.text_for_people, "time": times}
    display = result.display
    diffs = [file.diff for file in display.files] if isinstance(display, DiffDisplay) else []
    return {
        "status": "completed",
        "input": use.input,
        "output": result.text_for_people,
        "title": title,
        "metadata": {"diff": "\n".join(diffs)} if diffs else {},
        "time": times,
    }


def step_finish(message: AssistantMessage, facts: Facts) -> Json:
    """Return the part that ends a reply, with its tokens and its cost."""
    return facts.part(
        message.uuid,
        len(message.content) + 1,
        "step-finish",
        reason=_FINISH.get(message.stop_reason, "unknown"),
        cost=message.cost_usd or 0,
        tokens=_tokens(message),
    )


def patch_part(message: AssistantMessage, facts: Facts, results: Mapping[str, ToolResultMessage]) -> Json | None:
    """Return the part with the files that the calls of a reply changed; None if they changed none."""
    displays = [results[use.id].display for use in message.tool_uses if use.id in results]
    files = [file for one in displays if isinstance(one, DiffDisplay) for file in one.files]
    if not files:
        return None
    digest = blake2b("\n".join(file.diff for file in files).encode(errors="surrogateescape"), digest_size=20)
    paths = list(dict.fromkeys(str(facts.cwd / file.path) for file in files))
    return facts.part(message.uuid, len(message.content) + 2, "patch", hash=digest.hexdigest(), files=paths)


def _tokens(message: AssistantMessage) -> Json:
    usage = message.usage
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "reasoning": 0,
        "cache": {"read": usage.cache_read_input_tokens, "write": usage.cache_creation_input_tokens},
    }


def aborted_json() -> Json:
    """Return the error of a turn that was stopped."""
    return {"name": "MessageAbortedError", "data": {"message": "the turn was stopped"}}


def error_json(text: str) -> Json:
    """Return an error that ended a turn."""
    return {"name": "UnknownError", "data": {"message": text}}
