"""A tape: a conversation's replies, written by hand in TOML, and played in place of a model.

    version = 1
    title = "Find the bug"                # for people
    chars_per_second = 400                # how fast text appears; without it, at once

    [[reply]]
    expects.prompt_contains = "bug"       # checked against the request before the reply is played
    text = "I run the tests first."
    pause_s = 0.5                         # before the first word
    [[reply.tool_use]]
    name = "Bash"
    input = { command = "python -m pytest -q" }

    [[reply]]
    expects.results_contain = ["1 failed"]
    text = "Done."

Two rules. The file is taken literally: nothing in it is a template, and a key that is not known is an error. A reply is
played only to a request that fits it: a tape that went on whatever the tools did would show a success that never was,
so anything unexpected is a `CassetteError` that says what was expected and what came.
"""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from pydantic import AfterValidator, Field, ValidationError

from panpan.errors import CassetteError, ConfigError, ToolError
from panpan.models.reply import ReplyBuilder
from panpan.types.content import Frozen
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage, Message, StopReason, ToolResultMessage, Usage, UserMessage
from panpan.types.pattern import compile_late

MAX_BYTES = 20_000_000
MAX_PAUSE_S = 60.0

_LONG_STRING = compile_late(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'', re.DOTALL)
_REPLY_HEADER = compile_late(r"^[ \t]*\[\[[ \t]*reply[ \t]*\]\]", re.MULTILINE)
_TOML_LINE = compile_late(r" \(at line (\d+), column \d+\)$")


def _json_object(value: dict[str, Any]) -> dict[str, Any]:
    import json

    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("holds a value that JSON does not have, such as a date") from None
    return value


class TapeToolUse(Frozen):
    """A call in a reply."""

    name: str = Field(min_length=1)
    input: Annotated[dict[str, Any], AfterValidator(_json_object)] = Field(default_factory=dict)
    arguments: str | None = None
    """The arguments as text in place of `input`, for calls that did not arrive whole."""


class Expectations(Frozen):
    """Conditions that a request must meet before the reply is played."""

    prompt_contains: tuple[str, ...] | str = ()
    """Texts in the newest message of the user."""
    results_contain: tuple[str, ...] = ()
    """A text in each tool result that is new, in the order of the calls; "" fits every result."""
    tools: tuple[str, ...] = ()
    """Tools that must be offered, besides those that the reply calls."""


class TapeReply(Frozen):
    """One reply of the model."""

    expects: Expectations = Expectations()
    thinking: str = ""
    text: str = ""
    tool_use: tuple[TapeToolUse, ...] = ()
    stop_reason: StopReason | None = None
    """None: "tool_use" or "end_turn", whichever fits."""
    usage: Usage = Usage()
    pause_s: float = Field(default=0, ge=0, le=MAX_PAUSE_S)


class Tape(Frozen):
    """A whole cassette."""

    version: Literal[1]
    title: str = ""
    chars_per_second: float | None = Field(default=None, gt=0)
    reply: tuple[TapeReply, ...] = Field(min_length=1)


def read_tape(path: Path) -> tuple[Tape, tuple[int, ...]]:
    """Return a cassette, and the line at which each of its replies begins.

    Raises:
        ConfigError: The file is not there, or is no cassette; names the file, and the line where there is one.
    """
    text = _read(path)
    lines = _reply_lines(text)
    document = _parsed(text, path)
    version = document.get("version")
    if isinstance(version, int) and version > 1:
        raise ConfigError(f"cassette {path} has format version {version} and this panpan plays 1; update panpan")
    try:
        return Tape.model_validate(document), lines
    except ValidationError as exc:
        raise ConfigError(_complaint(exc, path, lines)) from exc


def _read(path: Path) -> str:
    from panpan.system.files.read_file import read_regular_file

    try:
        return read_regular_file(path, max_bytes=MAX_BYTES, follow_symlinks=True).decode("utf-8-sig")
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no cassette {path}") from exc
    except (OSError, ToolError) as exc:
        raise ConfigError(f"cannot read the cassette {path}: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"cassette {path} is not UTF-8") from exc


def _parsed(text: str, path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise ConfigError(f"cassette {path} is nested too deeply") from exc
    except ValueError as exc:
        reason = str(exc)
        found = _TOML_LINE.search(reason)
        line = found.group(1) if found else text.count("\n") + 1
        raise ConfigError(f"cassette {path}:{line} is not valid TOML: {_TOML_LINE.sub('', reason)}") from exc


def _reply_lines(text: str) -> tuple[int, ...]:
    """Return the line of each `[[reply]]`, not counting those inside a long string."""
    bare = _LONG_STRING.sub(lambda match: "\n" * match.group().count("\n"), text)
    return tuple(bare.count("\n", 0, match.end()) + 1 for match in _REPLY_HEADER.finditer(bare))


def _complaint(exc: ValidationError, path: Path, lines: tuple[int, ...]) -> str:
    first = exc.errors(include_url=False)[0]
    where = [part for part in first["loc"] if part not in ("tuple[str, ...]", "str")]
    place = str(path)
    match where:
        case ["reply", int(number), *rest] if number < len(lines):
            place, where = f"{path}:{lines[number]}", [f"reply {number + 1}", *rest]
        case _:
            pass
    field = ".".join(str(part + 1) if isinstance(part, int) else part for part in where)
    if first["type"] == "extra_forbidden":
        return f"cassette {place}: there is no key {field}"
    message = first["msg"].removeprefix("Value error, ")
    return f"cassette {place}: {field}: {message[0].lower()}{message[1:]}"


_PIECES_PER_S = 30
_SHOWN_CHARS = 200


class CassetteProvider(Provider):
    """Plays the replies of one tape, one for each request."""

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
        self._open_ids: tuple[str, ...] = ()  # calls of the newest reply; the next request must answer them

    @classmethod
    def from_file(cls, path: Path) -> "CassetteProvider":
        """Return a provider that plays a file; raise `ConfigError` if it is not there, or is no cassette."""
        tape, lines = read_tape(path)
        return cls(tape, place=str(path), lines=lines)

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        """Yield the next reply of the tape; raise `CassetteError` if the tape is over, or the request does not fit."""
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
