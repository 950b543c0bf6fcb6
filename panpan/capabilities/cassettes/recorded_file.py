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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.errors import ConfigError, ToolError
from panpan.types.dataclass import dataclass

VERSION = 1
MAX_BYTES = 256_000_000
"""Longest file that is written or read."""

_SNIFFED_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """What a recorded cassette says, line by line."""

    path: Path
    header: Mapping[str, Any]
    lines: Sequence[tuple[int, Mapping[str, Any]]]
    """The other lines with their numbers, counted from 1."""

    def of_type(self, type_: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the lines of one type with their numbers."""
        return ((number, line) for number, line in self.lines if line.get("type") == type_)


def is_recorded(path: Path) -> bool:
    """Return whether the file looks like a recorded cassette and not like a tape in TOML; False where there is none."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(_SNIFFED_BYTES).lstrip().startswith(b"{")
    except OSError:
        return False


def read_recorded(path: Path) -> RecordedFile:
    """Return what a recorded cassette says; a last line that is torn, as a crash leaves it, does not count.

    Raises:
        ConfigError: The file is not there, or is no recorded cassette; names the file, and the line where there is one.
    """
    if path.is_file() and not is_recorded(path):
        raise ConfigError(f"{path} is no recorded cassette; a tape in TOML is played with --model cassette:{path}")
    lines = list(_objects(path))
    header = lines[0][1] if lines else {}
    if header.get("type") != "cassette":
        raise ConfigError(f"{path} is no recorded cassette: its first line does not say so")
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
            if number == len(lines):  # no line break behind it: the recording was cut off here
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
