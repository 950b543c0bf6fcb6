"""Validation of the chat completions API, with its errors; breaking a rule is an HTTP 400."""

import re
from typing import Any

from tests.model_server.wire import require

_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_ROLES = {"system", "developer", "user", "assistant", "tool"}
_NEEDS_COMPLETION_TOKENS = re.compile(r"^(o\d|gpt-[5-9])")
"""Models that refuse `max_tokens` and any temperature but 1."""


def check(headers: dict[str, str], body: Any, api_key: str | None) -> None:
    """Refuse requests that the real API would refuse; a key is only required if `api_key` is set."""
    key = headers.get("authorization", "").removeprefix("Bearer ")
    if api_key is not None:
        require(key, "You didn't provide an API key.", status=401)
        require(key == api_key, "Incorrect API key provided.", status=401, code="invalid_api_key")
    require(isinstance(body, dict), "We could not parse the JSON body of your request.")
    require(isinstance(body.get("model"), str) and body["model"], "you must provide a model parameter")
    messages = body.get("messages")
    require(isinstance(messages, list), "Missing required parameter: 'messages'.")
    require(messages, "Invalid 'messages': empty array. Expected an array with minimum length 1.")
    require(body.get("stream") is True, "model server: only streaming requests are played")
    _check_parameters(body)
    _check_tools(body)
    for number, message in enumerate(messages):
        _check_message(message, number)
    _check_pairs(messages)


def _check_parameters(body: dict[str, Any]) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        value = body.get(name)
        require(
            value is None or (isinstance(value, int) and value >= 1), f"Invalid '{name}': integer below minimum value."
        )
    if _NEEDS_COMPLETION_TOKENS.match(body["model"]):
        require(
            body.get("max_tokens") is None,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
        )
        require(
            body.get("temperature", 1) == 1,
            "Unsupported value: 'temperature' does not support this value with this model. "
            "Only the default (1) value is supported.",
            code="unsupported_value",
        )


def _check_tools(body: dict[str, Any]) -> None:
    if "tools" not in body:
        require(
            "tool_choice" not in body,
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        )
        return
    require(
        body["tools"],
        "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    )
    for number, tool in enumerate(body["tools"]):
        require(tool.get("type") == "function", f"Missing required parameter: 'tools[{number}].type'.")
        name = (tool.get("function") or {}).get("name", "")
        require(_TOOL_NAME.match(name), f"Invalid 'tools[{number}].function.name': string does not match pattern.")
        parameters = tool["function"].get("parameters", {"type": "object"})
        require(
            isinstance(parameters, dict) and parameters.get("type") == "object",
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'.",
        )


def _check_message(message: dict[str, Any], number: int) -> None:
    role, content = message.get("role", ""), message.get("content")
    require(
        role in _ROLES, f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', and 'tool'."
    )
    may_be_null = role == "assistant" and message.get("tool_calls")
    require(
        isinstance(content, str | list) or (content is None and may_be_null),
        f"Invalid value for 'content': expected a string, got {'null' if content is None else 'object'}. "
        f"(messages.[{number}].content)",
    )
    require(content != [], f"Invalid 'messages[{number}].content': empty array.")
    for part in content if isinstance(content, list) else ():
        allowed = {"user": {"text", "image_url", "file", "input_audio"}, "assistant": {"text", "refusal"}}
        require(part.get("type") in allowed.get(role, {"text"}), f"Invalid value: '{part.get('type')}'.")
    require(
        "tool_calls" not in message or message["tool_calls"], f"Invalid 'messages[{number}].tool_calls': empty array."
    )
    for position, tool_call in enumerate(message.get("tool_calls", ())):
        _check_tool_call(tool_call, f"messages[{number}].tool_calls[{position}]")


def _check_tool_call(tool_call: dict[str, Any], where: str) -> None:
    require(tool_call.get("id"), f"Missing required parameter: '{where}.id'.")
    require(tool_call.get("type") == "function", f"Missing required parameter: '{where}.type'.")
    function = tool_call.get("function") or {}
    require(
        _TOOL_NAME.match(function.get("name", "")), f"Invalid '{where}.function.name': string does not match pattern."
    )
    require(
        isinstance(function.get("arguments"), str),
        f"Invalid type for '{where}.function.arguments': expected a string, but got an object instead.",
    )


def _check_pairs(messages: list[dict[str, Any]]) -> None:
    open_ids: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            tool_call_id = message.get("tool_call_id", "")
            require(
                tool_call_id in open_ids,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                "with 'tool_calls'.",
            )
            open_ids.remove(tool_call_id)
            continue
        _check_answered(open_ids)
        open_ids = [tool_call["id"] for tool_call in message.get("tool_calls", ())]
        for tool_call_id in open_ids:
            is_new = open_ids.count(tool_call_id) == 1 and tool_call_id not in seen
            require(is_new, f"Duplicate value for 'tool_call_id' of '{tool_call_id}' in message[{number}].")
        seen.update(open_ids)
    _check_answered(open_ids)


def _check_answered(open_ids: list[str]) -> None:
    require(
        not open_ids,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(open_ids)}",
    )
