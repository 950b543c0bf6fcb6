"""Pages of a PDF as pictures: scans, figures and formulas, of which the text says nothing."""

from collections.abc import Sequence

import anyio.to_thread

from panpan.errors import ToolError
from panpan.system.apart import taken_apart
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.tools.files.read_image import prepare_image
from panpan.types.content import ImageBlock, ResultContent, TextBlock

MAX_PICTURES = 4
"""Pages that are drawn for one call; a model pays for each as for some thousand words."""
_MAX_BYTES = 100_000_000
_SIZE_BYTES = 4


async def page_pictures(data: bytes, pages: Sequence[int], shown: str, sandbox: CommandSandbox) -> list[ResultContent]:
    """Return pictures of some pages, each behind a line that says which it is.

    Args:
        data: The PDF.
        pages: Numbers of the pages, from 1 on.
        shown: Name of the file, for the messages.
        sandbox: That of the session's commands.

    Raises:
        ToolError: None of them can be drawn.
    """
    module = "panpan.tools.files.pdf_renderer"
    drawn = await taken_apart(module, [str(page) for page in pages], data, sandbox, max_bytes=_MAX_BYTES)
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
