"""The first request of the program, `initialize`: what it wants of the session, and the answer.

The rule: the answer comes before the session is open, so it has only what every session has; it is in `offers.json`,
which `scripts/sdk_page.py` writes. The module imports nothing heavy.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from importlib.resources import files
from typing import Any

from panpan.errors import ConfigError
from panpan.faces.sdk.channel import Request
from panpan.session.host import HostHook
from panpan.types.dataclass import dataclass

MAX_HOOKS = 1_000
"""Most hooks of a program."""
_UNUSED = frozenset(
    {"promptSuggestions", "forwardSubagentText", "sdkMcpServerManifests", "sdkMcpServerManifestsOrigin"}
)
"""Fields that change nothing which a program could miss: panpan always sends the texts of subagents, say."""
_APPLIED = {
    "settings": "settings_applied",
    "disallowedTools": "disallowed_tools_applied",
    "mcpServers": "mcp_servers_applied",
}
"""Fields that count for a session that is not open yet, each with the field of the answer that says so."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Wishes of the program for the session."""

    hooks: Sequence[HostHook] = ()
    servers: Sequence[str] = ()
    """Names of its own MCP servers."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the command line that it sets, by their names there, and `skills`."""
    unknown: Sequence[str] = ()
    """Fields that panpan does not know."""
    delivered: Sequence[str] = ()
    """Fields for which the program would otherwise use the command line; it wants to know whether they count."""


def read_hello(request: Request) -> Hello:
    """Return what a request says.

    Raises:
        ConfigError: It cannot be used; the text names the field.
    """
    fields = {name: value for name, value in request.fields.items() if value is not None}
    options: dict[str, Any] = {}
    servers = _texts(fields.pop("sdkMcpServers", []), "sdkMcpServers")
    hooks = tuple(_hooks(fields.pop("hooks", {})))
    if len(hooks) > MAX_HOOKS:
        raise ConfigError(f"hooks: there are more than {MAX_HOOKS:,}")
    if agents := _object(fields.pop("agents", {}), "agents"):
        options["agents"] = json.dumps(agents)
    if "jsonSchema" in fields:
        options["json_schema"] = json.dumps(_object(fields.pop("jsonSchema"), "jsonSchema"))
    for name, option in (("systemPrompt", "system_prompt"), ("appendSystemPrompt", "append_system_prompt")):
        if name in fields:
            value = fields.pop(name)
            options[option] = value if isinstance(value, str) else "\n\n".join(_texts(value, name))
    if "skills" in fields:
        options["skills"] = _texts(fields.pop("skills"), "skills")
    delivered = tuple(name for name in _APPLIED if name in fields)
    if "settings" in fields:
        options["settings"] = (json.dumps(_object(fields.pop("settings"), "settings")),)
    if "disallowedTools" in fields:
        options["disallowed_tools"] = _texts(fields.pop("disallowedTools"), "disallowedTools")
    given = dict(_object(fields.pop("mcpServers", {}), "mcpServers"))
    given |= {name: {"type": "sdk", "name": name} for name in servers}
    if given:
        options["mcp_config"] = (json.dumps({"mcpServers": given}),)
    unknown = sorted(name for name, value in fields.items() if value and name not in _UNUSED)
    return Hello(hooks, servers, options, unknown, delivered)


def hello_answer(hello: Hello, style: str | None, *, is_first: bool) -> Mapping[str, Any]:
    """Return the answer.

    Args:
        hello: What the program wants.
        style: Output style of the session; None for panpan's usual one.
        is_first: True if the session opens as the program wants.
    """
    offers: dict[str, Any] = json.loads(files(__package__).joinpath("offers.json").read_bytes())
    return {
        **offers,
        "output_style": style or "default",
        "account": {},
        "hooks_applied": True,
        "hook_on_failure_supported": True,
        **{_APPLIED[name]: is_first for name in hello.delivered},
        **({"ignored_fields": hello.unknown} if hello.unknown else {}),
    }


def _hooks(given: Any) -> Iterator[HostHook]:
    for event, matchers in _object(given, "hooks").items():
        for number, one in enumerate(_list(matchers, f"hooks.{event}")):
            place = f"hooks.{event}[{number}]"
            matcher = _object(one, place)
            pattern, seconds = matcher.get("matcher") or "", matcher.get("timeout")
            if not isinstance(pattern, str) or not _is_pattern(pattern):
                raise ConfigError(f"{place}.matcher is no pattern")
            if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds < 1e9):
                raise ConfigError(f"{place}.timeout is no number of seconds")
            is_guard = matcher.get("onFailure") not in (None, "continue")
            for callback in _texts(matcher.get("hookCallbackIds", []), f"{place}.hookCallbackIds"):
                yield HostHook(event, pattern, callback, seconds, is_guard)


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, RecursionError):
        return text == "*"
    return True


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place} is no object")
    return value


def _list(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"{place} is no list")
    return value


def _texts(value: Any, place: str) -> Sequence[str]:
    if not all(isinstance(one, str) for one in _list(value, place)):
        raise ConfigError(f"{place} is no list of texts")
    return tuple(value)
