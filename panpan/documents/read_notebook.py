"""A Jupyter notebook as a model reads it: cells with their ids, sources and shortened outputs.

Format: https://nbformat.readthedocs.io/en/latest/format_description.html, version 4. Synchronous.
"""

import json
import re
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

from panpan.documents.read_image import image_format
from panpan.documents.read_page import MAX_PAGE_CHARS
from panpan.errors import ToolError
from panpan.system.text.file_text import readable
from panpan.types.dataclass import dataclass

_MAX_OUTPUT_CHARS = 2_000
_MAX_SOURCE_CHARS = 20_000
_MAX_CELL_CHARS = 30_000
_MAX_IMAGES = 4
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """Some cells of a notebook."""

    text: str
    images: tuple[bytes, ...]
    """Pictures that the text names, in that order, as the notebook has them."""
    summary: str


def read_notebook(data: bytes, offset: int, limit: int, shown: str) -> NotebookPage | None:
    """Return the cells from number `offset` on, `limit` at most; None where `data` is no notebook of version 4.

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
    """Return what stands in the text for a picture."""
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
    """Return the beginning and, since errors stand there, the end of a long text."""
    text = text.rstrip("\n")
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n… ({len(text) - 2 * half:,} characters left out) …\n{text[-half:]}"
