"""Guards of results and replies: how much they may hold, no keys in results, and the end of too many rounds."""

from collections.abc import Callable, Sequence
from functools import partial

import anyio.to_thread

from panpan.core.conversation import INTERRUPTED, INTERRUPTED_BEFORE, Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import ContextOverflowError, ProviderError
from panpan.system.text.redact import KnownKeys
from panpan.types.content import (
    ChecklistDisplay,
    DiffDisplay,
    Display,
    DocumentBlock,
    FileDiff,
    ImageBlock,
    PlanDisplay,
    RejectedDisplay,
    ResultContent,
    SummaryDisplay,
    TableDisplay,
    TextBlock,
    TextDisplay,
    for_model,
    table,
)
from panpan.types.content import text as text_display
from panpan.types.events import Output
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage

MAX_TEXT_CHARS = 60_000
"""Most characters of a result for models with a large context window."""
MAX_ENCODED_BYTES = 20_000_000
"""Most bytes of Base64 of all pictures and documents of one result."""


class ResultSize(Hook):
    """Cuts results that are too large to send."""

    def __init__(self, max_text_chars: Callable[[], int | None] = lambda: None) -> None:
        self._max_text_chars = max_text_chars

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        blocks, most = output.blocks, self._max_text_chars() or MAX_TEXT_CHARS
        if _text_chars(blocks) > most:
            blocks = await _with_short_text(blocks, call, most)
        if _encoded_bytes(blocks) > MAX_ENCODED_BYTES:
            blocks = _without_large(blocks)
        if blocks == output.blocks:
            return output
        return Output(blocks, output.display, is_error=output.is_error)


async def _with_short_text(
    blocks: tuple[ResultContent, ...], call: ToolCall, max_chars: int
) -> tuple[ResultContent, ...]:
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock) and not block.audience)
    shorten = partial(call.context.outputs.shorten, call.tool.name.lower(), text, max_chars=max_chars)
    short = await anyio.to_thread.run_sync(shorten, abandon_on_cancel=True)
    return (TextBlock(text=short), *(block for block in blocks if not isinstance(block, TextBlock) or block.audience))


def _without_large(blocks: tuple[ResultContent, ...]) -> tuple[ResultContent, ...]:
    """Replace pictures and documents that do not fit behind the ones before them."""
    kept: list[ResultContent] = []
    left = MAX_ENCODED_BYTES
    for block in blocks:
        size = _encoded_bytes((block,))
        if size > left:
            kind = "picture" if isinstance(block, ImageBlock) else "document"
            most = f"a result holds at most {MAX_ENCODED_BYTES // 1_000_000} MB of them"
            kept.append(TextBlock(text=f"[a {kind} of {size / 1e6:.1f} MB is left out: {most}]"))
            kept.append(for_model("[make it smaller, or look at parts of it]"))
        else:
            left -= size
            kept.append(block)
    return tuple(kept)


def _text_chars(blocks: tuple[ResultContent, ...]) -> int:
    return sum(len(block.text) for block in blocks if isinstance(block, TextBlock))


def _encoded_bytes(blocks: tuple[ResultContent, ...]) -> int:
    return sum(len(block.source.data) for block in blocks if isinstance(block, ImageBlock | DocumentBlock))


_NOTE = (
    "[panpan put [redacted] in place of a key that it uses itself, which stays where it is: change other places with "
    "Edit, and do not write [redacted] over it]"
)


class RedactResults(Hook):
    """Redacts keys in results."""

    def __init__(self, keys: KnownKeys) -> None:
        self._keys = keys

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        blocks = tuple(self._redacted(block) for block in output.blocks)
        display = self._redacted_display(output.display)
        if blocks != output.blocks:
            return Output((*blocks, for_model(_NOTE)), display, is_error=output.is_error)
        if display != output.display:
            return Output(output.content, display, is_error=output.is_error)
        return output

    def _redacted(self, block: ResultContent) -> ResultContent:
        if not isinstance(block, TextBlock):
            return block
        text = self._keys.redact(block.text)
        return block if text == block.text else block.model_copy(update={"text": text})

    def _redacted_files(self, files: Sequence[FileDiff]) -> tuple[FileDiff, ...]:
        redact = self._keys.redact
        return tuple(file.model_copy(update={"path": redact(file.path), "diff": redact(file.diff)}) for file in files)

    def _redacted_display(self, display: Display | None) -> Display | None:
        redact = self._keys.redact
        match display:
            case SummaryDisplay(text=text):
                return SummaryDisplay(text=redact(text))
            case DiffDisplay(files=files, notes=notes):
                return DiffDisplay(files=self._redacted_files(files), notes=tuple(map(redact, notes)))
            case RejectedDisplay(files=files):
                return display.model_copy(update={"files": self._redacted_files(files)})
            case PlanDisplay():
                return display.model_copy(update={"text": redact(display.text), "summary": redact(display.summary)})
            case TextDisplay():
                redacted = redact(display.text)
                return display if redacted == display.text else text_display(redacted)
            case TableDisplay(rows=rows, header=header):
                return table(([redact(cell) for cell in row] for row in rows), [redact(name) for name in header])
            case ChecklistDisplay() | None:  # a checklist repeats the model's own call
                return display


