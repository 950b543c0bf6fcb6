"""Finding paths by what is typed of them: `@mainpy`, `@faces/terminal`, `@conftset`.

The rule: better kinds of matches are looked for first, and the search ends when there are enough; names count more than
paths. It runs in the event loop in steps of a few milliseconds, so that typing goes on, and whoever closes it ends it:
a thread would hold the interpreter as long as it searches, and could not be stopped.
"""

import re
import time
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from anyio.lowlevel import checkpoint
from rapidfuzz import fuzz, process

from panpan.faces.terminal.input.file_index import NAME_MARK, PATH_MARK, Chunk, FileList, folded

STEP_S = 0.002
_MAX_OF_A_KIND = 200
"""So many matches of one kind are compared with each other; the newest files come first."""
_ENOUGH = 5
"""With fewer matches, misspelt names count as well."""
_MIN_MISSPELT_CHARS = 4
_MIN_SIMILARITY = 78.0
"""In per cent; two letters swapped in a word of eight are 87."""

_Kind: TypeAlias = "re.Pattern[str]"


async def find_paths(files: FileList, typed: str, limit: int) -> list[str]:
    """Return the paths that fit what is typed, the best first; the newest where nothing is typed.

    Args:
        files: Where to look.
        typed: Letters of the path, in their order, not necessarily next to each other.
        limit: Most paths to return.
    """
    wanted = folded(typed.removeprefix("./"))
    found: dict[str, None] = {}
    step = _Step()
    for kind in _kinds(wanted):
        of_kind: list[str] = []
        for chunk in files.chunks:
            await step.pause_if_long()
            of_kind += (path for path in _matches(kind, chunk) if path not in found)
            if len(of_kind) >= _MAX_OF_A_KIND:
                break
        found |= dict.fromkeys(_best_first(of_kind, wanted))
        if len(found) >= limit:
            break
    if len(found) < _ENOUGH and len(wanted) >= _MIN_MISSPELT_CHARS:
        found |= dict.fromkeys(await _misspelt(files, wanted, limit, step))
    return list(found)[:limit]


class _Step:
    """Lets others run after some milliseconds of work."""

    def __init__(self) -> None:
        self._end_s = time.perf_counter() + STEP_S

    async def pause_if_long(self) -> None:
        if time.perf_counter() >= self._end_s:
            await checkpoint()
            self._end_s = time.perf_counter() + STEP_S


def _kinds(wanted: str) -> Iterator[_Kind]:
    """Yield what to look for, the best kind first. Each starts with a literal, which is looked for quickly.

    None of them tries twice at one place: what stands between two letters cannot hold the second of them.
    """
    whole, letters = re.escape(wanted), _letters(wanted)
    yield re.compile(f"{NAME_MARK}{whole}")  # the name begins so
    yield re.compile(f"{whole}[^{NAME_MARK}\n]*\n")  # it is in the name
    if wanted:
        yield re.compile(whole.replace("/", f"/{NAME_MARK}?"))  # it is in the path
        yield re.compile(f"{NAME_MARK}{letters}")
        yield re.compile(f"{PATH_MARK}{letters}")


def _letters(wanted: str) -> str:
    return "".join(f"[^{re.escape(letter)}\n]*{re.escape(letter)}" for letter in wanted)


def _matches(kind: _Kind, chunk: Chunk) -> Iterator[str]:
    """Yield the paths with a match, each once."""
    position = 0
    while (found := kind.search(chunk.folded, position)) is not None:
        start = chunk.text.rfind(PATH_MARK, 0, found.start() + 1) + 1
        position = chunk.text.find("\n", found.start()) + 1
        yield chunk.text[start : position - 1].replace(NAME_MARK, "")


def _best_first(paths: list[str], wanted: str) -> list[str]:
    """Return matches of one kind: paths that begin so, then what is most like it."""
    if not wanted:
        return paths
    compared = str if "/" in wanted else _name
    return sorted(
        paths, key=lambda path: (not path.lower().startswith(wanted), -fuzz.ratio(wanted, compared(path).lower()))
    )


def _name(path: str) -> str:
    return path[path.rfind("/", 0, -1) + 1 :]


async def _misspelt(files: FileList, wanted: str, limit: int, step: _Step) -> Iterable[str]:
    """Return paths whose names are like what is typed."""
    scored: list[tuple[float, str]] = []
    for chunk in files.chunks:
        await step.pause_if_long()
        paths = chunk.text.replace(NAME_MARK, "").removesuffix("\n").removeprefix(PATH_MARK).split(f"\n{PATH_MARK}")
        names = [_name(path).lower() for path in paths]
        like = process.extract(
            wanted, names, scorer=fuzz.partial_ratio, score_cutoff=_MIN_SIMILARITY, limit=limit, processor=None
        )
        # a name much shorter than what is typed is a part of it and no misspelling
        scored += [(score, paths[index]) for name, score, index in like if len(name) >= len(wanted) - 1]
    return [path for _, path in sorted(scored, key=lambda pair: -pair[0])]
