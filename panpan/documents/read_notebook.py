"""A Jupyter notebook as a model reads it: cells with their ids, sources and shortened outputs.

Format: https://nbformat.readthedocs.io/en/latest/format_description.html, version 4. Synchronous.
"""

import json
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from panpan.documents.read_image import image_format
from panpan.documents.read_page import MAX_PAGE_CHARS
from panpan.errors import ToolError
from panpan.system.text.file_text import readable
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MAX_OUTPUT_CHARS = 2_000
_MAX_SOURCE_CHARS = 20_000
_MAX_CELL_CHARS = 30_000
_MAX_IMAGES = 4
_ANSI = compile_late(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """Some cells of a notebook."""

    text: str
    images: tuple[bytes, ...]
    """Pictures that the text names, in that order, as the notebook has them."""
    summary: str


def read_notebook(data: bytes, offset: int, limit: int, shown: str) -> NotebookPage | None:
    """Return the cells from number `offset` on, `limit` at most; None if `data` is not a notebook of version 4.

    Raises:
        ToolError: The notebook has no such cell.
    """
    cells = _cells(data)
    if cells is None:
        return None
    first = max(offset, 1)
    if first > max(len(cells), 1):
        raise ToolError(f"{shown} has only {len(cells)} cells; offset {first} is past its end")
    images: list[bytes] = []
    parts: list[str] = []
    size = 0
    for number, cell in enumerate(cells[first - 1 : first - 1 + limit], first):
        of_cells_before = len(images)
        text = readable(_read_cell(cell, number, images))
        if parts and size + len(text) > MAX_PAGE_CHARS:
            del images[of_cells_before:]
            break
        parts.append(text)
        size += len(text)
    last = first + len(parts) - 1
    summary = f"notebook, {len(cells)} cell{'s' * (len(cells) != 1)}"
    notes = f"({summary.replace(',', ' with')}; NotebookEdit changes one)"
    if last < len(cells):
        summary = f"notebook, cells {first}-{last} of {len(cells)}"
        notes = f"(cells {first}-{last} of {len(cells)} of the notebook; go on with offset={last + 1})"
    return NotebookPage("\n".join([*parts, notes]), tuple(images), summary)


def _cells(data: bytes) -> list[Any] | None:
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    return cells if isinstance(cells, list) and all(isinstance(cell, dict) for cell in cells) else None


def _read_cell(cell: dict[str, Any], number: int, images: list[bytes]) -> str:
    kind = cell.get("cell_type", "unknown")
    cell_id = f", id {cell['id']}" if isinstance(cell.get("id"), str) else ""
    parts = [f"── cell {number}, {kind}{cell_id} ──", _shortened(_joined(cell.get("source")), _MAX_SOURCE_CHARS)]
    outputs = cell.get("outputs")
    if isinstance(outputs, list):
        parts += [_output(output, images) for output in outputs if isinstance(output, dict)]
    return _shortened("\n".join(parts), _MAX_CELL_CHARS)


def _output(output: dict[str, Any], images: list[bytes]) -> str:
    """Return one output as text, and put its picture with the others."""
    bundle = output.get("data")
    if output.get("output_type") == "error":
        traceback = output.get("traceback")
        lines = traceback if isinstance(traceback, list) else [f"{output.get('ename')}: {output.get('evalue')}"]
        label, text = "error", "\n".join(map(str, lines))
    elif isinstance(bundle, dict):
        label, text = "output", _joined(bundle.get("text/plain"))
        for media_type in ("image/png", "image/jpeg"):
            if media_type in bundle:
                text = f"{text}\n{_picture(_joined(bundle[media_type]), images)}".strip()
    else:
        label, text = "output", _joined(output.get("text"))
    return f"── {label}:\n{_shortened(_ANSI.sub('', text), _MAX_OUTPUT_CHARS)}"


def _picture(encoded: str, images: list[bytes]) -> str:
    """Return the text in place of a picture."""
    if len(images) >= _MAX_IMAGES:
        return "(a picture, left out)"
    try:
        data = b64decode(encoded)
    except (Base64Error, ValueError):
        data = b""
    if image_format(data) is None:
        return "(a picture that is damaged)"
    images.append(data)
    return f"(picture {len(images)} below)"


def _joined(value: Any) -> str:
    """Return a text that the format may keep as a list of lines."""
    if isinstance(value, list):
        value = "".join(map(str, value))
    return value if isinstance(value, str) else ""


def _shortened(text: str, max_chars: int) -> str:
    """Return the beginning and the end of a long text; errors are at the end."""
    text = text.rstrip("\n")
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n… ({len(text) - 2 * half:,} characters left out) …\n{text[-half:]}"


CellType: TypeAlias = Literal["code", "markdown", "raw"]

_BLANKS = compile_late(r"[ \t\r\n]*")
_HALF = compile_late("[\ud800-\udfff]")
"""Halves of surrogate pairs: JSON can write one as `\\u…`, and no encoding can."""
_DECODER = json.JSONDecoder()
_OF_CODE_ALONE = frozenset({"outputs", "execution_count"})
_ID_SINCE_MINOR = 5
"""Minor version of the format from which on each cell has an id."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell, and its place in the text."""

    start: int
    end: int
    value: dict[str, Any]
    members: Mapping[str, tuple[int, int]]

    @property
    def id(self) -> str | None:
        """Its id, which cells of older notebooks do not have."""
        found = self.value.get("id")
        return found if isinstance(found, str) else None

    @property
    def kind(self) -> str:
        """Its type, as the file says."""
        return str(self.value.get("cell_type", "unknown"))

    @property
    def lines(self) -> Sequence[str]:
        """The cell for people: its kind and how often it ran, its source, and its number of outputs."""
        count, outputs, source = (self.value.get(key) for key in ("execution_count", "outputs", "source"))
        ran = f" [{count}]" if isinstance(count, int) else ""
        head = f"── {self.kind}{ran}{f', id {self.id}' if self.id is not None else ''} ──"
        text = "".join(map(str, source)) if isinstance(source, list) else str(source or "")
        came = len(outputs) if isinstance(outputs, list) else 0
        return [head, *text.split("\n"), *([f"({came} output{'' if came == 1 else 's'})"] if came else [])]


class NotebookText:
    """The text of a notebook, of which one cell is to be changed.

    Raises:
        ToolError: It is not a notebook of version 4.
    """

    def __init__(self, text: str, shown: str) -> None:
        self._text = text
        self._shown = shown
        try:
            notebook, _ = _DECODER.raw_decode(text, _after_blanks(text, 0))
            members = _members(text, _after_blanks(text, 0))
            cells = notebook["cells"]
            self._start, self._end = members["cells"]
            self.cells: Sequence[Cell] = [_cell(text, *span) for span in _elements(text, self._start)]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ToolError(
                f"{shown} is not a notebook of version 4", advice="change it as a text file, with Edit"
            ) from None
        self._minor = notebook.get("nbformat_minor")
        self._style = _Style.of(text, self._start, has_list=_prefers_lists(cells))

    @property
    def cells_as_text(self) -> str:
        """All cells, for people; without their numbers, which a cell that comes or goes would change."""
        return "".join(f"{line}\n" for cell in self.cells for line in cell.lines)

    def find(self, wanted: str) -> int:
        """Return the place of a cell in `cells`.

        Args:
            wanted: Its id, or its number from 1 on.

        Raises:
            ToolError: There is no such cell, or more than one.
        """
        found = {place for place, cell in enumerate(self.cells) if cell.id == wanted}
        if re.fullmatch(r"[1-9][0-9]{0,6}", wanted) and int(wanted) <= len(self.cells):
            found.add(int(wanted) - 1)
        if len(found) == 1:
            return found.pop()
        count = f"{len(self.cells)} cell{'s' * (len(self.cells) != 1)}"
        if found:
            numbers = ", ".join(str(place + 1) for place in sorted(found))
            raise ToolError(f"{wanted!r} means several cells of {self._shown}: {numbers}; give the other name of one")
        raise ToolError(
            f"{self._shown} has no cell {wanted!r} but {count}", advice="Read it to see their numbers and ids"
        )

    def replace(self, place: int, source: str, kind: CellType | None) -> str:
        """Return the text with another source in a cell; its outputs go, since they are those of the old source."""
        cell = self.cells[place]
        if (kind is not None and kind != cell.kind) or "source" not in cell.members:
            value = _retyped(cell.value, kind or cell.kind, self._style.source(source))
            return self._with((cell.start, cell.end, self._style.written(value, 2)))
        old = cell.value["source"]
        new = source if isinstance(old, str) else self._style.lines(source)
        changes = [(*cell.members["source"], self._style.written(new, 3))]
        if cell.value.get("outputs"):
            changes.append((*cell.members["outputs"], "[]"))
        if cell.value.get("execution_count") is not None:
            changes.append((*cell.members["execution_count"], "null"))
        return self._with(*changes)

    def insert(self, place: int, source: str, kind: CellType) -> str:
        """Return the text with a new cell, which is to be the one at `place`."""
        bare: dict[str, Any] = {"metadata": {}}
        if self._has_ids:
            bare["id"] = self._new_id(place, source)
        cell = _retyped(bare, kind, self._style.source(source))
        written, style = self._style.written(dict(sorted(cell.items())), 2), self._style
        if not self.cells:
            return self._with((self._start, self._end, f"[{style.gap(2)}{written}{style.gap(1)}]"))
        if place == 0:
            start = self.cells[0].start
            return self._with((start, start, f"{written},{style.between}"))
        end = self.cells[place - 1].end
        return self._with((end, end, f",{style.between}{written}"))

    def delete(self, place: int) -> str:
        """Return the text without a cell."""
        if len(self.cells) == 1:
            return self._with((self._start, self._end, "[]"))
        if place == len(self.cells) - 1:
            return self._with((self.cells[place - 1].end, self.cells[place].end, ""))
        return self._with((self.cells[place].start, self.cells[place + 1].start, ""))

    @property
    def _has_ids(self) -> bool:
        is_new_format = isinstance(self._minor, int) and self._minor >= _ID_SINCE_MINOR
        return is_new_format or any(cell.id is not None for cell in self.cells)

    def _new_id(self, place: int, source: str) -> str:
        """Return an id that no cell has; the same for the same change, which is worked out more than once."""
        taken = {cell.id for cell in self.cells}
        seed = f"{len(self.cells)}:{place}:{source}"
        while (made := sha256(seed.encode(errors="replace")).hexdigest()[:8]) in taken:
            seed += "+"
        return made

    def _with(self, *changes: tuple[int, int, str]) -> str:
        text = self._text
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        return text


@dataclass(frozen=True, slots=True)
class _Style:
    """Style in which a notebook is written."""

    unit: str | None
    """Blanks of one level of indentation; None if all of it is on one line."""
    line_break: str
    comma: str
    colon: str
    is_ascii: bool
    """True if other letters are written as `\\u` and four digits."""
    has_list: bool
    """True if sources are lists of lines."""
    undecoded: frozenset[str]
    """Bytes that are no letters, as they are in the text of a damaged file."""

    @classmethod
    def of(cls, text: str, cells_start: int, *, has_list: bool) -> "_Style":
        head = text[:cells_start]
        before_key = head[: head.rfind('"cells"')]
        is_indented = before_key.endswith((" ", "\t", "\n")) and "\n" in before_key[len(before_key.rstrip()) :]
        unit = before_key[before_key.rfind("\n") + 1 :] if is_indented else None
        return cls(
            unit=unit,
            line_break="\r\n" if "\r\n" in text else "\n",
            comma="," if is_indented or not re.search(r'[\]}"0-9], "', text) else ", ",
            colon=": " if re.search(r'"cells"\s*: ', text) else ":",
            is_ascii=text.isascii() and bool(re.search(r"\\u[0-9a-fA-F]{4}", text)),
            has_list=has_list,
            undecoded=frozenset(_HALF.findall(text)),
        )

    @property
    def between(self) -> str:
        """Text between the comma behind a cell and the next one."""
        return self.gap(2) if self.unit is not None else self.comma[1:]

    def gap(self, level: int) -> str:
        """Text before a value on a line of its own."""
        return "" if self.unit is None else self.line_break + self.unit * level

    def source(self, source: str) -> str | list[str]:
        """Return the source of a new cell as a value."""
        return self.lines(source) if self.has_list else source

    def lines(self, source: str) -> list[str]:
        """Return a source as a list of lines, each with its line break."""
        return re.findall(r"[^\n]*\n|[^\n]+", source)

    def written(self, value: Any, level: int) -> str:
        """Return a value as it is written at a level of indentation; its first line begins where it is put."""
        separators = (self.comma, self.colon)
        try:
            made = json.dumps(value, ensure_ascii=self.is_ascii, indent=self.unit, separators=separators)
        except RecursionError:
            raise ToolError(
                "the cell is nested too deeply to be written again", advice="change the file with Edit"
            ) from None
        return _HALF.sub(self._half, made).replace("\n", self.gap(level))

    def _half(self, match: re.Match[str]) -> str:
        """Return half of a letter as a file can contain it: as an escape, unless it is a byte of a damaged file."""
        return match[0] if match[0] in self.undecoded else f"\\u{ord(match[0]):04x}"


def _retyped(cell: Mapping[str, Any], kind: str, source: str | list[str]) -> dict[str, Any]:
    """Return a cell as one of another type."""
    kept = {key: value for key, value in cell.items() if key not in _OF_CODE_ALONE}
    if kind == "code":
        kept.pop("attachments", None)
        kept |= {"execution_count": None, "outputs": []}
    return kept | {"cell_type": kind, "source": source}


def _prefers_lists(cells: Sequence[Any]) -> bool:
    sources = [cell.get("source") for cell in cells]
    return not any(isinstance(source, str) for source in sources)


def _cell(text: str, start: int, end: int) -> Cell:
    value, _ = _DECODER.raw_decode(text, start)
    if not isinstance(value, dict):
        raise TypeError("a cell is an object")
    return Cell(start, end, value, _members(text, start))


def _after_blanks(text: str, start: int) -> int:
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def _members(text: str, start: int) -> dict[str, tuple[int, int]]:
    """Return the ranges of the values of a whole object by key; of a key that is written twice the last counts."""
    members: dict[str, tuple[int, int]] = {}
    at = _after_blanks(text, _opened(text, start, "{"))
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        begin = _after_blanks(text, _after_blanks(text, at) + 1)  # after the colon
        _, end = _DECODER.raw_decode(text, begin)
        members[key] = (begin, end)
        at = _after_comma(text, end)
    return members


def _elements(text: str, start: int) -> list[tuple[int, int]]:
    """Return the ranges of the elements of an array, which is known to be whole."""
    elements: list[tuple[int, int]] = []
    at = _after_blanks(text, _opened(text, start, "["))
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        elements.append((at, end))
        at = _after_comma(text, end)
    return elements


def _opened(text: str, start: int, bracket: str) -> int:
    if text[start] != bracket:
        raise ValueError(f"no {bracket}")
    return start + 1


def _after_comma(text: str, at: int) -> int:
    at = _after_blanks(text, at)
    return _after_blanks(text, at + 1) if text[at] == "," else at
