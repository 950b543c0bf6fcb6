"""WebFetch: read a page of the web.

The rule: text from a page is between its marks, and so is what a small model says of it. Everything around the marks is
panpan's own.
"""

from collections.abc import AsyncGenerator, Callable
from functools import cache
from importlib.resources import files
from typing import ClassVar, Literal, Protocol

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.web.web_pages import MAX_SHOWN_CHARS, FetchRequest, WebPage, WebPages, mark_page, to_ascii
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import PanpanError, ToolError
from panpan.session.budget.budget import Budget
from panpan.session.one_shot import Question, ask_model, small_model
from panpan.session.setup import SessionSetup
from panpan.system.text.terminal_text import clean_line
from panpan.system.web.url_guard import Authority, plain_url
from panpan.types.content import SummaryDisplay, TextBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, ToolYield
from panpan.types.messages import AssistantMessage

# The pieces that follow each other by `next_offset` make up the whole text, each character once.

PAGE_CHARS = 50_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text, from `start` to before `end`, in characters."""

    text: str
    start: int
    end: int
    total: int

    @property
    def next_offset(self) -> int | None:
        """Offset of the next piece; None if this is the last."""
        return self.end if self.end < self.total else None


def piece_at(text: str, offset: int, most: int = PAGE_CHARS) -> Piece:
    """Return at most `most` characters from `offset` on; they end between lines, or words, where that costs few."""
    start, end = min(offset, len(text)), min(offset + most, len(text))
    if end < len(text):
        least = end - most // 10
        end = next((found + 1 for mark in ("\n", " ") if (found := text.rfind(mark, least, end)) >= 0), end)
    return Piece(text[start:end], start, end, len(text))


class PageReader(Protocol):
    """Answers questions from the text of pages."""

    most_chars: int
    """Most characters of a page that it is given at once."""

    async def answer(self, prompt: str, page_text: str) -> str:
        """Return the answer of the page to a question.

        Raises:
            ToolError: Nobody could answer; half a sentence that says why.
        """
        ...


class WebFetchInput(BaseModel):
    """Arguments of WebFetch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(min_length=1)
    prompt: str = Field(default="", max_length=4_000)
    offset: int = Field(default=0, ge=0)
    raw: bool = Field(default=False, description="Keep navigation")
    wait: float = Field(default=0, ge=0, le=30, description="Seconds for scripts, in a browser")
    scroll: Literal["none", "smart", "full"] = "none"
    pages: str | None = Field(default=None, description="Of a PDF, like 3-7")


