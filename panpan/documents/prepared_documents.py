"""Documents that a program of its own prepares: text and pictures of a PDF, and pictures."""

import json
from collections.abc import Sequence

from panpan.documents.read_image import Picture
from panpan.documents.read_pdf import PdfText
from panpan.documents.workers import frame_files, unframe_files
from panpan.errors import ToolError
from panpan.system.processes.sandboxed_worker import WITHIN_S, run_parser
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import ImageBlock, ResultContent, TextBlock

_WORKERS = "panpan.documents.workers"
_MAX_BYTES = 50_000_000


async def images_for_model(
    files: Sequence[bytes], shown: str, sandbox: CommandSandbox, *, within_s: float = WITHIN_S
) -> Sequence[Picture | ToolError]:
    """Return, for each picture, what a model is shown of it, or why that is nothing.

    `files`: of formats that `image_format` knows.
    """
    if not files:
        return []
    try:
        ended = await run_parser(
            _WORKERS, ["images", shown], frame_files(files), sandbox, max_bytes=_MAX_BYTES, within_s=within_s
        )
    except ToolError as error:
        return [error] * len(files)
    why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
    failed = ToolError(f"{shown} cannot be decoded: {why}")
    made = [_read(said, failed) for said in unframe_files(ended.stdout)[: len(files)]]
    return [*made, *[failed] * (len(files) - len(made))]


def _read(said: bytes, failed: ToolError) -> Picture | ToolError:
    """Return what was said of one; what makes no sense was cut off, or written by what got hold of the program."""
    try:
        fields = json.loads(said)
        if "error" in fields:
            return ToolError(str(fields["error"]))
        return Picture(ImageBlock.model_validate(fields["block"]), str(fields["description"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return failed


_MAX_TEXT_BYTES = 10_000_000


async def pdf_text(
    data: bytes, pages: str | None, shown: str, sandbox: CommandSandbox, *, within_s: float = WITHIN_S
) -> PdfText:
    """Return the text of some pages.

    Raises:
        ToolError: It is damaged or encrypted, has no such pages, or takes too much time or memory.
    """
    told = ("pdf_text", json.dumps(pages), shown)
    ended = await run_parser(_WORKERS, told, data, sandbox, max_bytes=_MAX_TEXT_BYTES, within_s=within_s)
    if ended.timed_out or ended.exit_code != 0 or ended.is_truncated:
        why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
        raise ToolError(f"the text of {shown} cannot be read: {why}; try fewer pages, or look at them as pictures")
    said = json.loads(ended.stdout)
    if "error" in said:
        raise ToolError(said["error"])
    return PdfText(**said | {"scans": tuple(said["scans"])})


MAX_PICTURES = 4
"""Pages that are drawn for one call; a model pays for each as for some thousand words."""
_MAX_PICTURE_BYTES = 100_000_000


async def page_pictures(data: bytes, pages: Sequence[int], shown: str, sandbox: CommandSandbox) -> list[ResultContent]:
    """Return pictures of some pages, each behind a line that says which it is.

    Raises:
        ToolError: None of them can be drawn.
    """
    told = ["pdf_pictures", *map(str, pages)]
    drawn = await run_parser(_WORKERS, told, data, sandbox, max_bytes=_MAX_PICTURE_BYTES)
    pictures = unframe_files(drawn.stdout)[: len(pages)]
    content: list[ResultContent] = []
    for number, picture in zip(pages, await images_for_model(pictures, f"a page of {shown}", sandbox), strict=False):
        if isinstance(picture, Picture):
            content += (TextBlock(text=f"page {number}, as it looks:"), picture.block)
    if not content:
        why = "it took too long" if drawn.timed_out else "the file is damaged, or its pages are too large"
        raise ToolError(f"the pages of {shown} cannot be drawn: {why}")
    return content
