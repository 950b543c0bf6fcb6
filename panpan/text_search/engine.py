"""Running a search: with ripgrep where there is one, else with the slower search in Python.

The rule: ripgrep and the search that replaces it get the same request and print the same form, so that nothing
outside of here knows which of them ran. A search program is started without being asked for, so it is never one that
lies in the workspace; and it is bounded in time and output, with a note in the result where a bound was met.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal, Self, TypeAlias

from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.files.paths import PathResolver, without_workspace
from panpan.system.files.read_file import open_folder
from panpan.system.processes.process import Captured, capture
from panpan.system.text.terminal_text import printable
from panpan.text_search.file_filters import UNKNOWN_TYPE, folder_context
from panpan.types.dataclass import dataclass
from panpan.types.events import VERSION_CONTROL_FOLDERS
from panpan.types.pattern import compile_late

Answer: TypeAlias = Literal["lines", "files", "counts", "listing"]
"""Lines that match, files that hold a match, numbers of matching lines, or names of files whatever is in them."""

MAX_COLUMNS = 2000
"""Most bytes of a line that are printed; the model is shown less."""

_NAMES_TYPE = "panpannames"


@dataclass(frozen=True, slots=True)
class Query:
    """Pattern to find in the files, and lines to show around it."""

    pattern: str = ""
    ignore_case: bool = False
    is_multiline: bool = False
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class Selection:
    """Files of a folder that are searched."""

    file_type: str | None = None
    name_globs: tuple[str, ...] = ()
    """A file's name must match one of these, where there are any; not used together with `file_type`."""
    excluded: tuple[str, ...] = ()
    """Globs of files and folders to leave out."""
    is_in_repository: bool = True
    """A git repository is around the folder; see `file_filters.py`."""
    has_parent_rules: bool = True
    """The .gitignore files above the folder count."""

    @classmethod
    def below(
        cls,
        folder: Path,
        *,
        file_type: str | None = None,
        name_globs: tuple[str, ...] = (),
        excluded: tuple[str, ...] = (),
    ) -> Self:
        """Return the files of an absolute folder that .gitignore does not exclude."""
        around = folder_context(folder)
        return cls(file_type, name_globs, excluded, around.is_in_repository, around.rules is not None)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question to a search program."""

    folder: str
    """Absolute; the search starts here, and the paths in the answer are relative to it."""
    answer: Answer
    query: Query = Query()
    files: Selection = Selection()
    file: str | None = None
    """Name of the one file in the folder to search; None for all of them."""
    is_sorted: bool = False
    """The answer comes in the order of paths, which costs time; a listing comes newest first in any case."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the request whose fields are given in JSON."""
        fields = json.loads(text)
        lists = {name: tuple(fields["files"][name]) for name in ("name_globs", "excluded")}
        parts = {"query": Query(**fields["query"]), "files": Selection(**(fields["files"] | lists))}
        return cls(**(fields | parts))

    def ripgrep_arguments(self) -> list[str]:
        """Return the request as ripgrep takes it."""
        query = self.query
        arguments = ["--no-config", "--no-messages", "--color=never", "--null", *self._selection_arguments()]
        if self.answer == "listing":
            return [*arguments, "--files", "--sortr=modified", "--", "./"]
        arguments += ["--no-heading", "--with-filename", "--crlf", "--engine=auto"]
        arguments += {
            "lines": ["--line-number", f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"],
            "files": ["--files-with-matches"],
            "counts": ["--count"],
        }[self.answer]
        if self.answer == "lines" and (query.before or query.after):
            arguments += [f"--before-context={query.before}", f"--after-context={query.after}"]
        if query.ignore_case:
            arguments.append("--ignore-case")
        if query.is_multiline:
            arguments += ["--multiline", "--multiline-dotall"]
        if self.is_sorted:
            arguments.append("--sort=path")
        return [*arguments, f"--regexp={query.pattern}", "--", f"./{self.file or ''}"]

    def _selection_arguments(self) -> list[str]:
        """Say which files count. A glob that includes beats .gitignore and a type does not, so names come as a type."""
        files = self.files
        arguments = ["--hidden", "--no-ignore-global", "--no-ignore-dot"]
        arguments += [f"--glob=!{name}" for name in (*VERSION_CONTROL_FOLDERS, *files.excluded)]
        if not files.is_in_repository:
            arguments.append("--no-require-git")
        if not files.has_parent_rules:
            arguments.append("--no-ignore-parent")
        if files.file_type is not None:
            arguments.append(f"--type={files.file_type}")
        elif files.name_globs:
            arguments += [f"--type-add={_NAMES_TYPE}:{glob}" for glob in files.name_globs]
            arguments.append(f"--type={_NAMES_TYPE}")
        return arguments


Record: TypeAlias = tuple[bytes, bytes]
"""A path relative to the folder of the search, and a numbered line, a count, or nothing."""

_NUMBERED = compile_late(rb"(\d+)([:-])")
_BINARY_MARKS = (b": binary file matches", b": WARNING: stopped searching binary file")
"""Printed by ripgrep behind a path without a NUL, in place of lines: of a file that was named itself, and of one that
turned out to be binary after it matched."""


def parse_records(stdout: bytes, answer: Answer, is_kept: Callable[[str], bool] | None = None) -> list[Record]:
    """Return the records of an answer that is no listing, sorted by path; `stdout` holds whole records only.

    A path ends at a NUL, so that no name of a file can be taken for the text of a line.
    """
    groups = [(path, [b""]) for path in _paths(stdout)] if answer == "files" else _grouped(stdout)
    if is_kept is not None:
        groups = [group for group in groups if is_kept(os.fsdecode(group[0]))]
    # NUL instead of the slash sorts before everything, so whole names are compared one by one.
    groups.sort(key=lambda group: group[0].replace(b"/", b"\0"))
    return [(path, rest) for path, rests in groups for rest in rests]


def parse_listing(stdout: bytes) -> list[str]:
    """Return the paths of a listing, in its own order."""
    return os.fsdecode(b"\0".join(_paths(stdout))).split("\0") if stdout else []


def _paths(stdout: bytes) -> list[bytes]:
    return stdout.removesuffix(b"\0").removeprefix(b"./").split(b"\0./") if stdout else []


def _grouped(stdout: bytes) -> list[tuple[bytes, list[bytes]]]:
    """Gather the lines by file; a program prints all lines of a file together."""
    groups: list[tuple[bytes, list[bytes]]] = []
    current = None
    for line in stdout.split(b"\n"):
        path, nul, rest = line.partition(b"\0")
        if not nul:
            groups += [(line[2 : line.rindex(mark)], [b""]) for mark in _BINARY_MARKS if mark in line]
            continue
        if path != current:
            current = path
            groups.append((path[2:], []))
        groups[-1][1].append(rest.removesuffix(b"\r"))  # with --crlf every line ends like this
    return groups


def numbered_line(rest: bytes) -> tuple[int, str, str]:
    """Return number, mark and text of a record's line; the mark is `:` for a match and `-` for its context."""
    found = _NUMBERED.match(rest)
    if found is None:
        return 0, ":", " binary from here on, so not shown"
    return int(found[1]), found[2].decode(), rest[found.end() :].decode(errors="replace")


SEARCH_TIMEOUT_S = 60.0
MAX_OUTPUT_BYTES = 4_000_000

_OPEN_FILES = Path("/proc/self/fd")
"""Folder of open files by number (Linux), so that the search starts in the very folder that was opened."""
_HAS_OPEN_FILES = sys.platform == "linux"

_FALLBACK_MAIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from panpan.text_search.fallback import main; main(sys.argv[1])"
)


