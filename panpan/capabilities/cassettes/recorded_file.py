"""The file of a recorded cassette: JSON lines, the first of which says what it is.

    {"type":"cassette","version":1,"model":"…","workspace":"/home/me/project",…}
    {"type":"user","uuid":"…","message":{…}}                the records of the session's log, as that has them
    {"type":"cassette_turn",…}                              a turn begins with the user message before it
    {"type":"cassette_request","number":1,…}                what the model was sent; what is as before is not repeated
    {"type":"cassette_reply","number":1,"events":[[0.51,["text",0,"I"]],…]}    its stream, with seconds
    {"type":"assistant",…}
    {"type":"cassette_answer","asked":"permission",…}       what somebody was asked, and said
    {"type":"cassette_turn_end",…}

The rule: each line is written at once and makes sense with those before it, so that what a crash leaves can be played
up to there. A line of a type that is not known is passed over.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from panpan.config.keys import dotted, put
from panpan.config.settings_file import Source, check
from panpan.errors import ConfigError, ToolError
from panpan.models.provider_kind import FULL
from panpan.session.context import SessionContext
from panpan.session.frontend import Askers
from panpan.session.log.records import encode_record
from panpan.system.files.folder_tree import open_private_file
from panpan.types.dataclass import dataclass
from panpan.version import __version__

VERSION = 1
MAX_BYTES = 256_000_000

_SNIFFED_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """Header and lines of a recorded cassette."""

    path: Path
    header: Mapping[str, Any]
    lines: Sequence[tuple[int, Mapping[str, Any]]]
    """The other lines with their numbers, counted from 1."""

    def of_type(self, type_: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the lines of one type with their numbers."""
        return ((number, line) for number, line in self.lines if line.get("type") == type_)


