"""Requests of the Messages API (https://platform.claude.com/docs/en/api/messages), as bytes.

A body is tools, system prompt, then messages, with the messages at its end. So each request starts with the whole
previous one, apart from cache marks, and the provider's prompt cache always hits. The marks, of which four are allowed,
are on the system prompt, which covers the tools, and on the last block of the two newest user messages: the newest so
that the next request hits, the one before because a look-back covers only 20 blocks and a round may have more
(https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from panpan.models.wire import (
    UserSide,
    WireGroup,
    has_text,
    joined_body,
    sampling_fields,
    to_json,
    wire_id,
    wire_tool_name,
)
from panpan.types.content import (
    Base64Source,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from panpan.types.llm import ModelOptions, ThinkingDisplay, ToolDefinition
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.pattern import compile_late

MIN_THINKING_BUDGET_TOKENS = 1024
MAX_ID_CHARS = 64

_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
_MESSAGE_END = b"}]}"  # every user message ends with its last block, its list and itself
_ANSWER_TOKENS = 4096  # reserved for the answer if the thinking budget would take all of the output
_CLAUDE_VERSION = compile_late(r"claude-(?:[a-z]+-)+(\d{1,2})(?:-(\d{1,2}))?(?!\d)")


def encode_head(options: ModelOptions, system: str, tools: Sequence[ToolDefinition], *, is_stream: bool) -> bytes:
    """Return the body up to its messages: `{…,"messages":[`."""
    fields: dict[str, Any] = {"model": options.model}
    if is_stream:
        fields |= {"max_tokens": _max_tokens(options), "stream": True}
        if options.temperature is not None and options.thinking_budget_tokens is None:
            fields["temperature"] = options.temperature  # with thinking, only the default is allowed
        fields |= sampling_fields(options)
    if options.thinking_budget_tokens is not None:
        fields["thinking"] = _thinking(options.model, options.thinking_budget_tokens, options.thinking_display)
    if output := _output_config(options):
        fields["output_config"] = output
    if tools:
        fields["tools"] = [_tool(tool) for tool in tools]
    mark = {"cache_control": {"type": "ephemeral"}}
    if has_text(system):
        fields["system"] = [{"type": "text", "text": system, **mark}]
    elif tools:
        fields["tools"][-1] |= mark
    if is_stream:
        fields |= options.extra_body
    return to_json(fields)[:-1] + b',"messages":['


def join_body(head: bytes, groups: Sequence[WireGroup]) -> bytes:
    """Return the whole body, with the two newest user messages marked; there must be a group."""
    pieces = [group.data for group in groups]
    marks = 0
    for position in range(len(groups) - 1, -1, -1):
        if not groups[position].is_reply:
            pieces[position] = pieces[position][: -len(_MESSAGE_END)] + _CACHE_MARK + _MESSAGE_END
            marks += 1
            if marks == 2:
                break
    return joined_body(head, pieces)


def encode_user_side(messages: Sequence[UserSide]) -> bytes | None:
    """Return results, words and reminders as one user message; results first, as the API requires."""
    results = [_tool_result(message.result) for message in messages if isinstance(message, ToolResultMessage)]
    others = [block for message in messages for block in _user_blocks(message)]
    blocks = results + others
    return to_json({"role": "user", "content": blocks}) if blocks else None


def encode_reply(message: AssistantMessage, *, model: str) -> bytes | None:
    """Return a reply, with its thinking if it is by `model`; None if there is nothing to send."""
    blocks: list[dict[str, Any]] = []
    has_answer = False
    for block in message.content:
        match block:
            case TextBlock(text=text) if has_text(text):
                blocks.append({"type": "text", "text": text})
                has_answer = True
            case ToolUseBlock():
                blocks.append(_tool_use(block))
                has_answer = True
            case ThinkingBlock(signature=signature) if signature and message.model == model:
                blocks.append({"type": "thinking", "thinking": block.thinking, "signature": signature})
            case RedactedThinkingBlock() if message.model == model:
                blocks.append({"type": "redacted_thinking", "data": block.data})
            case _:
                pass
    if has_answer and blocks[-1]["type"] == "text":
        # the API refuses trailing blanks if the reply is the last message, which the model continues
        blocks[-1]["text"] = blocks[-1]["text"].rstrip()
    return to_json({"role": "assistant", "content": blocks}) if has_answer else None


def takes_thinking_budget(model: str) -> bool:
    """Return True if thinking is requested with a number of tokens rather than left to the model.

    Claude 4.5 and older know only the budget, 4.7 and newer refuse it, 4.6 takes both and prefers its own judgement
    (https://platform.claude.com/docs/en/build-with-claude/extended-thinking). Models of other vendors copied the
    older form.
    """
    if not model.startswith("claude-"):
        return "claude-" not in model or takes_thinking_budget(model[model.index("claude-") :])
    old_style = re.match(r"claude-(\d)(?:-(\d{1,2}))?-[a-z]", model)  # such as claude-3-7-sonnet
    if old_style:
        return True
    found = _CLAUDE_VERSION.match(model)
    if found is None:
        return False
    return (int(found[1]), int(found[2] or 0)) < (4, 6)


def _output_config(options: ModelOptions) -> dict[str, Any]:
    config: dict[str, Any] = {} if options.effort is None else {"effort": options.effort}
    if options.task_budget_tokens is not None:
        config["task_budget"] = {"type": "tokens", "total": options.task_budget_tokens}
    return config


def _thinking(model: str, budget_tokens: int, display: ThinkingDisplay | None) -> dict[str, Any]:
    if takes_thinking_budget(model):
        wanted = {} if display is None else {"display": display}
        return {"type": "enabled", "budget_tokens": max(budget_tokens, MIN_THINKING_BUDGET_TOKENS), **wanted}
    return {"type": "adaptive", "display": display or "summarized"}  # newer models show nothing unless asked


def _max_tokens(options: ModelOptions) -> int:
    """Return the limit on the output; thinking counts against it, and a budget must be smaller than it."""
    budget_tokens = options.thinking_budget_tokens
    if budget_tokens is None or not takes_thinking_budget(options.model):
        return options.max_output_tokens
    budget_tokens = max(budget_tokens, MIN_THINKING_BUDGET_TOKENS)
    if options.max_output_tokens > budget_tokens:
        return options.max_output_tokens
    return budget_tokens + _ANSWER_TOKENS


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool_schema(tool.input_schema)}


def tool_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema for the API, which takes any JSON Schema of 2020-12 except a choice at its top."""
    top = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf", "$schema")}
    return {"type": "object", "properties": {}, **top}


def _user_blocks(message: UserSide) -> list[dict[str, Any]]:
    match message:
        case UserMessage():
            return [part for block in message.content for part in _content(block)]
        case SystemReminder():
            return [{"type": "text", "text": message.tagged_text}]
        case ToolResultMessage():
            return []


def _tool_use(use: ToolUseBlock) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": wire_id(use.id, max_chars=MAX_ID_CHARS),
        "name": wire_tool_name(use.name),
        "input": {} if use.input_error else use.input,
    }


def _tool_result(result: ToolResultBlock) -> dict[str, Any]:
    content = [part for block in result.content for part in _content(block)]
    wire: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id(result.tool_use_id, max_chars=MAX_ID_CHARS)}
    if content:
        wire["content"] = content
    if result.is_error:
        wire["is_error"] = True
    return wire


def _content(block: TextBlock | ImageBlock | DocumentBlock) -> list[dict[str, Any]]:
    match block:
        case TextBlock(text=text):
            return [{"type": "text", "text": text}] if has_text(text) else []
        case ImageBlock(source=source):
            return [{"type": "image", "source": _source(source)}]
        case DocumentBlock(source=source, title=title):
            document: dict[str, Any] = {"type": "document", "source": _document_source(source)}
            return [document | ({"title": title} if title else {})]


def _source(source: Base64Source) -> dict[str, Any]:
    return {"type": "base64", "media_type": source.media_type, "data": source.data}


def _document_source(source: Base64Source) -> dict[str, Any]:
    """Return a PDF as it is; the API takes any other document as plain text only."""
    if source.media_type == "application/pdf":
        return _source(source)
    from base64 import b64decode

    return {"type": "text", "media_type": "text/plain", "data": b64decode(source.data).decode("utf-8", "replace")}
