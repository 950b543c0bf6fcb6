"""Guards of tool results: how much they may hold, and no keys in them."""

from collections.abc import Callable
from functools import partial

import anyio.to_thread

from panpan.core.hooks import Hook, ToolCall
from panpan.system.text.redact import KnownKeys
from panpan.types.content import DocumentBlock, ImageBlock, ResultContent, TextBlock
from panpan.types.display import (
    ChecklistDisplay,
    DiffDisplay,
    Display,
    PlanDisplay,
    SummaryDisplay,
    TableDisplay,
    TextDisplay,
    table,
)
from panpan.types.display import text as text_display
from panpan.types.events import Output

MAX_TEXT_CHARS = 60_000
"""For models with a large context window."""
MAX_ENCODED_BYTES = 20_000_000
"""Base64 of all pictures and documents of one result."""


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
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    shorten = partial(call.context.outputs.shorten, call.tool.name.lower(), text, max_chars=max_chars)
    short = await anyio.to_thread.run_sync(shorten, abandon_on_cancel=True)
    return (TextBlock(text=short), *(block for block in blocks if not isinstance(block, TextBlock)))


def _without_large(blocks: tuple[ResultContent, ...]) -> tuple[ResultContent, ...]:
    """Replace pictures and documents that do not fit behind the ones before them."""
    kept: list[ResultContent] = []
    left = MAX_ENCODED_BYTES
    for block in blocks:
        size = _encoded_bytes((block,))
        if size > left:
            kind = "picture" if isinstance(block, ImageBlock) else "document"
            block = TextBlock(
                text=f"[a {kind} of {size / 1e6:.1f} MB is left out: a result holds at most "
                f"{MAX_ENCODED_BYTES // 1_000_000} MB of them; make it smaller, or look at parts of it]"
            )
            size = 0
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
            return Output((*blocks, TextBlock(text=_NOTE)), display, is_error=output.is_error)
        if display != output.display:
            return Output(output.content, display, is_error=output.is_error)
        return output

    def _redacted(self, block: ResultContent) -> ResultContent:
        if not isinstance(block, TextBlock):
            return block
        text = self._keys.redact(block.text)
        return block if text == block.text else TextBlock(text=text)

    def _redacted_display(self, display: Display | None) -> Display | None:
        redact = self._keys.redact
        match display:
            case SummaryDisplay(text=text):
                return SummaryDisplay(text=redact(text))
            case DiffDisplay(files=files, notes=notes):
                return DiffDisplay(
                    files=tuple(
                        file.model_copy(update={"path": redact(file.path), "diff": redact(file.diff)}) for file in files
                    ),
                    notes=tuple(map(redact, notes)),
                )
            case PlanDisplay():
                return display.model_copy(update={"text": redact(display.text), "summary": redact(display.summary)})
            case TextDisplay():
                redacted = redact(display.text)
                return display if redacted == display.text else text_display(redacted)
            case TableDisplay(rows=rows, header=header):
                return table(([redact(cell) for cell in row] for row in rows), [redact(name) for name in header])
            case ChecklistDisplay() | None:  # a list holds what the model's own call says
                return display
