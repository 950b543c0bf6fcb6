"""Paths of files by a few of their letters: a list of the files, and a fuzzy search in it.

The rule: nobody waits for the list but the first who asks, and no search holds the event loop.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint
from rapidfuzz import fuzz, process

from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver
from panpan.text_search.engine import RipgrepFinder, SearchRequest, Selection, find_ripgrep, parse_listing, search
from panpan.types.dataclass import dataclass

# The list of files comes from the search that Glob uses, so it leaves out files that git ignores. Callers get the known
# list, and wait only for the first one.

MAX_PATHS = 50_000
MAX_AGE_S = 15.0
"""Seconds after which a list is refreshed at the next request; so new files are found a moment later."""
CHUNK_PATHS = 1_000
"""Paths in one chunk: few enough to be searched in a millisecond or two."""


PATH_MARK = "\x01"
NAME_MARK = "\x02"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Paths as one searchable text, each as `PATH_MARK`, folders, `NAME_MARK`, name, line break."""

    text: str
    folded: str
    """Text in lower case, with each character at the same index as in `text`."""


@dataclass(frozen=True, slots=True)
class FileList:
    """Result of one search for files."""

    folder: Path | None = None
    """Folder that the paths are relative to; None before the first list."""
    chunks: Sequence[Chunk] = ()
    """Chunks of paths: the newest files first, then folders, which end in a slash."""
    total: int = 0
    is_partial: bool = False
    """True if there are more files than these."""
    problem: str = ""
    made_at_s: float = field(default=float("-inf"), compare=False)


