"""The prompts of a headless run: read from standard input, and kept until a turn takes them."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager
from typing import Any

import anyio
from pydantic import TypeAdapter, ValidationError

from panpan.errors import ConfigError
from panpan.faces.stdin import StdinReader
from panpan.session.turn import Steering
from panpan.types.content import TextBlock, UserContent
from panpan.types.dataclass import dataclass
from panpan.types.messages import UserMessage

SILENCE_S = 3.0
"""After so long a user is told that panpan waits for him, or for whoever holds the other end of the pipe."""

WAITING = "waiting for standard input; close it or add </dev/null"

PRIORITIES = ("next", "later")
"""When a message wants to arrive that is sent while a turn runs: at its next round, or after it."""

_content = TypeAdapter(tuple[UserContent, ...])


@dataclass(frozen=True, slots=True)
class Prompt:
    """One message of the input."""

    message: UserMessage
    is_for_next_round: bool = False
    """True if a turn that runs shall get it; if not, it waits for its end. Without a turn it begins one."""


async def prompt_of_text(
    argument: str | None, stdin: StdinReader | None, warn: Callable[[str], None], *, silence_s: float = SILENCE_S
) -> UserMessage:
    """Return the one prompt of a run: the argument, then what is piped in, however long.

    Where there are words, what is piped in is data behind them, as `UserMessage.typed` has it. A pipe alone is the
    prompt.

    Args:
        argument: What the command line says.
        stdin: What is piped in; None where nothing is.
        warn: Told when nothing comes: a program that runs panpan may leave its own input open.
        silence_s: Seconds without a byte until then.

    Raises:
        ConfigError: There is no prompt.
    """
    if stdin is not None and not await stdin.has_more(within_s=silence_s):
        warn(WAITING)
    piped = "" if stdin is None else (await stdin.rest()).decode(errors="replace")
    texts = [part for part in (argument or "", piped.rstrip("\n")) if part.strip()]
    if not texts:
        raise ConfigError("there is no prompt; give one with -p, or pipe it in: echo 'what does this do?' | panpan")
    return UserMessage(content=tuple(TextBlock(text=text) for text in texts))


async def prompts_of_json_lines(stdin: StdinReader) -> AsyncGenerator[Prompt, None]:
    """Yield a prompt for each line of standard input that is a user message, with its `priority`; "later" without.

    Raises:
        ConfigError: A line is not one; says which.
    """
    number = 0
    while (line := await stdin.line()) is not None:
        number += 1
        if line.strip():
            yield _prompt_of(line, number)


def _prompt_of(line: bytes, number: int) -> Prompt:
    try:
        value: Any = json.loads(line)
        if value["type"] != "user":
            raise ConfigError(f"line {number} of the input has type {value['type']!r}; only 'user' is understood")
        content = value["message"]["content"]
        blocks = (TextBlock(text=content),) if isinstance(content, str) else _content.validate_python(tuple(content))
        if all(isinstance(block, TextBlock) and not block.text.strip() for block in blocks):
            raise ConfigError(f"line {number} of the input is a user message that says nothing")
        priority = value.get("priority", "later")
        if priority not in PRIORITIES:
            raise ConfigError(
                f"line {number} of the input has the priority {priority!r}; it can be {' or '.join(PRIORITIES)}"
            )
        return Prompt(UserMessage(content=blocks), is_for_next_round=priority == "next")
    except (ValueError, KeyError, TypeError, ValidationError, RecursionError) as error:
        raise ConfigError(
            f"line {number} of the input is not a user message such as "
            '{"type":"user","message":{"role":"user","content":"hello"}}'
        ) from error


# The messages of a headless run that were read and that no turn has got yet.
#
# The rule: reading goes on while a turn runs, and nothing that was read is lost: it is in the turn, or it waits here.

MOST_WAITING = 1_000
"""Messages that are read ahead; an input without an end is read no further then."""


class PromptReader:
    """Reads prompts beside the turns.

    Args:
        prompts: What is read; closed at its end, or when `read` is cancelled.
        steering: Keeps what the running turn shall get at its next round.
        steer: Puts a message there; returns False for one that needs a turn of its own.
    """

    def __init__(
        self,
        prompts: AsyncGenerator[Prompt, None],
        steering: Steering,
        steer: Callable[[UserMessage], Awaitable[bool]],
    ) -> None:
        self._prompts = prompts
        self._steering = steering
        self._steer = steer
        self._steered: dict[str, UserMessage] = {}
        """Messages given to `steer` that may not have arrived, as they were read, by `uuid`."""
        self._waiting: deque[UserMessage] = deque()
        self._failure: ConfigError | None = None
        self._has_ended = False
        self._runs_turn = False
        self._has_changed = anyio.Event()

    async def read(self) -> None:
        try:
            async with aclosing(self._prompts) as prompts:
                async for prompt in prompts:
                    while len(self.waiting) >= MOST_WAITING:
                        await self._has_changed.wait()
                    await self._take(prompt)
        except ConfigError as error:
            self._failure = error
        self._has_ended = True
        self._changed()

    async def next(self) -> UserMessage | None:
        """Return the next prompt, or None after the last.

        What an earlier turn was to get and did not get comes first.

        Raises:
            ConfigError: It cannot be read; all before it were returned.
        """
        while True:
            message = self._steering.take_first() or (self._waiting.popleft() if self._waiting else None)
            if message is not None:
                message = self._steered.pop(message.uuid, message)
                self._changed()
                return message
            if self._failure is not None:
                raise self._failure
            if self._has_ended:
                return None
            await self._has_changed.wait()

    @property
    def is_ready(self) -> bool:
        return bool(self.waiting) or self._failure is not None or self._has_ended

    async def ready(self) -> None:
        """Return when `next` would not wait."""
        while not self.is_ready:
            await self._has_changed.wait()

    @contextmanager
    def turn(self) -> Generator[None, None, None]:
        """Let a turn run: until its end, it gets the messages that are for its next round."""
        self._runs_turn = True
        self._steered.clear()
        try:
            yield
        finally:
            self._runs_turn = False

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """What was read and no turn has got, in the order in which turns would."""
        return (*self._steering.waiting, *self._waiting)

    async def _take(self, prompt: Prompt) -> None:
        message = prompt.message
        if prompt.is_for_next_round and self._runs_turn and await self._steer(message):
            self._steered[message.uuid] = message
        else:
            self._waiting.append(message)
        self._changed()

    def _changed(self) -> None:
        self._has_changed.set()
        self._has_changed = anyio.Event()
