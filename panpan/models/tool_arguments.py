"""Reads the arguments of a tool call, which the model wrote as JSON text and which may be anything.

The rule: only a whole JSON object passes. Everything else is an `ArgumentsError` whose text tells the model what to do.
"""

import json
import math
from typing import Any

from pydantic_core import from_json

MAX_ARGUMENT_CHARS = 8 * 1024 * 1024
"""Longest arguments of one call."""

_HALF_A_PAIR = (
    "The arguments of this call hold half of a surrogate pair, such as \\ud83d alone, which is no character, so it was "
    "not run. Write the character itself, or leave it out."
)


class ArgumentsError(ValueError):
    """The arguments cannot be used; the text is for the model."""


def read_arguments(text: str) -> dict[str, Any]:
    """Return the arguments that `text` holds; none at all is a call without arguments.

    Raises:
        ArgumentsError: The text is no JSON object, too long, or nested too deep.
    """
    if len(text) > MAX_ARGUMENT_CHARS:
        raise ArgumentsError(
            f"The arguments of this call are longer than {MAX_ARGUMENT_CHARS:,} characters, so it was not run. "
            "Do it in smaller steps."
        )
    if not text or text.isspace():
        return {}
    value = _parse(text)
    if not isinstance(value, dict):
        raise ArgumentsError(
            f"The arguments of this call are not a JSON object but {_kind(value)}, so it was not run. "
            "Send an object with the parameters by name."
        )
    return value


def written(arguments: Any) -> str:
    """Return arguments that a server sent as a value in the form of text, for `read_arguments` to judge."""
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        return "["  # no server means this; it is refused like anything that is not whole


def _parse(text: str) -> Any:
    try:
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError) as exc:
        if _holds_half_a_pair(text):
            raise ArgumentsError(_HALF_A_PAIR) from exc
        if "control character" not in str(exc):
            raise ArgumentsError(_not_json(exc)) from exc
        value = _parse_with_raw_line_ends(text)
    if "e" in text or "E" in text:  # 1e999 reads as infinity, which no JSON can say
        _refuse_infinity(value)
    return value


def _parse_with_raw_line_ends(text: str) -> Any:
    """Parse JSON whose strings hold line ends and tabs as they are, as weaker models write them."""
    try:
        value = json.loads(text, strict=False)
        from_json(json.dumps(value))  # the same limits on depth and characters as for everybody
    except (ValueError, RecursionError) as exc:
        raise ArgumentsError(_not_json(exc)) from exc
    return value


def _holds_half_a_pair(text: str) -> bool:
    """Return True if the text would be JSON but for halves of surrogate pairs."""
    try:
        whole = json.dumps(json.loads(text, strict=False), ensure_ascii=False)
    except (ValueError, RecursionError):
        return False
    return not whole.isascii() and any("\ud800" <= char <= "\udfff" for char in whole)


def _refuse_infinity(value: Any) -> None:
    match value:
        case float() if not math.isfinite(value):
            raise ArgumentsError("The arguments of this call hold a number that is too large, so it was not run.")
        case dict():
            for item in value.values():
                _refuse_infinity(item)
        case list():
            for item in value:
                _refuse_infinity(item)


def _not_json(exc: Exception) -> str:
    if isinstance(exc, RecursionError) or "recursion" in str(exc):
        return "The arguments of this call are nested too deep, so it was not run. Send a flatter object."
    return f"The arguments of this call are not whole, valid JSON ({exc}), so it was not run. Send it again."


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "a number"