class FileIndex:
    """Keeps the list of files of the working directory. `run` it in a task; `clock` is a monotonic clock in seconds."""

    def __init__(
        self, paths: PathResolver, *, find: RipgrepFinder = find_ripgrep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.files = FileList()
        self._paths = paths
        self._find = find
        self._clock = clock
        self._wanted = anyio.Event()
        self._made = anyio.Event()
        self._looking = anyio.Lock()

    async def known(self) -> FileList:
        """Return the list; wait only if there is none yet. An old list is refreshed for the next request."""
        while True:
            is_ours = self.files.folder == self._paths.cwd
            if not is_ours or self._clock() - self.files.made_at_s >= MAX_AGE_S:
                self._wanted.set()
            if is_ours:
                return self.files
            await self._made.wait()

    async def fresh(self) -> FileList:
        """Return a list that is not old, and make it if need be; for those that do not `run` the index."""
        async with self._looking:  # others wait for the list that is being made
            if self.files.folder != self._paths.cwd or self._clock() - self.files.made_at_s >= MAX_AGE_S:
                self.files = await self.look()
        return self.files

    async def run(self) -> None:
        """Make the list now and at each request, until cancelled."""
        while True:
            self._wanted = anyio.Event()
            self.files = await self.look()
            made, self._made = self._made, anyio.Event()
            made.set()
            await self._wanted.wait()

    async def look(self) -> FileList:
        """Search the working directory and return a new list."""
        folder = self._paths.cwd
        try:
            request = await to_thread.run_sync(_request, folder, abandon_on_cancel=True)
            found = await search(request, self._find(self._paths))
        except (ToolError, OSError) as exc:
            return FileList(folder, problem=str(exc), made_at_s=self._clock())
        return await to_thread.run_sync(
            _listed, folder, found.stdout, found.is_partial, self._clock(), abandon_on_cancel=True
        )


def _request(folder: Path) -> SearchRequest:
    return SearchRequest(str(folder), "listing", files=Selection.below(folder))


def _listed(folder: Path, stdout: bytes, is_partial: bool, now_s: float) -> FileList:
    return file_list(folder, parse_listing(stdout), is_partial=is_partial, made_at_s=now_s)


def file_list(folder: Path, files: Sequence[str], *, is_partial: bool = False, made_at_s: float = 0.0) -> FileList:
    """Return a list of `files`, relative to `folder`, and of their parent folders.

    Names that a mention cannot hold are left out: those with a quote or invisible characters.
    """
    usable = [path for path in files if path.isprintable() and '"' not in path]
    kept = usable[:MAX_PATHS]
    kept += dict.fromkeys(parent for path in kept for parent in _parents(path))
    chunks = [_chunk(kept[start : start + CHUNK_PATHS]) for start in range(0, len(kept), CHUNK_PATHS)]
    return FileList(folder, chunks, len(kept), is_partial or len(usable) > MAX_PATHS, made_at_s=made_at_s)


def fold_case(text: str) -> str:
    """Return the text in lower case, except for characters whose lower case is longer, such as İ."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _chunk(paths: Sequence[str]) -> Chunk:
    text = "".join(map(_line, paths))
    return Chunk(text, fold_case(text))


def _line(path: str) -> str:
    name = path.rfind("/", 0, -1) + 1
    return f"{PATH_MARK}{path[:name]}{NAME_MARK}{path[name:]}\n"


def _parents(path: str) -> Iterator[str]:
    end = path.rfind("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.rfind("/", 0, end)


# Paths are found by fuzzy search: `@mainpy`, `@faces/terminal`, `@conftset`. Better kinds of matches are tried first,
# until there are enough; names count more than paths. The search runs in the event loop in steps of a few
# milliseconds, so that typing goes on: a thread would hold the interpreter, and could not be stopped.

STEP_S = 0.002
_MAX_OF_A_KIND = 200
"""Most matches of one kind that are ranked, the newest files first."""
_ENOUGH = 5
"""Number of matches; with fewer, misspelt names count as well."""
_MIN_MISSPELT_CHARS = 4
_MIN_SIMILARITY = 78.0
"""Least similarity of a misspelt name in per cent; two swapped letters in a word of eight give 87."""

_Kind: TypeAlias = "re.Pattern[str]"


async def find_paths(files: FileList, typed: str, limit: int) -> list[str]:
    """Return the paths that contain the typed letters in order, the best first; without letters, the newest."""
    wanted = fold_case(typed.removeprefix("./"))
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
    def __init__(self) -> None:
        self._end_s = time.perf_counter() + STEP_S

    async def pause_if_long(self) -> None:
        if time.perf_counter() >= self._end_s:
            await checkpoint()
            self._end_s = time.perf_counter() + STEP_S


def _kinds(wanted: str) -> Iterator[_Kind]:
    """Yield patterns for the kinds of matches, the best first. Each starts with a literal, which is found quickly.

    None of them backtracks: the gap between two letters cannot hold the second of them.
    """
    whole = re.escape(wanted)
    letters = "".join(f"[^{re.escape(letter)}\n]*{re.escape(letter)}" for letter in wanted)
    yield re.compile(f"{NAME_MARK}{whole}")  # the name begins with it
    yield re.compile(f"{whole}[^{NAME_MARK}\n]*\n")  # the name contains it
    if wanted:
        yield re.compile(whole.replace("/", f"/{NAME_MARK}?"))  # the path contains it
        yield re.compile(f"{NAME_MARK}{letters}")
        yield re.compile(f"{PATH_MARK}{letters}")


def _matches(kind: _Kind, chunk: Chunk) -> Iterator[str]:
    position = 0
    while (found := kind.search(chunk.folded, position)) is not None:
        start = chunk.text.rfind(PATH_MARK, 0, found.start() + 1) + 1
        position = chunk.text.find("\n", found.start()) + 1
        yield chunk.text[start : position - 1].replace(NAME_MARK, "")


def _best_first(paths: list[str], wanted: str) -> list[str]:
    """Rank matches of one kind: paths that begin with `wanted`, then those with such a word, then the most similar."""
    if not wanted:
        return paths
    compared = str if "/" in wanted else _name

    def rank(path: str) -> tuple[bool, bool, float]:
        text = compared(path).lower()
        return not path.lower().startswith(wanted), not begins_word(text, wanted), -fuzz.ratio(wanted, text)

    return sorted(paths, key=rank)


def begins_word(text: str, wanted: str) -> bool:
    """True if a word of a text begins with what is wanted."""
    return re.search(rf"(?<![^\W_]){re.escape(wanted)}", text) is not None


def _name(path: str) -> str:
    return path[path.rfind("/", 0, -1) + 1 :]


async def _misspelt(files: FileList, wanted: str, limit: int, step: _Step) -> Iterable[str]:
    scored: list[tuple[float, str]] = []
    for chunk in files.chunks:
        await step.pause_if_long()
        paths = chunk.text.replace(NAME_MARK, "").removesuffix("\n").removeprefix(PATH_MARK).split(f"\n{PATH_MARK}")
        names = [_name(path).lower() for path in paths]
        like = process.extract(
            wanted, names, scorer=fuzz.partial_ratio, score_cutoff=_MIN_SIMILARITY, limit=limit, processor=None
        )
        # a name much shorter than the typed text is a part of it and no misspelling
        scored += [(score, paths[index]) for name, score, index in like if len(name) >= len(wanted) - 1]
    return [path for _, path in sorted(scored, key=lambda pair: -pair[0])]
