"""The output of an attempt as it comes, in short lines.

The rule: it is text of a model and of commands, so all of it is made harmless for the terminal.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import anyio

from panpan.batch.store.folder import AttemptFolder
from panpan.batch.store.records import Task
from panpan.batch.store.wording import money
from panpan.integrations.headless import lines_of
from panpan.session.export.transcript import call_title
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.content import ToolUseBlock

_RESULT_LINES = 3
"""Most lines of a tool's result that are shown."""
_MAX_CHARS = 160
"""Most characters of a line of a result."""
_PIECE = 1_000_000
"""Bytes to read at once; an attempt of hours may have written much."""
_POLL_S = 0.25
_OTHER_SHAPE = (KeyError, TypeError, AttributeError, ValueError)
"""Errors of reading an event of another shape."""


class AttemptReader:
    """Reads what an attempt prints as it is written.

    Args:
        attempt: The attempt, which need not have begun yet.
        task: Its task.
    """

    def __init__(self, attempt: AttemptFolder, task: Task) -> None:
        self._path = attempt.events if task.command is None else attempt.output
        self._shown = _of_events if task.command is None else _of_output
        self._offset = 0

    def read(self, *, is_over: bool = False) -> Iterator[str]:
        """Yield the lines to show for what has come since the last call.

        Args:
            is_over: True if nothing more comes, so that a line without an end is whole.
        """
        while text := self._next(is_over=is_over):
            yield from self._shown(text)

    def _next(self, *, is_over: bool) -> str:
        """Return the next whole lines; a line without an end may still be written."""
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    self._offset = 0
                file.seek(self._offset)
                data = file.read(_PIECE)
                while b"\n" not in data and (more := file.read(_PIECE)):
                    data += more
        except FileNotFoundError:
            return ""
        whole = data if is_over else data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.decode(errors="replace")


async def follow(
    reader: AttemptReader,
    is_over: Callable[[], Awaitable[bool]],
    show: Callable[[str], None],
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> None:
    """Show what an attempt prints until it is over."""
    while True:
        over = await is_over()  # asked before the last look, so that nothing is missed
        for line in reader.read(is_over=over):
            show(line)
        if over:
            return
        await sleep(_POLL_S)


def _of_events(text: str) -> Iterator[str]:
    for event in lines_of(text):
        yield from event_lines(event)


def _of_output(text: str) -> Iterator[str]:
    yield from clean_for_terminal(text).removesuffix("\n").split("\n")


def event_lines(event: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines to show for one event of stream-json; none for an event of another shape."""
    try:
        yield from _lines(event)
    except _OTHER_SHAPE:
        return


def called_in(text: str) -> Sequence[str]:
    """Return the titles of the tool calls in lines of stream-json, such as `Read README.md`."""
    try:
        blocks = [block for event in lines_of(text) if event["type"] == "assistant" for block in _blocks(event)]
        return [_title(block) for block in blocks if block["type"] == "tool_use"]
    except _OTHER_SHAPE:
        return ()


def _lines(event: Mapping[str, Any]) -> Iterator[str]:
    match event["type"]:
        case "system" if event.get("subtype") == "init":
            yield f"--- run of {clean_line(str(event['model']))}, session {clean_line(str(event['session_id']))}"
        case "assistant":
            for block in _blocks(event):
                yield from _block(block)
        case "user":
            content = event["message"]["content"]
            for block in content if isinstance(content, list) else ():
                if block["type"] == "tool_result":
                    yield from _result(block)
        case "result":
            turns, cost = event.get("num_turns"), event.get("total_cost_usd")
            how = "an error" if event.get("is_error") else "the end"
            yield f"--- {how} after {turns} round{'s' * (turns != 1)}, {money(cost)}"
            if event.get("is_error"):
                yield clean_line(str(event.get("result") or event.get("subtype") or ""))


def _block(block: Mapping[str, Any]) -> Iterator[str]:
    if block["type"] == "text" and block["text"].strip():
        yield clean_for_terminal(block["text"]).strip()
    elif block["type"] == "tool_use":
        yield f"* {_title(block)}"


def _blocks(event: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    blocks: Sequence[Mapping[str, Any]] = event["message"]["content"]
    return blocks


def _title(block: Mapping[str, Any]) -> str:
    use = ToolUseBlock(id=str(block["id"]), name=str(block["name"]), input=block["input"])
    return clean_line(call_title(use))


def _result(block: Mapping[str, Any]) -> Iterator[str]:
    content = block.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    rows = [row.rstrip() for row in clean_for_terminal(text).split("\n") if row.strip()]
    mark = "!" if block.get("is_error") else " "
    for row in rows[:_RESULT_LINES]:
        yield f"  {mark} {row[:_MAX_CHARS]}{'…' * (len(row) > _MAX_CHARS)}"
    if len(rows) > _RESULT_LINES:
        yield f"    … {len(rows) - _RESULT_LINES} more lines"
