"""Finding the numbers of claims after a run: in what it printed, or in files that it wrote.

The rule: files and patterns are a stranger's. Files are read only in the folder of the run and up to a size, and
patterns run in a process of their own for a bounded time. Each number that is not found has a sentence that says why.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from panpan.errors import ToolError
from panpan.repro.checking.result_files import Found, number_in, numbers_in_csv, numbers_in_json, quoted
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
_END_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class _Text:
    """A text in which patterns are looked for."""

    text: str
    name: str
    """For problems."""


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
    by_file: dict[tuple[str, str], list[int]] = {}
    for index, extract in enumerate(extracts):
        by_file.setdefault((extract.kind, extract.path), []).append(index)
    found: dict[int, Found] = {}
    for (_, name), indexes in by_file.items():  # one after the other, so that only one file is in memory
        wanted = [extracts[index] for index in indexes]
        read = await to_thread.run_sync(_prepared, wanted, name, folder, output)
        numbers = await _search(read, wanted, sandbox, within_s) if isinstance(read, _Text) else read
        found |= zip(indexes, numbers, strict=True)
    return [found[index] for index in range(len(extracts))]


def _prepared(extracts: Sequence[Extract], name: str, folder: Path, output: Path) -> Sequence[Found] | _Text:
    """Return the numbers of one file, or its text if patterns have to find them."""
    data = _read(folder, name) if name else _read_output(output)
    if isinstance(data, Found):
        return [data] * len(extracts)
    shown = clean_line(name)
    if extracts[0].kind == "json":
        return numbers_in_json(data, shown, [extract.at or "" for extract in extracts])
    if extracts[0].kind == "csv":
        return numbers_in_csv(data, shown, extracts)
    return _Text(without_controls(data.decode("utf-8", errors="replace")), shown or "the output")


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


async def _search(
    text: _Text, extracts: Sequence[Extract], sandbox: CommandSandbox, within_s: float
) -> Sequence[Found]:
    """Look for patterns. One that takes too long costs its worker; another one goes on with the rest."""
    patterns = [extract.output or extract.match or "" for extract in extracts]
    found: list[Found] = []
    while len(found) < len(patterns):
        rest = patterns[len(found) :]
        answers, problem = await _asked(text, rest, sandbox, within_s)
        found += [_result(text, pattern, answer) for pattern, answer in zip(rest, answers, strict=False)]
        if len(answers) < len(rest):
            found.append(Found(problem=problem))
    return found


async def _asked(
    text: _Text, patterns: Sequence[str], sandbox: CommandSandbox, within_s: float
) -> tuple[Sequence[object], str]:
    """Return the answers of a worker as far as it came, and the problem with the next."""
    told = json.dumps({"text": text.text, "patterns": patterns}).encode()
    try:
        ended = await run_parser(_WORKER, (), told, sandbox, max_bytes=_MAX_ANSWER_BYTES, within_s=within_s)
    except ToolError as error:
        return [], f"patterns cannot be looked for: {clean_line(str(error))}"
    *lines, _ = ended.stdout.split(b"\n")  # what comes behind the last line feed was cut off
    answers = [json.loads(line) for line in lines[: len(patterns)]]
    pattern = quoted(patterns[min(len(answers), len(patterns) - 1)])
    return answers, f"the pattern {pattern} takes more than {within_s:g} s or too much memory; make it simpler"


def _result(text: _Text, pattern: str, answer: object) -> Found:
    if not isinstance(answer, str):
        return Found(problem=f"{text.name} has nothing that fits the pattern {quoted(pattern)}{_end_of(text.text)}")
    return number_in(answer, f"the match of {quoted(pattern)} in {text.name}")


def _end_of(text: str) -> str:
    last = next((line for line in reversed(text[-_END_CHARS:].split("\n")) if line.strip()), "")
    return f"; it ends with {quoted(last)}" if last else "; it is empty"
