"""The folder of a kit while it is filled. Every text is cleaned on its way in, and the digest of each file is kept."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

from panpan.repro.kit.private_words import PrivateWords
from panpan.system.files.folder_tree import walk
from panpan.system.text.terminal_text import without_controls
from panpan.types.dataclass import dataclass

MAX_FILE_BYTES = 5_000_000
"""Largest output that is in a kit; of larger ones only the checksum is."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file of which only the checksum is in the kit."""

    path: str
    size: int
    sha256: str
    reason: str


class Contents:
    """Fills the folder of a kit.

    Args:
        folder: An empty folder.
        words: Private words, which are replaced in every text.
    """

    def __init__(self, folder: Path, words: PrivateWords) -> None:
        self.folder = folder
        self.words = words
        self.left_out: list[LeftOut] = []
        self.cleaned: dict[str, str] = {}
        """SHA-256 that files had before placeholders came into them, by path in the kit."""

    def add_text(self, name: str, text: str) -> None:
        """Add a text file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        clean = self.words.clean_page if is_page(name) else self.words.clean
        path.write_text(clean(text), encoding="utf-8")

    def add_json(self, name: str, value: Any) -> None:
        """Add a JSON file."""
        cleaned = self.words.clean_value(value)
        self.add_text(name, json.dumps(cleaned, indent=1, ensure_ascii=False) + "\n")

    def add_lines(self, name: str, values: Iterable[Any]) -> None:
        """Add a file with a JSON value on each line."""
        lines = (json.dumps(self.words.clean_value(value), ensure_ascii=False) for value in values)
        self.add_text(name, "".join(f"{line}\n" for line in lines))

    def add_table(self, name: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add a CSV file. A cell that a spreadsheet would take for a formula gets an apostrophe in front."""
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *([_cell(str(cell)) for cell in row] for row in rows)])
        self.add_text(name, file.getvalue())

    def add_file(self, name: str, source: Path, *, named: str = "") -> bool:
        """Add a text file of the user or of a run; return False if only its checksum is kept.

        Args:
            name: Path in the kit.
            source: The file.
            named: Path that the manifest tells for a file that is left out.
        """
        size, digest = source.stat().st_size, digest_of(source)
        text = None
        if size <= MAX_FILE_BYTES:
            data = source.read_bytes()
            text = None if b"\0" in data else _decoded(data)
        if text is None:
            reason = "too large" if size > MAX_FILE_BYTES else "no text"
            self.left_out.append(LeftOut(self.words.clean(named or name), size, digest, reason))
            return False
        self.add_text(name, text)
        if digest_of(self.folder / name) != digest:
            self.cleaned[name] = digest
        return True

    def digests(self) -> Mapping[str, tuple[int, str]]:
        """Return size and SHA-256 of each file, by path, sorted."""
        return {name: (path.stat().st_size, digest_of(path)) for name, path in files_in(self.folder)}


def files_in(folder: Path) -> Sequence[tuple[str, Path]]:
    """Return the regular files of a kit with their names in it, sorted by name."""
    paths = [Path(here, name) for here, _, names in walk(folder) for name in names]
    return sorted((path.relative_to(folder).as_posix(), path) for path in paths if path.is_file())


def is_page(name: str) -> bool:
    """True if a file is written in Markdown or HTML, where signs may be escaped."""
    return name.endswith((".md", ".html"))


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _cell(text: str) -> str:
    text = without_controls(text)  # people print such files on terminals
    is_number = text[1:2].isdigit() or text[1:2] == "."
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") and not is_number else text
