"""Programs that take documents apart: each a process of its own, so that a file that breaks it breaks nothing else.

`python -m panpan.documents.workers NAME ARGUMENT…` reads files from its input and writes what came of them.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from io import BytesIO
from typing import Any

from panpan.documents.read_image import Picture
from panpan.documents.read_pdf import PdfText
from panpan.errors import ToolError
from panpan.system.processes.sandboxed_worker import WITHIN_S, run_parser
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import ImageBlock, ResultContent, TextBlock

_SIZE_BYTES = 4
_MAX_EDGE_PIXELS = 1568
"""As for other pictures, see `read_image`."""
_POINTS_PER_INCH = 72
_MOST_PIXELS_PER_INCH = 200
"""Of small pages, which get no clearer with more."""


def framed(files: Iterable[bytes]) -> bytes:
    """Return several files as one stream: each behind its size."""
    return b"".join(len(data).to_bytes(_SIZE_BYTES) + data for data in files)


def unframed(stream: bytes) -> Sequence[bytes]:
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

    for data in unframed(sys.stdin.buffer.read()):
        said: dict[str, Any]
        try:
            picture = prepare_image(data, shown)
            said = asdict(picture) | {"block": picture.block.model_dump(mode="json")}
        except ToolError as error:
            said = {"error": str(error)}
        sys.stdout.buffer.write(framed([json.dumps(said).encode()]))
        sys.stdout.buffer.flush()  # the next one may end the program


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
        sys.stdout.buffer.write(framed([_drawn(document, int(number))]))


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


_WORKERS = "panpan.documents.workers"
_MAX_BYTES = 50_000_000


async def prepared_images(
    files: Sequence[bytes], shown: str, sandbox: CommandSandbox, *, within_s: float = WITHIN_S
) -> Sequence[Picture | ToolError]:
    """Return, for each picture, what a model is shown of it, or why that is nothing.

    `files`: of formats that `image_format` knows.
    """
    if not files:
        return []
    try:
        ended = await run_parser(
            _WORKERS, ["images", shown], framed(files), sandbox, max_bytes=_MAX_BYTES, within_s=within_s
        )
    except ToolError as error:
        return [error] * len(files)
    why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
    failed = ToolError(f"{shown} cannot be decoded: {why}")
    made = [_read(said, failed) for said in unframed(ended.stdout)[: len(files)]]
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
    pictures = unframed(drawn.stdout)[: len(pages)]
    content: list[ResultContent] = []
    for number, picture in zip(pages, await prepared_images(pictures, f"a page of {shown}", sandbox), strict=False):
        if isinstance(picture, Picture):
            content += (TextBlock(text=f"page {number}, as it looks:"), picture.block)
    if not content:
        why = "it took too long" if drawn.timed_out else "the file is damaged, or its pages are too large"
        raise ToolError(f"the pages of {shown} cannot be drawn: {why}")
    return content