_MOST_EMPTY_REPLIES = 3
_MOST_CONTINUATIONS = 3

_EMPTY = (
    "Your last reply held no text and no tool call. Go on with the task, or say what you have found or what is missing."
)
_CUT = (
    "Your last reply reached the limit on its length and was cut off at its end. Go on exactly where it stops, without "
    "repeating anything; do what is left in smaller steps."
)


class ReplyLimits(Hook):
    """Asks again after empty and cut replies, and ends the turn where asking again cannot help."""

    def __init__(self) -> None:
        self._empty_replies = 0
        self._continuations = 0

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._empty_replies = self._continuations = 0
        return ()

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        """End the turn where asking again cannot help; what such a reply asks for is not run."""
        match reply.stop_reason:
            case "refusal":
                raise ProviderError(
                    "the model refused to answer; put the request in other words, or try another model with --model"
                )
            case "model_context_window_exceeded":
                raise ContextOverflowError(
                    "the conversation has filled the model's context window; make it shorter with /compact, start a "
                    "new session, or choose a model with a larger window with --model"
                )
            case _:
                pass

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        """Return a nudge where the reply is none yet."""
        match reply.stop_reason:
            case "pause_turn" | "interrupted":
                return ()
            case "max_tokens" if not reply.tool_uses:
                return self._after_cut(round_)
            case _ if reply.tool_uses or reply.text.strip():
                self._empty_replies = self._continuations = 0
                return ()
            case _:
                return self._after_empty()

    def _after_cut(self, round_: Round) -> Sequence[Addition]:
        self._continuations += 1
        if round_.is_last or self._continuations > _MOST_CONTINUATIONS:
            return ()  # the answer stays cut; faces say so
        return (SystemReminder(text=_CUT, cause="reply:cut"),)

    def _after_empty(self) -> Sequence[Addition]:
        self._empty_replies += 1
        if self._empty_replies > _MOST_EMPTY_REPLIES:
            raise ProviderError(
                f"the model sent {self._empty_replies} empty replies in a row; try again, or another model with --model"
            )
        return (SystemReminder(text=_EMPTY, cause="reply:empty"),)


_WRAP_UP = (
    "Your next reply is the last one of this turn, so call no more tools: nobody would read their results. Say what "
    "you have done and found, what is still open, and how to go on from here."
)


class RoundLimit(Hook):
    """Reminds the model to wrap up on the last round."""

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return (SystemReminder(text=_WRAP_UP, cause="limit:rounds"),) if round_.is_last else ()


_NOTICE = (
    "The user stopped your previous turn before it was finished. What it had begun may be done in part, so look before "
    "you rely on it. Follow the user's new message, and take the old work up again only if it asks for that."
)


class InterruptNotice(Hook):
    """Starts the turn after an interrupt with a notice."""

    def __init__(self) -> None:
        self._was_interrupted = False

    async def interrupted(self, conversation: Conversation) -> None:
        self._was_interrupted = True

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        was_interrupted = self._was_interrupted or _ended_in_interrupt(conversation.messages)
        self._was_interrupted = False
        return (SystemReminder(text=_NOTICE, cause="interrupted"),) if was_interrupted else ()


def _ended_in_interrupt(messages: Sequence[Message]) -> bool:
    for message in reversed(messages):
        match message:
            case ToolResultMessage() if message.is_error and message.text.startswith((INTERRUPTED, INTERRUPTED_BEFORE)):
                return True
            case AssistantMessage():
                return message.stop_reason == "interrupted"
            case _:
                pass
    return False
