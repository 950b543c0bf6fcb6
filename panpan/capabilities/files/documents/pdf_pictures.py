"""Pages of a PDF as pictures: scans, figures and formulas, of which the text says nothing."""

from collections.abc import Sequence

from panpan.capabilities.files.documents.framed import unframed
from panpan.capabilities.files.documents.prepared_images import prepared_images
from panpan.capabilities.files.documents.read_image import Picture
from panpan.errors import ToolError
from panpan.system.processes.apart import taken_apart
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import ResultContent, TextBlock

MAX_PICTURES = 4
"""Pages that are drawn for one call; a model pays for each as for some thousand words."""
_MAX_BYTES = 100_000_000


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
    module = "panpan.capabilities.files.documents.pdf_renderer"
    drawn = await taken_apart(module, [str(page) for page in pages], data, sandbox, max_bytes=_MAX_BYTES)
    pictures = unframed(drawn.stdout)[: len(pages)]
    content: list[ResultContent] = []
    for number, picture in zip(pages, await prepared_images(pictures, f"a page of {shown}", sandbox), strict=False):
        if isinstance(picture, Picture):
            content += (TextBlock(text=f"page {number}, as it looks:"), picture.block)
    if not content:
        why = "it took too long" if drawn.timed_out else "the file is damaged, or its pages are too large"
        raise ToolError(f"the pages of {shown} cannot be drawn: {why}")
    return content
