"""What of a project's executable settings is other than it was, for a person who decides whether he trusts it.

The rule: every character is visible, and values of files for secrets are neither kept nor shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from panpan.config.project_files import ProjectFiles, setting_of
from panpan.system.text.terminal_text import spelled_out
from panpan.types.dataclass import dataclass

_MAX_CHARS = 64_000
_MAX_LINES = 1_000
"""Of one file: longer ones are compared by digest and not line by line."""
_MAX_KEPT_CHARS = 1_000_000
"""Of all files of a project."""
_VARIABLE = re.compile(r"\s*(?:export\s+)?[A-Z_][A-Z0-9_]{0,63}\s*=")


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as the user decided about it."""

    digest: str
    text: str | None
    """What is in it, to show what changes; None where it is too long or no text."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that is not as it was."""

    name: str
    """From the root of the project."""
    kind: Literal["new", "changed", "gone"]
    lines: Sequence[str]
    """What is other, each line with `+`, `-` or a blank in front; empty where only values are that are not shown."""


def known_files(files: ProjectFiles) -> Mapping[str, KnownFile]:
    """Return what to keep of the files so that changes can be found and shown later."""
    known: dict[str, KnownFile] = {}
    room = _MAX_KEPT_CHARS
    for name, data in files.content.items():
        text = _text(name, data)
        kept = text if text is not None and len(text) <= room else None
        room -= len(kept or "")
        known[name] = KnownFile(files.digests[name], kept)
    return known


def changes_since(before: Mapping[str, KnownFile], files: ProjectFiles) -> Sequence[FileChange]:
    """Return every file that came, went or changed since `before`; nothing where all is as it was."""
    return tuple(_changes(before, files))


def _changes(before: Mapping[str, KnownFile], files: ProjectFiles) -> Iterator[FileChange]:
    for name in sorted({*before, *files.content}):
        known, digest = before.get(name), files.digests.get(name)
        if known is not None and known.digest == digest:
            continue
        kind: Literal["new", "changed", "gone"] = "new" if known is None else "gone" if digest is None else "changed"
        old = "" if known is None else known.text
        new = "" if digest is None else _text(name, files.content[name])
        is_shown = old is not None and new is not None
        unseen = f"({len(files.content.get(name, b'')):,} bytes, too many or no text to be shown)"
        yield FileChange(name, kind, tuple(_lines(old or "", new or "")) if is_shown else (unseen,))


def _lines(old: str, new: str) -> Iterator[str]:
    from difflib import unified_diff

    found = unified_diff(_split(old), _split(new), n=2, lineterm="")
    for number, line in enumerate(found):
        if number > 1 and (old or line.startswith("+")):  # the first two lines would name files
            yield spelled_out(line)


def _split(text: str) -> list[str]:
    r"""Return the lines, ended by `\n` only: anything else that ends lines somewhere is a character to be seen."""
    lines = text.split("\n")
    return [*lines, "(no line end)"] if lines[-1] else lines[:-1]


def _text(name: str, data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if len(text) > _MAX_CHARS or text.count("\n") > _MAX_LINES:
        return None
    setting = setting_of(name)
    return _without_values(text) if setting is None or setting.is_secret else text


def _without_values(text: str) -> str:
    """Return the names of variables alone: what else stands in a file for secrets may be part of one."""
    lines = [line for line in text.split("\n") if line]
    return "".join(f"{found[0]}…\n" if (found := _VARIABLE.match(line)) else "…\n" for line in lines)
