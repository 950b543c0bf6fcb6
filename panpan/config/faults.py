"""Sentences about mistakes in files that people write: the problem, the place and the correction."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from panpan.config.bounded_toml import TooDeepError, parse_toml
from panpan.config.keys import KeyPath, dotted, shown
from panpan.errors import ConfigError

_WANTED_BY_FAULT = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "invalid-json-value": "a text, number, list or table",
    "float_type": "a number",
    "int_type": "a whole number",
    "is_instance_of": "a table",
    "list_type": "a list",
    "mapping_type": "a table",
    "model_attributes_type": "a table",
    "model_type": "a table",
    "path_type": "a path in quotes",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
}
"""Correct kinds of values, by pydantic's type of error."""

_SENTENCES = {
    "finite_number": "not finite; write a number",
    "greater_than": "too small; write more than {gt:.10g}",
    "greater_than_equal": "too small; write at least {ge:.10g}",
    "less_than": "too large; write less than {lt:.10g}",
    "less_than_equal": "too large; write at most {le:.10g}",
    "literal_error": "unknown; write {expected}",
    "missing": "missing; add it",
    "string_too_long": "too long; write at most {max_length} characters",
    "string_too_short": "empty; write something or remove it",
    "too_long": "too long; write at most {max_length} items",
}
"""Ends of sentences about other errors, after "is", by pydantic's type of error; they are filled with its context."""


def parse_text(text: str, place: str) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        ConfigError: It is not TOML, or nested too deeply; the error begins with the `place`, and names the line.
    """
    try:
        return parse_toml(text)
    except TooDeepError as exc:
        raise ConfigError(f"{place}: is nested too deeply; change or remove the file") from exc
    except ValueError as exc:  # TOMLDecodeError is one, and so is a number with too many digits
        import re

        reason = shown(exc)
        found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", reason)
        if found is None:
            raise ConfigError(f"{place}: is not valid TOML: {reason}") from exc
        line = found.group(1) or text.count("\n") + 1
        reason = reason[0].lower() + reason[1 : found.start()]
        raise ConfigError(f"{place}:{line}: is not valid TOML: {reason}") from exc


def fault(error: ErrorDetails, *, is_item: bool) -> str:
    """Return the problem with a value and the correction, as the end of a sentence that begins with the key.

    Args:
        error: The error from pydantic.
        is_item: True if the value is an item of the list that was named.
    """
    kind, message = error["type"], error["msg"]
    begin = "has an item that is" if is_item else "is"
    if "[key]" in error["loc"]:
        return "has an empty or too long name; write a shorter one, or remove it"
    if kind in _WANTED_BY_FAULT:
        return f"{begin} {kind_of(error['input'])}; write {_WANTED_BY_FAULT[kind]}"
    if kind in _SENTENCES:
        return f"{begin} {_SENTENCES[kind].format_map(error.get('ctx', {}))}"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    return shown(message.removeprefix("Input ").replace("Value error, ", ""))


def first_of(errors: Sequence[ErrorDetails]) -> ErrorDetails:
    """Return the error to tell: an unknown key before others, since the one that was meant may be missing."""
    return next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])


def kind_of(value: object) -> str:
    """Return the kind of a value in words, such as `a whole number`."""
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list"}
    if value == "":
        return "empty"
    return "a table" if isinstance(value, Mapping) else names.get(type(value), f"a {type(value).__name__}")


def suggestion(path: KeyPath, known: Sequence[KeyPath]) -> str:
    """Return the known key that an unknown one may mean, as the end of a sentence; or the advice to remove it."""
    from difflib import get_close_matches

    beside = {key[-1]: key for key in known if key[:-1] == path[:-1]}
    anywhere = {key[-1]: key for key in reversed(known)}
    if path[-1] in anywhere:  # the right word in the wrong table
        return f"; did you mean {dotted(anywhere[path[-1]])}?"
    for candidates in (beside, anywhere):
        if matches := get_close_matches(path[-1].lower(), candidates, n=1, cutoff=0.6):
            return f"; did you mean {dotted(candidates[matches[0]])}?"
    return "; remove it"