@dataclass(frozen=True, slots=True)
class Found:
    """Output of a search program."""

    stdout: bytes
    """Whole records only."""
    is_partial: bool
    """True if there is more that is not in `stdout`."""
    notes: tuple[str, ...]
    """Sentences about the search that the reader of the result has to know."""


def find_ripgrep(paths: PathResolver) -> str | None:
    """Return ripgrep's path: the one installed with panpan, else one on PATH that is not in the workspace."""
    beside = Path(sys.executable or "/").with_name("rg")
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("rg", path=without_workspace(os.environ.get("PATH", ""), paths))


RipgrepFinder: TypeAlias = Callable[[PathResolver], str | None]


async def search(request: SearchRequest, ripgrep: str | None) -> Found:
    """Ask ripgrep at this path; None for the search in Python.

    What is larger than `MAX_OUTPUT_BYTES` is asked for again in the order of paths, so that the part that is kept is
    the same each time.

    Raises:
        ToolError: The pattern, type or glob is wrong, or the program cannot be started.
    """
    captured = await _run(request, ripgrep)
    if captured.is_truncated and request.answer != "listing" and not request.is_sorted:
        captured = await _run(replace(request, is_sorted=True), ripgrep)
    notes = []
    if captured.timed_out:
        notes.append(f"stopped after {SEARCH_TIMEOUT_S:.0f} s: results are missing; search a smaller folder")
    elif not captured.is_truncated and captured.exit_code not in (0, 1):
        if captured.exit_code != 2 or captured.stderr.strip():
            raise ToolError(_refusal(captured))
        notes.append("some files or folders could not be read")
    if ripgrep is None:
        notes.append("ripgrep is not installed, so the slower built-in search ran")
    is_partial = captured.is_truncated or captured.timed_out
    stdout = captured.stdout
    if is_partial:
        end = b"\n" if request.answer in ("lines", "counts") else b"\0"
        stdout = stdout[: stdout.rfind(end) + 1]
    return Found(stdout, is_partial, tuple(notes))


