"""Draws pages of a PDF: a program of its own, so that a file that breaks the renderer breaks nothing else.

It reads the PDF from its input and the numbers of pages, from 1 on, from its arguments. For each page it writes a
picture, framed; an empty one for a page that cannot be drawn.
"""

import sys
from io import BytesIO

from panpan.documents.framed import framed

MAX_EDGE_PIXELS = 1568
"""As for other pictures, see `read_image`."""
_POINTS_PER_INCH = 72
_MOST_PIXELS_PER_INCH = 200
"""Of small pages, which get no clearer with more."""


def main(pages: list[int]) -> None:
    """Write the pictures of `pages` of the PDF in the standard input to the standard output."""
    import pypdfium2

    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    for number in pages:
        sys.stdout.buffer.write(framed([_drawn(document, number)]))


def _drawn(document: object, number: int) -> bytes:
    try:
        page = document[number - 1]  # type: ignore[index]  # the library has no types
        edge = max(page.get_size())
        scale = min(MAX_EDGE_PIXELS / edge, _MOST_PIXELS_PER_INCH / _POINTS_PER_INCH)
        buffer = BytesIO()
        page.render(scale=scale).to_pil().convert("RGB").save(buffer, "PNG", optimize=False)
        return buffer.getvalue()
    except Exception as exc:  # a damaged page makes the library raise nearly anything; the others may be fine
        print(f"page {number}: {exc}", file=sys.stderr)  # noqa: T201 - the debugging of whoever runs it by hand
        return b""


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]])
