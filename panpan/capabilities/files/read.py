"""Read: show a file to the model, and note that it has seen it."""

import stat
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.core.effects import Effects
from panpan.core.tool import FileViewer, Tool, ToolContext
from panpan.documents.prepared_documents import (
    MAX_PICTURES,
    images_for_model,
    page_pictures,
    pdf_text,
)
from panpan.documents.read_image import Picture, image_format
from panpan.documents.read_notebook import NotebookPage, read_notebook
from panpan.documents.read_page import read_page
from panpan.documents.read_pdf import PdfText, is_pdf
from panpan.editing.commit import similar_files
from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file, status_of
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.file_text import decode_file
from panpan.types.content import SummaryDisplay, TextBlock
from panpan.types.events import Output, ToolYield

SMALL_BYTES = 100_000
MAX_BYTES = 50_000_000
"""Largest file that is read."""
DEFAULT_LINES = 2_000
Found: TypeAlias = Output | NotebookPage | Literal["PDF", "picture"]
_PDF_LINES_UNUSED = 'a PDF is read by pages; give pages, such as "1-5", and neither offset nor limit'


class ReadInput(BaseModel):
    """Arguments of Read."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    offset: int = Field(default=1, ge=0, description="First line (or notebook cell), from 1")
    limit: int = Field(default=DEFAULT_LINES, ge=1, description="Most lines (or cells)")
    pages: str | None = Field(default=None, description='Of a PDF, such as "1-5"; 20 at most')
    pictures: bool = Field(default=False, description="Of a PDF: show the pages as they look; 4 at most")


class ReadTool(Tool[ReadInput], FileViewer):
    """Show a file: text, picture, PDF or notebook."""

    name = "Read"
    question_template = "Read {title}?"
    input_model = ReadInput
    only_reads: ClassVar[bool] = True
    names_reads: ClassVar[bool] = True
    count_label = ("read", "file")

    def file_call(self, path: str, lines: tuple[int, int] | None) -> tuple[Tool[Any], BaseModel]:
        if lines is None:
            return self, ReadInput(file_path=path)
        return self, ReadInput(file_path=path, offset=lines[0], limit=lines[1] - lines[0] + 1)

    def title(self, args: ReadInput) -> str:
        if args.pages:
            return f"{args.file_path} (pages {args.pages})"
        if args.offset > 1 or args.limit != DEFAULT_LINES:
            first = max(args.offset, 1)
            return f"{args.file_path} (lines {first}-{first + args.limit - 1})"
        return args.file_path

    async def effects(self, args: ReadInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.file_path,))

    async def run(self, args: ReadInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        path, data, found = await anyio.to_thread.run_sync(_look, args, ctx, abandon_on_cancel=True)
        output = await _output_of(found, data, args, ctx.paths.shown(path), ctx.sandbox)
        # Not earlier: a cancelled call has shown the model nothing.
        if len(data) > SMALL_BYTES:
            await anyio.to_thread.run_sync(ctx.seen_files.add, path, data)
        else:  # hashing so little is faster than switching to a thread
            ctx.seen_files.add(path, data)
        yield output


async def _output_of(found: Found, data: bytes, args: ReadInput, shown: str, sandbox: CommandSandbox) -> Output:
    """Return the output for a file. Formats that have to be decoded in a separate process are decoded there."""
    match found:
        case Output():
            return found
        case NotebookPage():
            return await _with_its_pictures(found, shown, sandbox)
        case "PDF":
            return await _with_pages(await pdf_text(data, args.pages, shown, sandbox), data, args, shown, sandbox)
        case "picture":
            (picture,) = await images_for_model([data], shown, sandbox)
            if isinstance(picture, ToolError):
                raise picture
            told = TextBlock(text=f"{shown}: {picture.description}")
            return Output((told, picture.block), SummaryDisplay(text=picture.description))


async def _with_its_pictures(notebook: NotebookPage, shown: str, sandbox: CommandSandbox) -> Output:
    pictures = await images_for_model(notebook.images, f"a picture of {shown}", sandbox)
    blocks = (
        one.block if isinstance(one, Picture) else TextBlock(text=f"(picture {number}: {one})")
        for number, one in enumerate(pictures, 1)
    )
    return Output((TextBlock(text=notebook.text), *blocks), SummaryDisplay(text=notebook.summary))


async def _with_pages(pdf: PdfText, data: bytes, args: ReadInput, shown: str, sandbox: CommandSandbox) -> Output:
    """Return the output for a PDF: its text, and its pages as pictures if asked for or if they have no text."""
    wanted = tuple(range(pdf.first, pdf.last + 1)) if args.pictures else pdf.scans
    count = f"{pdf.total} page{'' if pdf.total == 1 else 's'}"
    part = count if pdf.last - pdf.first + 1 == pdf.total else f"pages {pdf.first}-{pdf.last} of {pdf.total}"
    display = SummaryDisplay(text=f"PDF, {part}")
    if not wanted:
        return Output(pdf.text, display)
    text = TextBlock(text=pdf.text)
    try:
        pictures = await page_pictures(data, wanted[:MAX_PICTURES], shown, sandbox)
    except ToolError as exc:
        if args.pictures:
            raise
        return Output(f"{pdf.text}\n({exc})", display)
    if len(wanted) > MAX_PICTURES:
        more = f'({MAX_PICTURES} pages are drawn at once; go on with pages="{wanted[MAX_PICTURES]}-")'
        pictures.append(TextBlock(text=more))
    return Output((text, *pictures), display)


def _look(args: ReadInput, ctx: ToolContext) -> tuple[Path, bytes, Found]:
    path = ctx.paths.resolve(args.file_path, access="read")
    shown = ctx.paths.shown(path)
    _require_file(path, shown, ctx)
    data = read_regular_file(path, max_bytes=MAX_BYTES)
    return path, data, _found(data, args, path, shown)


def _found(data: bytes, args: ReadInput, path: Path, shown: str) -> Found:
    """Return the output for `data`, or the format that it still has to be decoded as, judged by its content."""
    if is_pdf(data):
        if args.offset > 1 or args.limit != DEFAULT_LINES:
            raise ToolError(_PDF_LINES_UNUSED)
        return "PDF"
    if args.pages is not None or args.pictures:
        raise ToolError(f"{shown} is not a PDF, so it has no pages; use offset and limit")
    if image_format(data):
        return "picture"
    if path.suffix == ".ipynb" and (notebook := read_notebook(data, args.offset, args.limit, shown)):
        return notebook
    file_text = decode_file(data)
    if file_text is None:
        raise ToolError(
            f"{shown} is a binary file of {len(data):,} bytes, which Read cannot show",
            advice="look at it with Bash (file, xxd, strings, or a program that knows its format)",
        )
    page = read_page(file_text, args.offset, args.limit, shown)
    note = "\n(it is not a notebook of version 4, so it is shown as text)" if path.suffix == ".ipynb" else ""
    return Output(f"{page.text}{note}", SummaryDisplay(text=page.summary))


def _require_file(path: Path, shown: str, ctx: ToolContext) -> None:
    try:
        status = status_of(path)
    except (FileNotFoundError, NotADirectoryError) as exc:
        begins = f"the working directory is {ctx.paths.cwd}, look with LS or Glob"
        raise ToolError(f"{shown} does not exist", advice=similar_files(path, ctx) or begins) from exc
    except OSError as exc:
        raise ToolError(f"cannot look at {shown}: {exc.strerror}") from exc
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(
            f"{shown} is a folder, not a file", advice=f"to see the files in it, call LS, or Bash with: ls {shown}"
        )
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{shown} is not a regular file but a device, pipe or socket, which is never opened")
    if status.st_size > MAX_BYTES:
        raise ToolError(
            f"{shown} has {status.st_size:,} bytes, and Read takes at most {MAX_BYTES:,}",
            advice="use Grep, or Bash with head, tail or sed -n, to see parts of it",
        )