def is_recorded(path: Path) -> bool:
    """Return True if the file looks like a recorded cassette and not like a tape in TOML; False where there is none."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(_SNIFFED_BYTES).lstrip().startswith(b"{")
    except OSError:
        return False


def read_recorded(path: Path) -> RecordedFile:
    """Return the contents of a recorded cassette, without a last line that a crash cut off.

    Raises:
        ConfigError: The file is not there, or is no recorded cassette; names the file, and the line where there is one.
    """
    if path.is_file() and not is_recorded(path):
        raise ConfigError(f"{path} is not a recorded cassette; play a tape in TOML with --model cassette:{path}")
    lines = list(_objects(path))
    header = lines[0][1] if lines else {}
    if header.get("type") != "cassette":
        raise ConfigError(f"{path} is not a recorded cassette: its first line does not say so")
    version = header.get("version")
    if version != VERSION:
        newer = "; update panpan" if isinstance(version, int) and version > VERSION else ""
        raise ConfigError(f"cassette {path} has format version {version!r} and this panpan plays {VERSION}{newer}")
    return RecordedFile(path, header, lines[1:])


def _objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    lines = _bytes(path).split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as exc:
            if number == len(lines):  # the recording was cut off here, since no line break follows
                return
            raise ConfigError(f"cassette {path}:{number} is not valid JSON") from exc
        if not isinstance(value, dict):
            raise ConfigError(f"cassette {path}:{number} is not a JSON object")
        yield number, value


def _bytes(path: Path) -> bytes:
    from panpan.system.files.read_file import read_regular_file

    try:
        return read_regular_file(path, max_bytes=MAX_BYTES, follow_symlinks=True)
    except (OSError, ToolError) as exc:
        reason = f"there is no cassette {path}" if not path.exists() else f"cannot read the cassette {path}: {exc}"
        raise ConfigError(reason) from exc


ROOM_FOR_END = 10_000
"""Bytes that are kept for the line that says why a recording ended."""


class CassetteWriter:
    """A file that does not exist yet, made with the first line.

    `warn` is told why the recording ended early, in one sentence.

    Raises:
        ConfigError: The file exists, or its folder does not.
    """

    def __init__(self, path: Path, warn: Callable[[str], None], *, max_bytes: int = MAX_BYTES) -> None:
        if os.path.lexists(path):
            raise ConfigError(f"{path} exists already; record into another file, or remove it first")
        if not path.parent.is_dir():
            raise ConfigError(f"{path} cannot be written: there is no folder {path.parent}")
        self.path = path
        self._warn = warn
        self._bytes_left = max_bytes - ROOM_FOR_END
        self._fd: int | None = None
        self.is_over = False
        """True if no more is written."""

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line, or end the recording if that is not possible."""
        if self.is_over:
            return
        data = encode_record(line)
        try:
            if self._fd is None:
                self._fd = open_private_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
            if len(data) > self._bytes_left:
                self._end("it has become too long")
                return
            self._bytes_left -= len(data)
            self._write(data)
        except FileExistsError:
            self._end("another program has made a file of this name", has_file=False)
        except (OSError, ConfigError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._end(f"it cannot be written: {reason}", has_file=False)

    def close(self) -> None:
        """Make what was written durable, and give the file back."""
        self.is_over = True
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            os.fsync(fd)
        except OSError as error:
            self._warn(f"the cassette {self.path} may not be on disk: {error.strerror}")
        finally:
            os.close(fd)

    def _write(self, data: bytes) -> None:
        assert self._fd is not None
        written = 0
        while written < len(data):
            written += os.write(self._fd, data[written:])

    def _end(self, reason: str, *, has_file: bool = True) -> None:
        self.is_over = True
        self._warn(f"the recording into {self.path} ends here: {reason}; what was recorded before can be played")
        if has_file:
            self._write(encode_record({"type": "cassette_end", "reason": reason}))


_SETTINGS = (
    ("max_output_tokens",),
    ("thinking",),
    ("thinking_budget_tokens",),
    ("effort",),
    ("temperature",),
    ("top_p",),
    ("top_k",),
    ("tools", "enabled"),
    ("permission", "mode"),
    ("permission", "doom_loop"),
    ("compaction", "enabled"),
    ("compaction", "reserve_tokens"),
    ("compaction", "keep_recent_tokens"),
)
"""Settings that change what a model is sent."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The user's changes to the system prompt."""

    system_prompt: str | None = None
    append_system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """The first line."""

    workspace: str
    """The folder that was worked in, canonical."""
    settings: Mapping[str, Any]
    """Settings that change what a model is sent, by dotted key."""
    asks: frozenset[str]
    """Askers that the recorded session had, of "permission", "user" and "plan"."""
    is_interactive: bool
    is_resumed: bool
    prompts: Prompts = Prompts()
    profile: str = FULL.name
    """Name of the model's profile, which decides how much of panpan it is given."""
    unavailable: Sequence[str] | None = None
    """Names of tools that could not work where it was recorded; None: it does not say."""


def header_line(session: SessionContext, askers: Askers) -> dict[str, Any]:
    """Return the first line of a recording."""
    setup, prompts = session.setup, session.config.prompts
    return {
        "type": "cassette",
        "version": VERSION,
        "panpanVersion": __version__,
        "recordedAt": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "model": setup.model.model,
        "provider": setup.model.provider,
        "profile": setup.profile.name,
        "workspace": str(setup.cwd),
        "settings": _settings(session),
        "asks": [name for name in ("permission", "user", "plan") if getattr(askers, name) is not None],
        "isAttended": session.frontend.is_interactive,
        "isResumed": bool(session.opened.before.messages),
        "systemPrompt": prompts.override,
        "appendSystemPrompt": prompts.append,
        "withoutUse": list(session.unavailable),
    }


def header_of(file: RecordedFile) -> Header:
    """Return the parsed first line; raise `ConfigError` if it is damaged."""
    match file.header:
        case {
            "model": str(),
            "workspace": str(workspace),
            "settings": dict(settings),
            "asks": list(asks),
            "systemPrompt": str() | None as system_prompt,
            "appendSystemPrompt": str() | None as append_system_prompt,
        } if Path(workspace).is_absolute():
            return Header(
                workspace,
                _checked(settings, f"cassette {file.path}:1"),
                frozenset(map(str, asks)),
                is_interactive=file.header.get("isAttended") is True,
                is_resumed=file.header.get("isResumed") is True,
                prompts=Prompts(system_prompt, append_system_prompt),
                profile=str(file.header.get("profile", FULL.name)),
                unavailable=_names(file.header.get("withoutUse")),
            )
        case _:
            raise ConfigError(f"cassette {file.path}:1 does not say what a replay has to know")


def _names(found: Any) -> Sequence[str] | None:
    return [str(name) for name in found] if isinstance(found, list) else None


def _checked(settings: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return the recorded settings that a replay uses; raise `ConfigError` if one is invalid."""
    keys = {*map(dotted, _SETTINGS), "max_rounds", "permission.deny", "compaction.window_tokens"}
    chosen = {key: value for key, value in settings.items() if key in keys}
    values: dict[str, Any] = {}
    for key, value in chosen.items():
        put(values, tuple(key.split(".")), value)
    check(Source("flag", place, values, {}))
    return chosen


def _settings(session: SessionContext) -> dict[str, Any]:
    """Return the settings that are other than the defaults."""
    settings, defaults = session.settings.model_dump(mode="json"), type(session.settings)().model_dump(mode="json")
    chosen: dict[str, Any] = {}
    for path in _SETTINGS:
        value: Any = settings
        default: Any = defaults
        for part in path:
            value, default = value.get(part), default.get(part)  # the feature may be missing
        if value != default:
            chosen[dotted(path)] = value
    if removed := [rule for rule in session.settings.permission.deny if "(" not in rule]:
        chosen["permission.deny"] = removed  # removes tools, which changes the request
    if session.setup.context_window is not None:
        chosen["compaction.window_tokens"] = session.setup.context_window
    return chosen | {"max_rounds": session.main.permissions.max_rounds}
