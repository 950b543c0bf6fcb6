"""Programs that take documents apart: each a process of its own, so that a file that breaks it breaks nothing else.

`python -m panpan.documents.workers NAME ARGUMENT…` reads files from its input and writes what came of them.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from io import BytesIO
from typing import Any

from panpan.errors import ToolError

_SIZE_BYTES = 4
_MAX_EDGE_PIXELS = 1568
"""Longest edge, as for other pictures; see `read_image`."""
_POINTS_PER_INCH = 72
_MOST_PIXELS_PER_INCH = 200
"""Highest resolution, for small pages, which get no clearer with more."""


def frame_files(files: Iterable[bytes]) -> bytes:
    """Return several files as one stream: each behind its size."""
    return b"".join(len(data).to_bytes(_SIZE_BYTES) + data for data in files)


def unframe_files(stream: bytes) -> Sequence[bytes]:
    """Return the files of a stream, as far as it came; a file that got hold of its writer may write anything."""
    files: list[bytes] = []
    at = 0
    while at + _SIZE_BYTES <= len(stream):
        size = int.from_bytes(stream[at : at + _SIZE_BYTES])
        at += _SIZE_BYTES
        files.append(stream[at : at + size])
        at += size
    return files


def prepare_images(shown: str) -> None:
    """Write for each picture of a framed input a `Picture`, or `{"error": why}`, as framed JSON."""
    from panpan.documents.read_image import prepare_image

    for data in unframe_files(sys.stdin.buffer.read()):
        said: dict[str, Any]
        try:
            picture = prepare_image(data, shown)
            said = asdict(picture) | {"block": picture.block.model_dump(mode="json")}
        except ToolError as error:
            said = {"error": str(error)}
        sys.stdout.buffer.write(frame_files([json.dumps(said).encode()]))
        sys.stdout.buffer.flush()  # the next job may end the process


def extract_pdf(pages: str, shown: str) -> None:
    """Write the fields of the `PdfText` of a PDF, or `{"error": why}`, as JSON.

    `pages`: as `read_pdf` takes them, in JSON.
    """
    from panpan.documents.read_pdf import read_pdf

    said: dict[str, Any]
    try:
        said = asdict(read_pdf(sys.stdin.buffer.read(), json.loads(pages), shown))
    except ToolError as error:
        said = {"error": str(error)}
    sys.stdout.buffer.write(json.dumps(said).encode())


def draw_pdf(*pages: str) -> None:
    """Write a framed picture of each page of a PDF; an empty one for a page that cannot be drawn."""
    import pypdfium2

    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    for number in pages:
        sys.stdout.buffer.write(frame_files([_drawn(document, int(number))]))


def _drawn(document: object, number: int) -> bytes:
    try:
        page = document[number - 1]  # type: ignore[index]  # the library has no types
        edge = max(page.get_size())
        scale = min(_MAX_EDGE_PIXELS / edge, _MOST_PIXELS_PER_INCH / _POINTS_PER_INCH)
        buffer = BytesIO()
        page.render(scale=scale).to_pil().convert("RGB").save(buffer, "PNG", optimize=False)
        return buffer.getvalue()
    except Exception as exc:  # a damaged page makes the library raise nearly anything; the others may be fine
        print(f"page {number}: {exc}", file=sys.stderr)  # noqa: T201 - the debugging of whoever runs it by hand
        return b""


if __name__ == "__main__":
    workers: Mapping[str, Callable[..., None]] = {
        "images": prepare_images,
        "pdf_text": extract_pdf,
        "pdf_pictures": draw_pdf,
    }
    workers[sys.argv[1]](*sys.argv[2:])
