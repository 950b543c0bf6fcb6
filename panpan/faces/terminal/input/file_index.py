"""The files of the workspace, for completion: listed in the background, and found by what is typed of them."""

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
from panpan.text_search.engine import RipgrepFinder, find_ripgrep, search
from panpan.text_search.ignore_rules import surroundings_of
from panpan.text_search.records import parse_listing
from panpan.text_search.request import SearchRequest
from panpan.types.dataclass import dataclass

MAX_PATHS = 50_000
MAX_AGE_S = 15.0
"""An older list is made again when somebody asks; so files that appear meanwhile are found a moment later."""
CHUNK_PATHS = 1_000
"""Few enough to be searched in a millisecond or two."""


PATH_MARK = "\x01"
NAME_MARK = "\x02"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some paths as one text, which can be searched at once: `PATH_MARK`, folders, `NAME_MARK`, name, line break."""

    text: str
    folded: str
    """In lower case, each character where it is in `text`."""


@dataclass(frozen=True, slots=True)
class FileList:
    """What was found at one time."""

    folder: Path | None = None
    """Where the paths start from; None before the first list."""
    chunks: Sequence[Chunk] = ()
    """The newest files first, then folders, which end in a slash."""
    total: int = 0
    is_partial: bool = False
    """Whether there are more files than these."""
    problem: str = ""
    """Why there is no list."""
    made_at_s: float = field(default=float("-inf"), compare=False)


class FileIndex:
    """Keeps the list. `run` it in a task.

    Args:
        paths: Knows the workspace; the list is of the working directory.
        find: Says which ripgrep to run.
        clock: Seconds that only grow.
    """

    def __init__(
        self, paths: PathResolver, *, find: RipgrepFinder = find_ripgrep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.files = FileList()
        self._paths = paths
        self._find = find
        self._clock = clock
        self._wanted = anyio.Event()
        self._made = anyio.Event()

    async def known(self) -> FileList:
        """Return the list; waits only while there is none of the working directory. An old one is made again."""
        while True:
            is_ours = self.files.folder == self._paths.cwd
            if not is_ours or self._clock() - self.files.made_at_s >= MAX_AGE_S:
                self._wanted.set()
            if is_ours:
                return self.files
            await self._made.wait()

    async def run(self) -> None:
        """Make the list now and whenever it is wanted, until cancelled."""
        while True:
            self._wanted = anyio.Event()
            self.files = await self.look()
            made, self._made = self._made, anyio.Event()
            made.set()
            await self._wanted.wait()

    async def look(self) -> FileList:
        """Return what is there now."""
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
    surroundings = surroundings_of(folder)
    return SearchRequest(
        folder=str(folder),
        answer="listing",
        is_in_repository=surroundings.is_in_repository,
        has_parent_rules=surroundings.rules is not None,
    )


def _listed(folder: Path, stdout: bytes, is_partial: bool, now_s: float) -> FileList:
    return file_list(folder, parse_listing(stdout), is_partial=is_partial, made_at_s=now_s)


def file_list(folder: Path, files: Sequence[str], *, is_partial: bool = False, made_at_s: float = 0.0) -> FileList:
    """Return a list of `files`, relative to `folder`, and of the folders that they lie in.

    Names that a mention cannot hold are left out: with a quote, or with what cannot be seen.
    """
    usable = [path for path in files if path.isprintable() and '"' not in path]
    kept = usable[:MAX_PATHS]
    kept += dict.fromkeys(parent for path in kept for parent in _parents(path))
    chunks = [_chunk(kept[start : start + CHUNK_PATHS]) for start in range(0, len(kept), CHUNK_PATHS)]
    return FileList(folder, chunks, len(kept), is_partial or len(usable) > MAX_PATHS, made_at_s=made_at_s)


def folded(text: str) -> str:
    """Return the lower case; where that is longer (as of İ), only of what keeps its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _chunk(paths: Sequence[str]) -> Chunk:
    text = "".join(map(_line, paths))
    return Chunk(text, folded(text))


def _line(path: str) -> str:
    name = path.rfind("/", 0, -1) + 1
    return f"{PATH_MARK}{path[:name]}{NAME_MARK}{path[name:]}\n"


def _parents(path: str) -> Iterator[str]:
    end = path.rfind("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.rfind("/", 0, end)


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
