"""Plays a tape written by hand in place of a model: to record the demo, and in tests of the whole program.

The rule: a reply is played only to a request that fits it. A tape that went on whatever the tools did would show a
success that never was, so anything unexpected is a `CassetteError` that says what was expected and what came.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import anyio

from panpan.capabilities.cassettes.cassette_file import Tape, TapeReply, read_tape
from panpan.errors import CassetteError
from panpan.models.reply import ReplyBuilder
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

_PIECES_PER_S = 30
_SHOWN_CHARS = 200


class CassetteProvider:
    """Implements `Provider` with the replies of one tape, one for each request.

    Args:
        tape: What is played.
        place: The file, for messages.
        lines: Where its replies begin in the file.
        sleep: Waits for so many seconds.
    """

    name = "cassette"

    def __init__(
        self,
        tape: Tape,
        *,
        place: str = "the cassette",
        lines: Sequence[int] = (),
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        self.tape = tape
        self._place = place
        self._lines = lines
        self._sleep = sleep
        self._played = 0
        self._open_ids: tuple[str, ...] = ()  # calls of the newest reply, which the next request must answer

    @classmethod
    def from_file(cls, path: Path) -> "CassetteProvider":
        """Return a provider that plays a file.

        Raises:
            ConfigError: It is not there, or is no cassette.
        """
        tape, lines = read_tape(path)
        return cls(tape, place=str(path), lines=lines)

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        """Yield the next reply of the tape.

        Raises:
            CassetteError: The tape is over, or the request does not fit.
        """
        if self._played >= len(self.tape.reply):
            raise CassetteError(
                f"{self._place} is over: it has {_counted(len(self.tape.reply))}, and one more was asked for",
                provider=self.name,
            )
        reply = self.tape.reply[self._played]
        self._check(reply, request)
        self._played += 1
        builder = ReplyBuilder(model=options.model, taken_ids=request.tool_use_ids)
        builder.usage = reply.usage
        await self._pause(reply.pause_s)
        for pause_s in self._pieces(reply, builder):
            for event in builder.take():
                yield event
            await self._pause(pause_s)
        builder.finish(reply.stop_reason or ("tool_use" if reply.tool_use else "end_turn"))
        for event in builder.take():
            if isinstance(event, AssistantMessage):
                self._open_ids = tuple(use.id for use in event.tool_uses)
            yield event

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return None

    async def prepare(self) -> None:
        """Do nothing: the tape is in memory."""

    async def aclose(self) -> None:
        """Do nothing: the tape is in memory."""

    def _pieces(self, reply: TapeReply, builder: ReplyBuilder) -> Iterator[float]:
        """Put the reply together piece by piece; yield the pause after each."""
        builder.start(message_id=f"tape_{self._played}")
        for kind, text in (("thinking", reply.thinking), ("text", reply.text)):
            for piece, pause_s in self._paced(text):
                builder.add("thinking" if kind == "thinking" else "text", piece)
                yield pause_s
        for number, use in enumerate(reply.tool_use, 1):
            block = builder.open_block("tool_use", tool_use_id=f"tape_{self._played}_{number}", tool_name=use.name)
            block.parts.append(json.dumps(use.input, ensure_ascii=False) if use.arguments is None else use.arguments)
            yield 0

    def _paced(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield pieces of a text and the pause after each: lines at once, or few letters as if typed."""
        rate = self.tape.chars_per_second
        if rate is None:
            yield from ((line, 0) for line in text.splitlines(keepends=True))
            return
        size = max(1, round(rate / _PIECES_PER_S))
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            yield piece, len(piece) / rate

    async def _pause(self, seconds: float) -> None:
        if seconds:
            await self._sleep(seconds)

    def _check(self, reply: TapeReply, request: ModelRequest) -> None:
        """Refuse a request that the reply does not answer."""
        self._check_tools(reply, request)
        new = _since_newest_reply(request.messages)
        results = [message for message in new if isinstance(message, ToolResultMessage)]
        if self._played:
            self._check_answers(results, new)
        self._check_prompt(reply, request)
        wanted = reply.expects.results_contain
        if wanted and len(wanted) != len(results):
            raise self._misfit(f"expects {len(wanted)} tool results, and {len(results)} came")
        for number, (text, result) in enumerate(zip(wanted, results, strict=False), 1):
            if text not in result.text:
                raise self._misfit(f"expects tool result {number} to contain {text!r}, but it is {_short(result.text)}")

    def _check_tools(self, reply: TapeReply, request: ModelRequest) -> None:
        offered = {tool.name for tool in request.tools}
        for name in (*(use.name for use in reply.tool_use), *reply.expects.tools):
            if name not in offered:
                raise self._misfit(f"needs the tool {name}, which is not offered ({', '.join(sorted(offered))})")

    def _check_answers(self, results: Sequence[ToolResultMessage], new: Sequence[Message]) -> None:
        answered = tuple(result.tool_use_id for result in results)
        if sorted(answered) != sorted(self._open_ids):
            expected = f"expects results for the {len(self._open_ids)} calls before it ({', '.join(self._open_ids)})"
            raise self._misfit(f"{expected}, and {len(answered)} came ({', '.join(answered)})")
        if not new:
            raise self._misfit("expects something new since the reply before it, and nothing came")

    def _check_prompt(self, reply: TapeReply, request: ModelRequest) -> None:
        wanted = reply.expects.prompt_contains
        texts = (wanted,) if isinstance(wanted, str) else wanted
        if not texts:
            return
        prompts = (message.text for message in reversed(request.messages) if isinstance(message, UserMessage))
        prompt = next(prompts, "")
        for text in texts:
            if text not in prompt:
                raise self._misfit(f"expects the prompt to contain {text!r}, but it is {_short(prompt)}")

    def _misfit(self, complaint: str) -> CassetteError:
        number = self._played
        line = f":{self._lines[number]}" if number < len(self._lines) else ""
        return CassetteError(f"{self._place}{line}: reply {number + 1} {complaint}", provider=self.name)


def _since_newest_reply(messages: Sequence[Message]) -> list[Message]:
    """Return what came after the model last spoke."""
    new: list[Message] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            break
        new.append(message)
    return new[::-1]


def _counted(replies: int) -> str:
    return "1 reply" if replies == 1 else f"{replies} replies"


def _short(text: str) -> str:
    """Return the beginning of a text on one line, in quotes."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")
