"""Pages of a PDF as pictures: scans, figures and formulas, of which the text says nothing."""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

import anyio.to_thread

from panpan.errors import ToolError
from panpan.system.limits import GB, Limits, limited
from panpan.system.process import capture
from panpan.tools.files.read_image import prepare_image
from panpan.types.content import ImageBlock, ResultContent, TextBlock

MAX_PICTURES = 4
"""Pages that are drawn for one call; a model pays for each as for some thousand words."""
_TIME_LIMIT_S = 60.0
_LIMITS = Limits(memory_bytes=2 * GB, cpu_s=int(_TIME_LIMIT_S))
_MAX_BYTES = 100_000_000
_SIZE_BYTES = 4


async def page_pictures(data: bytes, pages: Sequence[int], shown: str) -> list[ResultContent]:
    """Return pictures of some pages, each behind a line that says which it is.

    Args:
        data: The PDF.
        pages: Numbers of the pages, from 1 on.
        shown: Name of the file, for the messages.

    Raises:
        ToolError: None of them can be drawn.
    """
    command = [sys.executable, "-P", "-m", "panpan.tools.files.pdf_renderer", *map(str, pages)]
    with TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        drawn = await capture(
            limited(command, _LIMITS), cwd=Path("/"), timeout_s=_TIME_LIMIT_S, max_bytes=_MAX_BYTES, stdin=file
        )
    content: list[ResultContent] = []
    for number, picture in zip(pages, pictures_in(drawn.stdout), strict=False):
        try:
            block = await anyio.to_thread.run_sync(_block, picture, f"page {number} of {shown}", abandon_on_cancel=True)
        except ToolError:
            continue
        content += (TextBlock(text=f"page {number}, as it looks:"), block)
    if not content:
        why = "it took too long" if drawn.timed_out else "the file is damaged, or its pages are too large"
        raise ToolError(f"the pages of {shown} cannot be drawn: {why}")
    return content


def _block(data: bytes, shown: str) -> ImageBlock:
    return prepare_image(data, shown).block


def pictures_in(output: bytes) -> Sequence[bytes]:
    """Return the pictures that the renderer wrote, as far as it came; a file that got hold of it may write anything."""
    pictures: list[bytes] = []
    at = 0
    while at + _SIZE_BYTES <= len(output):
        size = int.from_bytes(output[at : at + _SIZE_BYTES])
        at += _SIZE_BYTES
        pictures.append(output[at : at + size])
        at += size
    return pictures
