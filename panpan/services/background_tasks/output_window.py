"""Reading what a task printed: the end of it, or the lines that match a pattern.

The rule: keys are taken out, and a window begins with a line, so that no part of a key is left of one that was cut. A
pattern is searched for by a program of its own, so that one that runs away holds up nothing.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from anyio import to_thread

from panpan.errors import ConfigError, ToolError
from panpan.system.known_keys import KnownKeys
from panpan.system.private import open_private_file
from panpan.tools.search.engine import search
from panpan.tools.search.records import numbered_line, parse_records
from panpan.tools.search.request import SearchRequest
from panpan.tools.shell.line_folder import LineFolder
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


def window_of(path: Path, start: int, *, max_bytes: int, keys: KnownKeys) -> Window:
    """Return what an output holds from a place on, or the end of that.

    Args:
        path: Its file; where it is missing, nothing was printed.
        start: The place, in bytes.
        max_bytes: The most that is read.
        keys: What is taken out.

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
        file.seek(from_)
        data = file.read(max_bytes)
    is_cut = from_ > start
    if is_cut:
        data = data[data.find(b"\n") + 1 :]
    last_line = data.rfind(b"\n") + 1
    end = size - (len(data) - last_line) if len(data) - last_line < max_bytes else size
    return Window(_text_of(data, keys), is_cut, end)


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
    lines = [f"{number}{mark}{text}" for number, mark, text in numbered]
    kept, room = len(lines), max_bytes
    while kept and (room := room - len(lines[kept - 1].encode(errors="replace")) - 1) >= 0:
        kept -= 1
    text = keys.redact("\n".join(lines[kept:]))
    return Window(text, is_cut=kept > 0 or found.is_partial, end=0)


def _text_of(data: bytes, keys: KnownKeys) -> str:
    folder = LineFolder()
    folded = folder.feed(data) + folder.finish()
    return keys.redact(folded.decode(errors="replace"))
