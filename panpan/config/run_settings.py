"""The settings of one run: environment variables, `--settings FILE|JSON` and `--set KEY=VALUE`.

The same code checks them as settings in files; an error names the file and line, the flag or the variable. The vendors'
own variables, such as `ANTHROPIC_API_KEY`, are no settings: the model factory reads them if no setting decides.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.config.bounded_toml import parse_toml
from panpan.config.claude_settings import given_values, is_claudes
from panpan.config.keys import KeyPath, dotted, json_key_lines, leaves, put, shown
from panpan.config.settings_file import Source, check, parse_settings, read_bytes
from panpan.errors import ConfigError
from panpan.system.environment import ATTEMPT_VARIABLE, TASK_VARIABLE, is_of_attempt

LOCAL_API_KEY_VARIABLE = "PANPAN_LOCAL_API_KEY"
"""Variable with the key that clients of `panpan local run` have to send."""

MCP_TOKEN_VARIABLE = "PANPAN_MCP_TOKEN"
"""Variable with the token that clients of `panpan mcp serve --http` send; without it, each start makes one."""

SERVER_TOKEN_VARIABLE = "PANPAN_SERVER_TOKEN"
"""Variable with the token that clients of `panpan serve` send; without it, each start makes one."""
OTHER_VARIABLES = frozenset(
    {
        "PANPAN_HOME",
        "PANPAN_NO_DAEMON",
        "PANPAN_PROCESS_MARKS",
        LOCAL_API_KEY_VARIABLE,
        MCP_TOKEN_VARIABLE,
        SERVER_TOKEN_VARIABLE,
        TASK_VARIABLE,
        ATTEMPT_VARIABLE,
    }
)
"""Variables of panpan that are no settings; the second one marks the processes that it starts."""


def _truth(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    try:
        return words[text.lower()]
    except KeyError:
        raise ValueError("is neither true nor false; write one of them") from None


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is not a whole number; write one, such as 20") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number; write one, such as 0.5") from None


VARIABLES: Mapping[str, tuple[KeyPath, Callable[[str], object]]] = {
    "PANPAN_MODEL": (("model",), str),
    "PANPAN_PROVIDER": (("provider",), str),
    "PANPAN_BASE_URL": (("base_url",), str),
    "PANPAN_API_KEY": (("api_key",), str),
    "PANPAN_MAX_OUTPUT_TOKENS": (("max_output_tokens",), _whole_number),
    "PANPAN_THINKING": (("thinking",), _truth),
    "PANPAN_THINKING_BUDGET_TOKENS": (("thinking_budget_tokens",), _whole_number),
    "PANPAN_EFFORT": (("effort",), str),
    "PANPAN_TEMPERATURE": (("temperature",), _number),
    "PANPAN_TOP_P": (("top_p",), _number),
    "PANPAN_TOP_K": (("top_k",), _whole_number),
    "PANPAN_PERMISSION_MODE": (("permission", "mode"), str),
    "PANPAN_MAX_ROUNDS": (("max_rounds",), _whole_number),
    "PANPAN_MAX_BUDGET_USD": (("max_budget_usd",), _number),
    "PANPAN_MAX_TOKENS": (("max_tokens",), _whole_number),
    "PANPAN_MAX_SECONDS": (("max_seconds",), _number),
    "PANPAN_SESSIONS_TITLE": (("sessions", "title"), str),
    "PANPAN_IDLE_TIMEOUT_S": (("idle_timeout_s",), _number),
}
"""Setting and parser of each variable."""


def read_environment(env: Mapping[str, str]) -> tuple[Source, list[str]]:
    """Return the checked settings in the environment, and a warning for each unknown variable.

    An empty variable counts as not set, as with most programs: `PANPAN_MODEL= panpan` removes it.

    Raises:
        ConfigError: A variable has a value that cannot be used.
    """
    values: dict[str, Any] = {}
    places: dict[KeyPath, str] = {}
    for name, (path, read) in VARIABLES.items():
        text = env.get(name, "").strip()
        if not text:
            continue
        try:
            put(values, path, read(text))
        except ValueError as exc:
            raise ConfigError(f"{name} {exc}") from exc
        places[path] = name
    source = Source("environment", "the environment", values, places)
    check(source)
    return source, [_unknown(name) for name in sorted(env) if _is_unknown(name, env[name])]


def _is_unknown(name: str, value: str) -> bool:
    is_known = name in VARIABLES or name in OTHER_VARIABLES or is_of_attempt(name)
    return name.startswith("PANPAN_") and bool(value) and not is_known


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(name, [*VARIABLES, *OTHER_VARIABLES], n=1, cutoff=0.8)
    advice = f"did you mean {matches[0]}?" if matches else "it does nothing"
    return f"there is no variable {shown(name)}; {advice}"


SETTINGS_FLAG = "--settings"
SET_FLAG = "--set"
_MAX_DEPTH = 100
"""Limit on the levels of nested tables and lists."""


def given_sources(settings: Sequence[str], assignments: Sequence[str], cwd: Path) -> Sequence[Source]:
    """Return the settings of the command line, weakest first.

    Args:
        settings: Texts of `--settings`: each a JSON object, or the path of a TOML or JSON file.
        assignments: Texts of `--set`: each `KEY=VALUE`.
        cwd: Folder that relative paths start from.

    Raises:
        ConfigError: One of them cannot be read, or has an unknown key or value.
    """
    return (*(_of_settings(text, cwd) for text in settings), *map(_of_assignment, assignments))


def _of_settings(text: str, cwd: Path) -> Source:
    if text.lstrip().startswith("{"):
        return _of_json(text, SETTINGS_FLAG, None)
    try:
        path = cwd / Path(text).expanduser()
    except RuntimeError as exc:
        raise ConfigError(f"{SETTINGS_FLAG} {shown(text)}: that home folder does not exist") from exc
    data = read_bytes(path) if text and "\0" not in text else None
    if data is None:
        raise ConfigError(f"{SETTINGS_FLAG}: there is no file {shown(text)!r}; name a TOML or JSON file, or give JSON")
    if path.suffix.lower() != ".json" and not data.lstrip().startswith(b"{"):
        return parse_settings(data, path, "flag")
    try:
        return _of_json(data.decode("utf-8-sig"), shown(path), path)
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{shown(path)}: is not UTF-8; save the file as UTF-8") from exc


def _of_json(text: str, place: str, file: Path | None) -> Source:
    """Return the settings of a JSON object; those of a file know their lines."""
    try:
        values = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as exc:
        at = f"{place}:{exc.lineno}" if file else place
        raise ConfigError(f"{at}: not valid JSON: {exc.msg[:1].lower()}{exc.msg[1:]}") from exc
    except RecursionError:
        values = None
    except ValueError as exc:
        raise ConfigError(f"{place}: {shown(exc)}") from exc
    if values is None or _is_too_deep(values):
        raise ConfigError(f"{place}: nested too deeply for settings; write fewer levels")
    if not isinstance(values, dict):
        raise ConfigError(f'{place}: not a JSON object; write settings as {{"KEY": VALUE}}')
    lines = json_key_lines(text) if file else {}
    places = {path: f"{place}:{line}" for path, line in lines.items()}
    if is_claudes(values):
        values, places = given_values(values, place), {}
    return _checked(Source("flag", place, values, places, file))


def _is_too_deep(values: object) -> bool:
    level = [values]
    for _ in range(_MAX_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is twice in one table; keep one")
    return values


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number; write a finite number")


def _of_assignment(text: str) -> Source:
    key, equals, value = text.partition("=")
    path = _key_path(key.strip()) if equals else None
    if path is None:
        raise ConfigError(f"{SET_FLAG} {shown(key)}: write KEY=VALUE, such as {SET_FLAG} sandbox.network=true")
    values: dict[str, Any] = {}
    put(values, path, _value(value.strip()))
    place = f"{SET_FLAG} {dotted(path)}"
    return _checked(Source("flag", place, values, {path: place}))


def _key_path(key: str) -> KeyPath | None:
    """Return the parts of a dotted key as in TOML; None if it is no key."""
    if not key or not key.isprintable():
        return None
    try:
        found = [path for path, _ in leaves(parse_toml(f"{key} = 0"))]
    except ValueError:
        return None
    return found[0] if len(found) == 1 else None


def _value(text: str) -> Any:
    """Return a TOML value, or the text itself if it is not one."""
    try:
        values = parse_toml(f"value = {text}")
    except ValueError:
        return text
    return values["value"] if values.keys() == {"value"} else text


def _checked(source: Source) -> Source:
    check(source)
    return source
