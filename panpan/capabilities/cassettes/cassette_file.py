"""The file of a tape: a conversation's replies, written by hand, in TOML.

    version = 1
    title = "Find the bug"                # for people
    chars_per_second = 400                # how fast text appears; without it, at once

    [[reply]]
    expects.prompt_contains = "bug"       # checked against the request before the reply is played
    text = "I run the tests first."
    pause_s = 0.5                         # before the first word
    [[reply.tool_use]]
    name = "Bash"
    input = { command = "python -m pytest -q" }

    [[reply]]
    expects.results_contain = ["1 failed"]
    text = "Done."

The rule: what the file says is taken literally; nothing in it is a template, and a key that is not known is an error.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from panpan.errors import ConfigError, ToolError
from panpan.types.content import Frozen
from panpan.types.messages import StopReason, Usage

MAX_BYTES = 20_000_000
MAX_PAUSE_S = 60.0

_LONG_STRING = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'', re.DOTALL)
_REPLY_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*reply[ \t]*\]\]", re.MULTILINE)
_TOML_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def _json_object(value: dict[str, Any]) -> dict[str, Any]:
    import json

    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("holds a value that JSON does not have, such as a date") from None
    return value


class TapeToolUse(Frozen):
    """A call in a reply."""

    name: str = Field(min_length=1)
    input: Annotated[dict[str, Any], AfterValidator(_json_object)] = Field(default_factory=dict)
    arguments: str | None = None
    """The arguments as text in place of `input`, for calls that did not arrive whole."""


class Expectations(Frozen):
    """What the request must hold for the reply to make sense."""

    prompt_contains: tuple[str, ...] | str = ()
    """Texts in the newest message of the user."""
    results_contain: tuple[str, ...] = ()
    """A text in each tool result that is new, in the order of the calls; "" fits every result."""
    tools: tuple[str, ...] = ()
    """Tools that must be offered, besides those that the reply calls."""


class TapeReply(Frozen):
    """One reply of the model."""

    expects: Expectations = Expectations()
    thinking: str = ""
    text: str = ""
    tool_use: tuple[TapeToolUse, ...] = ()
    stop_reason: StopReason | None = None
    """None: "tool_use" or "end_turn", whichever fits."""
    usage: Usage = Usage()
    pause_s: float = Field(default=0, ge=0, le=MAX_PAUSE_S)


class Tape(Frozen):
    """A whole cassette."""

    version: Literal[1]
    title: str = ""
    chars_per_second: float | None = Field(default=None, gt=0)
    reply: tuple[TapeReply, ...] = Field(min_length=1)


def read_tape(path: Path) -> tuple[Tape, tuple[int, ...]]:
    """Return a cassette, and the line at which each of its replies begins.

    Raises:
        ConfigError: The file is not there, or is no cassette; names the file, and the line where there is one.
    """
    text = _read(path)
    lines = _reply_lines(text)
    document = _parsed(text, path)
    version = document.get("version")
    if isinstance(version, int) and version > 1:
        raise ConfigError(f"cassette {path} has format version {version} and this panpan plays 1; update panpan")
    try:
        return Tape.model_validate(document), lines
    except ValidationError as exc:
        raise ConfigError(_complaint(exc, path, lines)) from exc


def _read(path: Path) -> str:
    from panpan.system.files.read_file import read_regular_file

    try:
        return read_regular_file(path, max_bytes=MAX_BYTES, follow_symlinks=True).decode("utf-8-sig")
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no cassette {path}") from exc
    except (OSError, ToolError) as exc:
        raise ConfigError(f"cannot read the cassette {path}: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"cassette {path} is not UTF-8") from exc


def _parsed(text: str, path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise ConfigError(f"cassette {path} is nested too deeply") from exc
    except ValueError as exc:
        reason = str(exc)
        found = _TOML_LINE.search(reason)
        line = found.group(1) if found else text.count("\n") + 1
        raise ConfigError(f"cassette {path}:{line} is not valid TOML: {_TOML_LINE.sub('', reason)}") from exc


def _reply_lines(text: str) -> tuple[int, ...]:
    """Return where each `[[reply]]` stands; what looks like one in a long string does not count."""
    bare = _LONG_STRING.sub(lambda match: "\n" * match.group().count("\n"), text)
    return tuple(bare.count("\n", 0, match.end()) + 1 for match in _REPLY_HEADER.finditer(bare))


def _complaint(exc: ValidationError, path: Path, lines: tuple[int, ...]) -> str:
    first = exc.errors(include_url=False)[0]
    where = [part for part in first["loc"] if part not in ("tuple[str, ...]", "str")]
    place = str(path)
    match where:
        case ["reply", int(number), *rest] if number < len(lines):
            place, where = f"{path}:{lines[number]}", [f"reply {number + 1}", *rest]
        case _:
            pass
    field = ".".join(str(part + 1) if isinstance(part, int) else part for part in where)
    if first["type"] == "extra_forbidden":
        return f"cassette {place}: there is no key {field}"
    message = first["msg"].removeprefix("Value error, ")
    return f"cassette {place}: {field}: {message[0].lower()}{message[1:]}"