class WebFetchTool(Tool[WebFetchInput]):
    """Read a page of the web."""

    name = "WebFetch"
    question_template = "Fetch {title}?"
    input_model = WebFetchInput
    timeout_s: ClassVar[float | None] = 300.0
    """Many calls for one host wait for each other."""

    def __init__(self, pages: WebPages | None = None, reader: PageReader | None = None) -> None:
        self._pages = pages
        self._reader = reader

    def may_run_in_parallel(self, args: WebFetchInput) -> bool:
        return True

    def title(self, args: WebFetchInput) -> str:
        return args.url

    async def effects(self, args: WebFetchInput, ctx: ToolContext) -> Effects:
        return Effects(urls=(args.url,))

    async def describe(self, args: WebFetchInput, ctx: ToolContext) -> str:
        plain = plain_url(args.url) if self._pages is None else self._pages.plain(args.url)
        is_foreign = any(label.startswith("xn--") for label in plain.host.split("."))
        other = ", a name with other letters than they may look like" if is_foreign else ""
        return f"the request goes to {Authority(plain.host, plain.address, plain.port)}{other}"

    async def run(self, args: WebFetchInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if self._pages is None:
            raise ToolError("there is no session to ask for pages in")
        request = FetchRequest(args.url, args.wait, args.scroll, args.raw, args.pages)
        page = await self._pages.page(request, may_be_kept=args.offset > 0)
        text = _text_of(page)
        if args.offset and args.offset >= len(text):
            raise ToolError(f"offset is {args.offset:,}, but the page has {len(text):,} characters")
        if args.prompt and text and _is_whole(page):
            told = await self._answered(args, page, text)
        else:
            told = _piece_told(page, piece_at(text, args.offset))
        summary = f"{page.status}, {len(text):,} characters{f': {clean_line(page.title)}' if page.title else ''}"
        content = told if page.picture is None else (TextBlock(text=told), page.picture)
        yield Output(content, SummaryDisplay(text=summary), is_error=not _is_whole(page))

    async def _answered(self, args: WebFetchInput, page: WebPage, text: str) -> str:
        """Return a small model's answer to the prompt, or the page if none can answer."""
        if self._reader is None:
            why = "there is no small model in this session"
        else:
            piece = piece_at(text, args.offset, self._reader.most_chars)
            try:
                answer = await self._reader.answer(args.prompt, mark_page(piece.text, page.url))
            except ToolError as error:
                why = str(error)
            else:
                extent = _extent(piece) if piece.start or piece.next_offset else "the page"
                note = f"[a small model answers from {extent}; look at the page where it matters]"
                return "\n".join((_head(page), note, mark_page(answer, page.url), *_onward(piece)))
        told = _piece_told(page, piece_at(text, args.offset))
        return f"[nobody answered the prompt: {why}; this is the page]\n{told}"


def _piece_told(page: WebPage, piece: Piece) -> str:
    if page.picture is not None:
        return _head(page)
    body = mark_page(piece.text, page.url) if piece.text else "[it has no text]"
    return "\n".join((_head(page), body, *_onward(piece)))


def _head(page: WebPage) -> str:
    """Return panpan's own lines about the page."""
    lines = [f"{_plain(to_ascii(page.url, MAX_SHOWN_CHARS))} (status {page.status}, {_plain(page.what)})"]
    if page.obstacle is not None:
        is_not = "this is not all of the page" if page.obstacle.is_partial else "this is not the page"
        lines.append(f"[{is_not}: {_plain(page.obstacle.reason)}]")
    return "\n".join((*lines, *(f"[{_plain(note)}]" for note in page.notes)))


def _text_of(page: WebPage) -> str:
    """Return the text of the page, below its title."""
    text, title = page.text.strip("\n"), clean_line(page.title)
    return f"Title: {title}\n\n{text}" if title and text else text


def _is_whole(page: WebPage) -> bool:
    return page.obstacle is None or page.obstacle.is_partial


def _onward(piece: Piece) -> list[str]:
    if piece.next_offset is None:
        return [f"[{_extent(piece)}]"] if piece.start else []
    return [f"[{_extent(piece)}; go on with offset={piece.next_offset}]"]


def _extent(piece: Piece) -> str:
    return f"characters {piece.start:,} to {piece.end:,} of {piece.total:,}"


def _plain(text: str) -> str:
    """Return text that may be a server's on one line, without the beginning of a tag."""
    return clean_line(text).replace("<", "&lt;")


MOST_CHARS = 120_000
"""Most characters of a page: a third of a window of 200,000 tokens, and in Chinese most of it."""
MAX_ANSWER_CHARS = 12_000
_MAX_OUTPUT_TOKENS = 4_000
_TIME_LIMIT_S = 90.0


class PageAnswers:
    """Implements `PageReader`."""

    most_chars = MOST_CHARS

    def __init__(self, setup: SessionSetup, budget: Budget, keep: Callable[[AssistantMessage], None]) -> None:
        self._setup = setup
        self._budget = budget
        self._keep = keep

    async def answer(self, prompt: str, page_text: str) -> str:
        """Return the answer of the page to a question.

        Raises:
            ToolError: Nobody could answer; half a sentence that says why.
        """
        model = await to_thread.run_sync(small_model, self._setup)
        text = f"{page_text}\n\n<question>\n{prompt}\n</question>"
        question = Question(_system_prompt(), text, _MAX_OUTPUT_TOKENS, _TIME_LIMIT_S)
        try:
            reply = await ask_model(model, question, self._budget)
        except PanpanError as error:  # an error of the budget, the provider, or the key
            raise ToolError(f"{model.model} could not be asked: {error}") from error
        except TimeoutError:
            raise ToolError(f"{model.model} did not answer within {_TIME_LIMIT_S:g} s") from None
        if reply is not None:
            self._keep(reply)
        if reply is None or not (said := reply.text.strip()):
            raise ToolError(f"{model.model} sent no text")
        return said[:MAX_ANSWER_CHARS]


@cache
def _system_prompt() -> str:
    return files(__package__).joinpath("page_answers.md").read_text(encoding="utf-8").strip()
