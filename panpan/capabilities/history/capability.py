"""History: what was said in this session and is not sent to the model any more."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from anyio import to_thread
from pydantic import Field

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.descriptions import TranscriptEntry, transcript_entries
from panpan.types.content import Frozen, SummaryDisplay
from panpan.types.events import Output, ToolYield
from panpan.types.messages import Message, UserMessage


class History(Capability):
    """Lets the model read what was said before."""

    name = "history"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (ReadHistoryTool(lambda: self.session.conversation.messages),)


MAX_RESULT_CHARS = 30_000
_MAX_FOUND = 40
_CHARS_AROUND = 200
"""Characters shown on each side of a match."""
_MAX_OVERVIEW_CHARS = 300


class ReadHistoryInput(Frozen):
    """Arguments of ReadHistory."""

    query: str | None = Field(default=None, min_length=1, description="Text to look for, in any case")
    call: str | None = Field(default=None, min_length=1, description="Id of a call")
    first: int | None = Field(default=None, ge=1, description="Number of a message")
    last: int | None = Field(default=None, ge=1)


class ReadHistoryTool(Tool[ReadHistoryInput]):
    """Show the session's past."""

    name = "ReadHistory"
    input_model = ReadHistoryInput
    question_template = "Read the history of this session?"
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False
    shows_history: ClassVar[bool] = True

    def __init__(self, messages: Callable[[], Sequence[Message]]) -> None:
        self._messages = messages

    def title(self, args: ReadHistoryInput) -> str:
        if args.call is not None:
            return args.call
        place = "" if args.first is None and args.last is None else f"{args.first or 1}-{args.last or 'end'}"
        return " in ".join(filter(None, (args.query, place)))

    async def effects(self, args: ReadHistoryInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: ReadHistoryInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        messages = self._messages()
        told = list(transcript_entries(messages))
        if args.call is not None:
            texts = [one.whole for one in told if one.tool_use_id == args.call]
            summary = f"the call {args.call}"
            if not texts:
                raise ToolError(f"there is no call {args.call} in this session", advice="look for a text with query")
        elif args.query is not None:
            texts = list(_found(_in_range(told, args), args.query))
            summary = f"{len(texts)} found"
        elif args.first is not None or args.last is not None:
            texts = [one.whole for one in _in_range(told, args)]
            summary = f"{len(texts)} messages"
        else:
            texts, summary = list(_overview(messages, told)), "overview"
        text = "\n\n".join(texts) or f"nothing found; the session has {len(messages)} messages"
        shorten = partial(ctx.outputs.shorten, "history", text, max_chars=MAX_RESULT_CHARS)
        yield Output(await to_thread.run_sync(shorten, abandon_on_cancel=True), SummaryDisplay(text=summary))


def _in_range(told: Sequence[TranscriptEntry], args: ReadHistoryInput) -> list[TranscriptEntry]:
    first, last = args.first or 1, args.last if args.last is not None else float("inf")
    return [one for one in told if first <= one.number <= last]


def _found(told: Sequence[TranscriptEntry], query: str) -> Iterator[str]:
    """Yield the first match in each message with its surroundings, newest messages first."""
    wanted = query.casefold()
    hits = [one for one in reversed(told) if wanted in one.text.casefold()]
    for one in hits[:_MAX_FOUND]:
        at = max(one.text.casefold().find(wanted), 0)
        begin, end = max(0, at - _CHARS_AROUND), at + len(query) + _CHARS_AROUND
        before, behind = "… " if begin else "", " …" if end < len(one.text) else ""
        yield f"[{one.number}] {one.heading}:\n{before}{one.text[begin:end]}{behind}"
    if len(hits) > _MAX_FOUND:
        yield f"(and {len(hits) - _MAX_FOUND} older messages; say first and last to look there)"


def _overview(messages: Sequence[Message], told: Sequence[TranscriptEntry]) -> Iterator[str]:
    yield f"The session has {len(messages)} messages. The user said:"
    for one in told:
        if isinstance(messages[one.number - 1], UserMessage):
            text = one.text[:_MAX_OVERVIEW_CHARS]
            yield f"[{one.number}] {text}{' …' if len(text) < len(one.text) else ''}"
