"""A JSON schema that the caller gives, as the model's tool has it and as answers are held against it."""

import json
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Any

from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass

MOST_PROBLEMS = 8
"""Most problems of one answer that the model is told."""

MAX_CHECK_S = 2.0
"""Seconds for the check of one answer, in which nothing else goes on."""
_MAX_PROBLEM_CHARS = 300
_CHOICES = frozenset({"anyOf", "oneOf", "allOf", "not", "$ref", "if"})
"""Keywords that providers refuse at the root of a tool's arguments."""
_SHARED = ("$defs", "definitions", "$schema")
"""Keywords that stay at the root, where references look for them."""
_WRAPPED = "answer"
"""Argument that holds an answer whose schema no provider takes as that of arguments."""


@dataclass(frozen=True)
class AnswerSchema:
    """The schema of the answers of a session."""

    schema: Mapping[str, Any]

    @classmethod
    def of(cls, schema: object) -> "AnswerSchema":
        """Return a schema that can be used.

        Raises:
            ConfigError: It is no JSON schema.
        """
        if not isinstance(schema, Mapping):
            raise ConfigError(
                'the JSON schema is not an object; write one such as {"type": "object", "properties": {}}'
            )
        from jsonschema import SchemaError  # type: ignore[import-untyped]

        made = cls(dict(schema))
        try:
            made._kind.check_schema(schema)
        except SchemaError as error:
            raise ConfigError(f"the JSON schema cannot be used: {_in_short(error.message)}") from error
        except RecursionError as error:
            raise ConfigError("the JSON schema cannot be used: it is nested too deeply") from error
        return made

    @property
    def is_wrapped(self) -> bool:
        """True if the answer is one argument of the call, and not all of them."""
        return self.schema.get("type") != "object" or not _CHOICES.isdisjoint(self.schema)

    @property
    def of_arguments(self) -> dict[str, Any]:
        """The schema of the arguments of a call that gives the answer."""
        if not self.is_wrapped:
            return dict(self.schema)
        shared = {key: self.schema[key] for key in _SHARED if key in self.schema}
        inner = {key: value for key, value in self.schema.items() if key not in _SHARED}
        return {**shared, "type": "object", "properties": {_WRAPPED: inner}, "required": [_WRAPPED]}

    def answer_in(self, arguments: Mapping[str, Any]) -> Any:
        """Return the answer in the arguments of a call; None stands for one that is missing."""
        return arguments.get(_WRAPPED) if self.is_wrapped else dict(arguments)

    def problems_of(self, answer: Any) -> Sequence[str]:
        """Return why an answer does not fit, a sentence each; none if it fits."""
        try:
            json.dumps(answer, allow_nan=False)
        except (ValueError, RecursionError):
            return ("it has a number that JSON has not, such as NaN or 1e999, or is nested too deeply",)
        try:
            with _limited(MAX_CHECK_S):
                errors = list(islice(self._validator.iter_errors(answer), MOST_PROBLEMS))
        except Exception as error:  # a reference that leads nowhere shows only here
            return (f"the schema itself cannot be used: {_in_short(str(error))}",)
        return [f"{error.json_path}: {_in_short(error.message)}" for error in errors]

    @property
    def _kind(self) -> Any:
        from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]

        return validator_for(self.schema, default=Draft202012Validator)

    @cached_property
    def _validator(self) -> Any:
        from referencing import Registry

        return self._kind(self.schema, registry=Registry())  # which fetches nothing


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End work in the main thread that takes more of the processor's time; elsewhere Python has no way to.

    Patterns that take for ever look for signals meanwhile, so that they end, too.

    Raises:
        TimeoutError: It took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise TimeoutError(f"to check an answer takes more than {seconds:g} s; make its patterns and choices simpler")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)  # again, if the first one was lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def json_in(text: str) -> Any:
    """Return the JSON value that a text is, also between the fences of a code block.

    Raises:
        ValueError: It is none.
    """
    lines = text.strip().split("\n")
    if len(lines) > 2 and lines[0].strip() in ("```", "```json") and lines[-1].strip() == "```":
        text = "\n".join(lines[1:-1])
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _in_short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_PROBLEM_CHARS else f"{line[:_MAX_PROBLEM_CHARS]}…"
