"""Printed numbers: the commands that a repository names, and the texts before the numbers that they print.

The rule: all of it is read from files, without a run and without a model, so a model that chooses among these cannot
invent a command or a place, and does not see which number would fit. What is not found here is left out.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.dataclass import dataclass

MAX_PLACES = 40
"""Most places of numbers, so that a question fits the window of a small model."""
_MAX_BYTES = 1_000_000
_MAX_CHARS = 120
_RUNNERS = {".py": "python3", ".sh": "sh", ".r": "Rscript", ".jl": "julia"}
_TESTS = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest|setup)\.\w+$")
_CODE = re.compile(r"```[^\n]*\n(.*?)```|`([^`\n]+)`", re.DOTALL)
_PROMPT = re.compile(r"^\s*(?:\$|>|%)\s+")
_PRINTS = re.compile(r"\b(?:print|println|printf|cat|echo|write|puts|disp|log|info|format|message)\b")
_LITERAL = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|\$\{?\w+\}?|%[-+ #0-9.]*[a-zA-Z]")
_PERCENT = re.compile(r"%\}|\}\s*%|%%|\b100\b")
_ESCAPE = re.compile(r"\\[ntr]")
_ENDING = re.compile(r"[\s:=]+$")


@dataclass(frozen=True, slots=True)
class Place:
    """A number that a command prints."""

    command: str
    text: str
    """Text before the number, without the blanks, colons and equals signs at its end."""
    is_percent: bool
    """True if the number is printed as percent."""

    @property
    def words(self) -> str:
        """All that names the number, in small letters."""
        return f"{self.command} {self.text}".lower()


def printed_numbers(top: Path, names: Sequence[str]) -> Sequence[Place]:
    """Return the numbers that the commands of a repository print.

    The commands are those that its README names; if that names none, those that run its scripts.

    Args:
        top: Folder of the repository, canonical.
        names: Its files, relative to it.
    """
    sources = [name for name in names if Path(name).suffix.lower() in _RUNNERS and not _TESTS.search(name)]
    readmes = [name for name in names if "/" not in name and name.lower().startswith("readme")]
    commands = list(dict.fromkeys(line for name in readmes for line in _commands_in(_text_of(top, name), sources)))
    if not commands:
        commands = [f"{_RUNNERS[Path(name).suffix.lower()]} {name}" for name in sorted(sources) if "/" not in name]
    texts = {name: list(_printed_in(_text_of(top, name))) for name in sources}
    places = (
        Place(command, text, is_percent)
        for command in commands
        for name in _files_of(command, sources)
        for text, is_percent in texts[name]
    )
    return list(dict.fromkeys(places))[:MAX_PLACES]


def _text_of(top: Path, name: str) -> str:
    try:
        return clean_for_terminal(read_regular_file(top / name, max_bytes=_MAX_BYTES).decode(errors="replace"))
    except ToolError:
        return ""


def _commands_in(text: str, sources: Sequence[str]) -> Iterator[str]:
    """Yield the lines of code in a text that run a file of the repository."""
    for block in _CODE.finditer(text):
        for line in (block[1] or block[2]).splitlines():
            command = _PROMPT.sub("", line).strip()
            if len(command) <= _MAX_CHARS and len(command.split()) > 1 and _files_of(command, sources):
                yield command


def _files_of(command: str, sources: Sequence[str]) -> Sequence[str]:
    words = {word.removeprefix("./") for word in command.split()}
    return [name for name in sources if name in words]


def _printed_in(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts before numbers in the lines of a program that print, and if the numbers are percent."""
    for line in source.splitlines():
        if not _PRINTS.search(line):
            continue
        is_percent = _PERCENT.search(line) is not None
        for literal in _LITERAL.finditer(line):
            written = literal[1] if literal[1] is not None else literal[2]
            pieces = _PLACEHOLDER.split(written)
            is_followed = line[literal.end() :].lstrip().startswith(",")
            for piece in pieces if len(pieces) == 1 and is_followed else pieces[:-1]:
                text = clean_line(_ENDING.sub("", _ESCAPE.split(piece)[-1])).strip()
                if any(map(str.isalpha, text)) and len(text) <= _MAX_CHARS:
                    yield text, is_percent