async def _run(request: SearchRequest, ripgrep: str | None) -> Captured:
    argv = [ripgrep, *request.ripgrep_arguments()] if ripgrep else _fallback_argv(request)
    try:
        folder = open_folder(Path(request.folder))
    except OSError as exc:
        raise ToolError(f"cannot search {request.folder}: {exc.strerror}; look at what is there now") from exc
    try:
        return await capture(
            argv,
            cwd=_OPEN_FILES / str(folder) if _HAS_OPEN_FILES else Path(request.folder),
            env=child_environment(),
            timeout_s=SEARCH_TIMEOUT_S,
            max_bytes=MAX_OUTPUT_BYTES,
        )
    finally:
        os.close(folder)


def _fallback_argv(request: SearchRequest) -> list[str]:
    """Run the search as a process of its own: a regular expression that runs away must not hold up everything else.

    `-I` keeps modules of the workspace out of it, which is its working directory.
    """
    package_parent = Path(__file__).parents[3]
    return [sys.executable, "-I", "-c", _FALLBACK_MAIN, str(package_parent), json.dumps(asdict(request))]


def _refusal(captured: Captured) -> str:
    """Return the program's own words, without what its two engines say twice."""
    lines = captured.stderr.decode(errors="replace").removeprefix("rg: ").strip().split("\n")
    rules = [index for index, line in enumerate(lines) if line.startswith("~~~")]
    if len(rules) == 2:
        lines = lines[rules[0] + 1 : rules[1]]
    reason = "\n".join(lines)[:2000]
    if reason.startswith(UNKNOWN_TYPE):
        return f'the search cannot run: {reason}\nleave the type out and give a glob such as "*.ext"'
    return f"the search cannot run: {reason}\nwrite \\( \\[ \\{{ for the characters themselves"


MAX_RESULT_CHARS = 30_000
MAX_LINE_CHARS = 500


def cut_line(text: str) -> str:
    """Return a line of a file, shortened where it is very long."""
    return text if len(text) <= MAX_LINE_CHARS else f"{text[:MAX_LINE_CHARS]} [line cut]"


@dataclass(frozen=True, slots=True)
class PathPrefix:
    """Makes paths that are relative to the folder of a search relative to the working directory."""

    prefix: str

    @classmethod
    def of(cls, folder: Path, cwd: Path) -> "PathPrefix":
        """Return the prefix for `folder`; the absolute one where it is not below `cwd`."""
        if folder == cwd:
            return cls("")
        text = str(folder.relative_to(cwd)) if folder.is_relative_to(cwd) else str(folder)
        return cls(f"{text.rstrip('/')}/")

    def shown(self, relative: str | bytes) -> str:
        """Return `relative` as the model can hand it to another tool."""
        return printable(f"{self.prefix}{os.fsdecode(relative)}")


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines of a list."""

    lines: tuple[str, ...]
    note: str
    """Tells what is left out, and how to see it; empty if nothing is."""


def page_of(total: int, line: Callable[[int], str], *, offset: int, limit: int, is_partial: bool, noun: str) -> Page:
    """Return the lines from `offset` on, as many as fit, but at most `limit`, unless that is 0.

    Args:
        total: Number of lines to choose from.
        line: Returns the line with a number; called for those only that are shown.
        offset: The first to show, from 0.
        limit: Most lines to show; 0 for as many as fit.
        is_partial: Whether there are more than `total`.
        noun: Name of the lines, in the plural.
    """
    end = total if limit == 0 else min(total, offset + limit)
    lines: list[str] = []
    room = MAX_RESULT_CHARS
    for number in range(offset, end):
        text = line(number)
        room -= len(text) + 1
        if room < 0 and lines:
            break
        lines.append(text)
    shown_end = offset + len(lines)
    if not lines:
        return Page((), f"there are {total:,} {noun}, so none from offset {offset:,} on" if total else "")
    of_all = f"more than {total:,}" if is_partial else f"{total:,}"
    if shown_end < total or is_partial:
        return Page(
            tuple(lines),
            f"{noun} {offset + 1:,}-{shown_end:,} of {of_all}; offset={shown_end} shows more, or search for less",
        )
    return Page(tuple(lines), f"{noun} {offset + 1:,}-{shown_end:,} of {of_all}" if offset else "")


def with_notes(lines: tuple[str, ...], notes: tuple[str, ...]) -> str:
    """Return a result: its lines, and each note in brackets on a line of its own."""
    return "\n".join([*lines, *(f"[{note}]" for note in notes if note)])
