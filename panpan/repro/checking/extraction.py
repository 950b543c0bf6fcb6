"""Finding the numbers of claims after a run: in what it printed, or in files that it wrote.

The rule: files and patterns are a stranger's. Files are read only in the folder of the run and up to a size, and
patterns run in a process of their own for a bounded time. Each number that is not found has a sentence that says why.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from panpan.errors import ToolError
from panpan.repro.checking.found import Found, number_in, quoted
from panpan.repro.checking.result_files import number_in_csv, number_in_json
from panpan.repro.claims.claim import Extract
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.read_file import read_regular_file
from panpan.system.processes.sandboxed_worker import run_parser
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.terminal_text import clean_line, size_text, without_controls
from panpan.types.dataclass import dataclass

_MAX_BYTES = 20_000_000
"""Most bytes of a file that are read."""
_WITHIN_S = 10.0
_WORKER = "panpan.repro.checking.pattern_worker"
_MAX_ANSWER_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class _Search:
    """A pattern to look for in a text."""

    pattern: str
    text: str
    name: str
    """Name of the text, for problems."""


async def find_numbers(
    extracts: Sequence[Extract], folder: Path, output: Path, sandbox: CommandSandbox, *, within_s: float = _WITHIN_S
) -> Sequence[Found]:
    """Return the number of each extract after one run.

    Args:
        extracts: The places; several claims may have one run.
        folder: Folder of the run, canonical.
        output: File with all that the command printed.
        sandbox: For the process that looks for patterns.
        within_s: Most seconds for one pattern.
    """
    prepared = await to_thread.run_sync(_prepared, extracts, folder, output)
    searches = [one for one in prepared if isinstance(one, _Search)]
    found = iter(await _search(searches, sandbox, within_s))
    return [next(found) if isinstance(one, _Search) else one for one in prepared]


def _prepared(extracts: Sequence[Extract], folder: Path, output: Path) -> Sequence[Found | _Search]:
    """Read the files, each once; answer what needs no pattern."""
    files: dict[str, bytes | Found] = {}
    made: list[Found | _Search] = []
    for extract in extracts:
        name = extract.path
        if name not in files:
            files[name] = _read(folder, name) if name else _read_output(output)
        data = files[name]
        made.append(data if isinstance(data, Found) else _one(extract, data, clean_line(name)))
    return made


def _one(extract: Extract, data: bytes, name: str) -> Found | _Search:
    if extract.json_file is not None:
        return number_in_json(data, name, extract.at or "")
    if extract.csv is not None:
        return number_in_csv(data, name, extract)
    text = without_controls(data.decode("utf-8", errors="replace"))
    return _Search(extract.output or extract.match or "", text, name or "the output")


def _read(folder: Path, name: str) -> bytes | Found:
    shown = clean_line(name)
    try:
        path = canonical_path(folder / name)
        if not is_below(path, folder):
            return Found(problem=f"{shown} is not in the folder of the run")
        if path.exists() and not path.is_file():
            return Found(problem=f"{shown} is no regular file")
        size = path.stat().st_size
        if size > _MAX_BYTES:
            most = size_text(_MAX_BYTES)
            return Found(problem=f"{shown} is too large ({size_text(size)}); at most {most} are read")
        return read_regular_file(path, max_bytes=_MAX_BYTES)
    except FileNotFoundError:
        return Found(problem=f"{shown} is missing after the run; the command did not write it")
    except OSError as error:
        return Found(problem=f"{shown} cannot be read: {error.strerror}")
    except ToolError as error:
        return Found(problem=f"{shown} cannot be read: {clean_line(str(error))}")


def _read_output(path: Path) -> bytes | Found:
    try:
        return read_regular_file(path, max_bytes=_MAX_BYTES, follow_symlinks=True)
    except ToolError as error:
        return Found(problem=f"the output cannot be read: {clean_line(str(error))}")


async def _search(searches: Sequence[_Search], sandbox: CommandSandbox, within_s: float) -> Sequence[Found]:
    """Look for patterns. One that takes too long costs its worker; another one goes on with the rest."""
    found: list[Found] = []
    while len(found) < len(searches):
        rest = searches[len(found) :]
        answers, problem = await _asked(rest, sandbox, within_s)
        found += [_result(search, answer) for search, answer in zip(rest, answers, strict=False)]
        if len(answers) < len(rest):
            found.append(Found(problem=problem))
    return found


async def _asked(searches: Sequence[_Search], sandbox: CommandSandbox, within_s: float) -> tuple[list[object], str]:
    """Return the answers of a worker as far as it came, and the problem with the next."""
    indexes: dict[str, int] = {}
    jobs = [(indexes.setdefault(search.text, len(indexes)), search.pattern) for search in searches]
    told = json.dumps({"texts": list(indexes), "jobs": jobs}).encode()
    try:
        ended = await run_parser(_WORKER, (), told, sandbox, max_bytes=_MAX_ANSWER_BYTES, within_s=within_s)
    except ToolError as error:
        return [], f"patterns cannot be looked for: {clean_line(str(error))}"
    *lines, _ = ended.stdout.split(b"\n")  # what comes behind the last line feed was cut off
    answers = [json.loads(line) for line in lines[: len(searches)]]
    pattern = quoted(searches[min(len(answers), len(searches) - 1)].pattern)
    return answers, f"the pattern {pattern} takes more than {within_s:g} s or too much memory; make it simpler"


def _result(search: _Search, answer: object) -> Found:
    if not isinstance(answer, str):
        return Found(
            problem=f"{search.name} has nothing that fits the pattern {quoted(search.pattern)}{_end_of(search)}"
        )
    return number_in(answer, f"the match of {quoted(search.pattern)} in {search.name}")


def _end_of(search: _Search) -> str:
    last = next((line for line in reversed(search.text[-10_000:].split("\n")) if line.strip()), "")
    return f"; it ends with {quoted(last)}" if last else "; it is empty"
