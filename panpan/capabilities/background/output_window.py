"""Reading what a task printed: the end of it, or the lines that match a pattern.

The rule: keys are taken out before anything is cut, so that no part of one is left; a window begins with a line. A
pattern is searched for by a program of its own, so that one that runs away holds up nothing.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from anyio import to_thread

from panpan.errors import ConfigError, ToolError
from panpan.system.files.private import open_private_file
from panpan.system.text.known_keys import KnownKeys
from panpan.system.text.line_folder import LineFolder
from panpan.text_search.engine import search
from panpan.text_search.records import numbered_line, parse_records
from panpan.text_search.request import MAX_COLUMNS, SearchRequest
from panpan.types.dataclass import dataclass

Ripgrep: TypeAlias = Callable[[], str | None]
"""Says which ripgrep to run, if any."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of an output."""

    text: str
    is_cut: bool
    """Whether something before it was left out that was asked for."""
    end: int
    """Where the next window begins, in bytes: behind the last whole line, so that a line that grows is seen whole."""


_CUT_BY_RIPGREP = re.compile(r" \[\.\.\. [a-z0-9 ]+\]\Z")
"""What stands behind the beginning of a line that is longer than `MAX_COLUMNS` bytes."""

_LEAD_BYTES = 16 * 1024
"""How much before a window is looked at for the beginning of a key; no key is that long."""


def window_of(path: Path, start: int, *, max_bytes: int, keys: KnownKeys, grows: bool = False) -> Window:
    """Return what an output holds from a place on, or the end of that.

    Args:
        path: Its file; where it is missing, nothing was printed.
        start: The place, in bytes.
        max_bytes: The most that is read.
        keys: What is taken out.
        grows: Whether more may be printed, so that what may be the beginning of a key is left for later.

    Raises:
        ToolError: The file cannot be read.
    """
    try:
        fd = open_private_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return Window("", is_cut=False, end=start)
    except (OSError, ConfigError) as exc:
        raise ToolError(f"the output in {path} cannot be read: {exc}") from exc
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        from_ = max(start, size - max_bytes)
        lead_bytes = min(from_, _LEAD_BYTES)
        file.seek(from_ - lead_bytes)
        data = file.read(lead_bytes + max_bytes)
    lead, data = data[:lead_bytes], data[lead_bytes:]
    is_cut = from_ > start
    if is_cut:
        first_line = data.find(b"\n") + 1
        lead, data = lead + data[:first_line], data[first_line:]
    last_line = data.rfind(b"\n") + 1
    end = size - (len(data) - last_line) if len(data) - last_line < max_bytes else size
    return Window(_text_of(lead, data, keys, grows=grows), is_cut, end)


async def matching_lines(path: Path, pattern: str, *, max_bytes: int, keys: KnownKeys, ripgrep: str | None) -> Window:
    """Return the lines of an output that match, each with its number, or the last of them.

    Args:
        path: Its file; where it is missing, nothing was printed.
        pattern: A regular expression.
        max_bytes: How much of them is returned at most.
        keys: What is taken out.
        ripgrep: Path of the program; None for the search in Python.

    Raises:
        ToolError: It is no regular expression.
    """
    if not await to_thread.run_sync(path.exists):
        return Window("", is_cut=False, end=0)
    request = SearchRequest(str(path.parent), "lines", file=path.name, pattern=pattern)
    found = await search(request, ripgrep)
    numbered = (numbered_line(rest) for _, rest in parse_records(found.stdout, "lines"))
    lines = [f"{number}{mark}{_without_keys(text, keys)}" for number, mark, text in numbered]
    kept, room = len(lines), max_bytes
    while kept and (room := room - len(lines[kept - 1].encode(errors="replace")) - 1) >= 0:
        kept -= 1
    return Window("\n".join(lines[kept:]), is_cut=kept > 0 or found.is_partial, end=0)


def _without_keys(line: str, keys: KnownKeys) -> str:
    """Return a line that a search has found without keys, also without the beginning of one where it was cut."""
    cut = _CUT_BY_RIPGREP.search(line)
    text, mark = (line[: cut.start()], cut[0]) if cut else (line, "")
    stream = keys.stream()
    kept = stream.feed(text.encode(errors="surrogateescape"))
    if not cut and len(text) < MAX_COLUMNS:
        kept += stream.finish()
    return kept.decode(errors="replace") + mark


def _text_of(lead: bytes, data: bytes, keys: KnownKeys, *, grows: bool) -> str:
    """Return data as text without keys, also without the rest of one that began in what led to it."""
    stream = keys.stream()
    stream.feed(lead)
    data = stream.feed(data) + (b"" if grows else stream.finish())
    folder = LineFolder()
    folded = folder.feed(data) + folder.finish()
    return keys.redact(folded.decode(errors="replace"))
