"""Definitions of the command line: `--agents '{"reviewer": {"description": "…", "prompt": "…"}}'`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from panpan.capabilities.subagents.definitions.read_definition import definition_from
from panpan.errors import ConfigError
from panpan.system.text.front_matter import Entry, Value
from panpan.system.text.terminal_text import printable
from panpan.types.agent import AgentDefinition

SOURCE = "--agents"
_EXAMPLE = '{"reviewer": {"description": "Reads a change.", "prompt": "You read a change and …"}}'


def parse_given(text: str) -> Mapping[str, Any]:
    """Return what `--agents` says.

    Raises:
        ConfigError: It is no JSON object.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"what --agents says is no JSON ({error}); it is such as {_EXAMPLE}") from None
    if not isinstance(given, dict):
        raise ConfigError(f"what --agents says is no JSON object; it is such as {_EXAMPLE}")
    return given


def given_definitions(given: Mapping[str, Any]) -> Sequence[AgentDefinition]:
    """Return the definitions, in their order.

    Args:
        given: Keys of a definition and `prompt`, by the agent's name.

    Raises:
        ConfigError: One of them cannot be used.
    """
    return [_definition(name, said) for name, said in given.items()]


def _definition(name: str, said: Any) -> AgentDefinition:
    if not isinstance(said, Mapping):
        raise ConfigError(f"--agents: {printable(name)!r} is no JSON object; it is such as {_EXAMPLE}")
    prompt = said.get("prompt", "")
    head = {key: Entry(_value(value)) for key, value in said.items() if key != "prompt" and value is not None}
    head["name"] = Entry(name)
    definition, problems = definition_from(head, prompt if isinstance(prompt, str) else "", SOURCE)
    if definition is None:
        wrong = next(problem.text for problem in problems if problem.is_error)
        raise ConfigError(printable(f"--agents: {name[:100]}: {wrong}"))
    return definition


def _value(value: Any) -> Value:
    """Return a JSON value as a head has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return {str(key): Entry(_value(item)) for key, item in value.items()}
    return tuple(map(str, value)) if isinstance(value, list | tuple) else str(value)
