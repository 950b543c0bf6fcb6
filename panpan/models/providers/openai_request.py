"""Requests of the chat completions API (https://platform.openai.com/docs/api-reference/chat/create), as bytes.

As with the Messages API, the messages are at the end of the body, so each request starts with the whole previous one;
servers find the longest prefix that they know by themselves. Results are messages of the role "tool" right after the
reply. They hold only text, so pictures follow in a user message.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from panpan.models.providers.vendor_profiles import VendorProfile
from panpan.models.wire import UserSide, has_text, sampling_fields, to_json, wire_id, wire_tool_name
from panpan.types.content import DocumentBlock, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from panpan.types.llm import Effort, ModelOptions, ToolDefinition
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage

_NO_THINKING = " "  # DeepSeek refuses an empty field, too


class OpenAIEncoder:
    """Encoder of requests in a vendor's format.

    Args:
        profile: The vendor.
    """

    def __init__(self, profile: VendorProfile) -> None:
        self._profile = profile

    def encode_head(
        self, options: ModelOptions, system: str, tools: Sequence[ToolDefinition], *, is_stream: bool
    ) -> bytes:
        """Return the body up to the history: `{…,"messages":[{the system prompt},`."""
        profile = self._profile
        fields: dict[str, Any] = {"model": options.model, "stream": is_stream}
        if is_stream and profile.asks_for_usage:
            fields["stream_options"] = {"include_usage": True}
        fields[profile.max_tokens_field] = options.max_output_tokens
        if options.temperature is not None:
            fields["temperature"] = options.temperature
        fields |= sampling_fields(options)
        if options.effort is not None:
            fields["reasoning_effort"] = nearest_effort(options.effort, profile.efforts)
        if options.thinking_budget_tokens is not None:
            fields |= _with_budget(profile.thinking, options.thinking_budget_tokens)
        if tools:
            if profile.asks_for_parallel_calls:
                fields["parallel_tool_calls"] = True
            if is_stream and profile.streams_calls:
                fields["tool_stream"] = True
            fields["tools"] = [self._tool(tool) for tool in tools]
        if is_stream:
            fields |= options.extra_body
        head = to_json(fields)[:-1] + b',"messages":['
        return head + to_json({"role": "system", "content": system}) + b"," if has_text(system) else head

    def encode_user_side(self, messages: Sequence[UserSide]) -> bytes | None:
        """Return the results, then one user message with the words, the reminders, and the pictures of the results."""
        wire: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = []
        for message in messages:
            match message:
                case ToolResultMessage(result=result):
                    wire.append(self._tool_message(result))
                    parts += self._pictures_of(result)
                case UserMessage(content=content):
                    parts += [part for block in content for part in self._part(block)]
                case SystemReminder():
                    parts.append(_text_part(message.tagged_text))
        if parts:
            wire.append({"role": "user", "content": _plain_where_possible(parts)})
        return b",".join(map(to_json, wire)) if wire else None

    def encode_reply(self, message: AssistantMessage, *, model: str) -> bytes | None:
        """Return a reply, with its thinking if it is by `model`; None if there is nothing to send."""
        text = message.text
        calls = [self._tool_call(use) for use in message.tool_uses]
        if not calls and not has_text(text):
            return None
        wire: dict[str, Any] = {"role": "assistant", "content": text if has_text(text) else ""}
        field = self._profile.reasoning_field
        if field is not None:
            thoughts = [block.thinking for block in message.content if isinstance(block, ThinkingBlock)]
            thinking = "".join(thoughts) if message.model == model else ""
            if thinking or self._profile.needs_reasoning:
                wire[field] = thinking or _NO_THINKING
        if calls:
            wire["tool_calls"] = calls
        return to_json(wire)

    def names_of(self, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
        """Return the names of those tools that have another name on the wire, by that name."""
        return {name: tool.name for tool in tools if (name := self._name(tool.name)) != tool.name}

    def _tool(self, tool: ToolDefinition) -> dict[str, Any]:
        schema = adapted_schema(tool.input_schema, self._profile)
        function = {"name": self._name(tool.name), "description": tool.description, "parameters": schema}
        return {"type": "function", "function": function}

    def _tool_call(self, use: ToolUseBlock) -> dict[str, Any]:
        function = {
            "name": self._name(use.name),
            "arguments": to_json({} if use.input_error else use.input).decode(),
        }
        return {"id": self._id(use.id), "type": "function", "function": function}

    def _tool_message(self, result: ToolResultBlock) -> dict[str, Any]:
        text = result.text
        if not has_text(text):
            text = "(the output follows in the next message)" if result.content else "(no output)"
        if result.is_error:
            text = f"Error: {text}"  # there is no field for it
        return {"role": "tool", "tool_call_id": self._id(result.tool_use_id), "content": text}

    def _pictures_of(self, result: ToolResultBlock) -> list[dict[str, Any]]:
        pictures = [block for block in result.content if not isinstance(block, TextBlock)]
        if not pictures:
            return []
        label = _text_part(f"Output of the call {self._id(result.tool_use_id)}:")
        return [label, *(part for block in pictures for part in self._part(block))]

    def _part(self, block: TextBlock | ImageBlock | DocumentBlock) -> list[dict[str, Any]]:
        match block:
            case TextBlock(text=text):
                return [_text_part(text)] if has_text(text) else []
            case ImageBlock(source=source) if not self._takes(source.media_type):
                return [
                    _text_part(f"[image left out: this provider takes no {source.media_type}; a PNG would be seen]")
                ]
            case ImageBlock(source=source) if self._profile.takes_images:
                url = f"data:{source.media_type};base64,{source.data}"
                return [{"type": "image_url", "image_url": {"url": url}}]
            case DocumentBlock(source=source, title=title) if self._profile.takes_documents:
                data = f"data:{source.media_type};base64,{source.data}"
                return [{"type": "file", "file": {"filename": title or "document", "file_data": data}}]
            case _:
                kind = "image" if isinstance(block, ImageBlock) else "document"
                return [_text_part(f"[{kind} left out: this provider takes none]")]

    def _takes(self, media_type: str) -> bool:
        """Return True if pictures of this type can be sent; a provider that takes no pictures has its own note."""
        types = self._profile.image_types
        return types is None or media_type in types or not self._profile.takes_images

    def _name(self, tool_name: str) -> str:
        return wire_tool_name(tool_name).ljust(self._profile.min_name_chars, "_")

    def _id(self, tool_use_id: str) -> str:
        max_chars = self._profile.max_id_chars
        return tool_use_id if max_chars is None else wire_id(tool_use_id, max_chars=max_chars)


def adapted_schema(schema: Any, profile: VendorProfile) -> Any:
    """Return a JSON schema without the keywords that a server does not take; names of properties are no keywords."""
    if isinstance(schema, list):
        return [adapted_schema(item, profile) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_simple = "anyOf" not in schema and schema.get("type") not in ("array", "object")
    adapted: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "default" and not (is_simple or profile.takes_every_default):
            continue
        if key in ("properties", "$defs") and isinstance(value, Mapping):
            adapted[key] = {name: adapted_schema(item, profile) for name, item in value.items()}
        elif key in ("enum", "const", "default", "required"):
            adapted[key] = value  # values, not schemas
        elif key not in profile.unsupported_keywords:
            adapted[key] = adapted_schema(value, profile)
    if profile.needs_required and schema.get("type") == "object":
        adapted.setdefault("required", [])
    return adapted


def nearest_effort(wanted: Effort, known: Sequence[Effort]) -> Effort:
    """Return the server's effort that is nearest to the one wanted, the higher of two."""
    if not known or wanted in known:
        return wanted
    order = get_args(Effort)
    return min(known, key=lambda effort: (abs(order.index(effort) - order.index(wanted)), -order.index(effort)))


def _with_budget(thinking: Mapping[str, Any], budget_tokens: int) -> dict[str, Any]:
    return {key: budget_tokens if value == "$budget" else value for key, value in thinking.items()}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _plain_where_possible(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return text alone as a string, which is the one form that every server takes."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts
