"""The prompts of a headless run: read from standard input, and kept until a turn takes them."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import aclosing, contextmanager
from typing import Any
from uuid import UUID

import anyio
from pydantic import TypeAdapter, ValidationError

from panpan.cli_kit.stdin import StdinReader
from panpan.errors import ConfigError
from panpan.session.turn import Steering
from panpan.types.content import TextBlock, UserContent
from panpan.types.dataclass import dataclass
from panpan.types.messages import UserMessage

SILENCE_S = 3.0
"""Seconds of silence before panpan says that it waits for input from the user or the pipe."""

WAITING = "waiting for standard input; close it or add </dev/null"

PRIORITIES = ("now", "next", "later")
"""Delivery of a message that is sent while a turn runs: at its next round, or after the turn. `now` is `next`, since a
reply that has begun is never thrown away."""
_AT_NEXT_ROUND = ("now", "next")

_content = TypeAdapter(tuple[UserContent, ...])


@dataclass(frozen=True, slots=True)
class Prompt:
    """One message of the input."""

    message: UserMessage
    is_for_next_round: bool = False
    """True if a running turn gets it; otherwise it waits for the turn's end. Without a turn it begins one."""
    has_id: bool = False
    """True if the sender gave its id, and so expects to hear of it again."""


async def prompt_of_text(
    argument: str | None, stdin: StdinReader | None, warn: Callable[[str], None], *, silence_s: float = SILENCE_S
) -> UserMessage:
    """Return the one prompt of a run: the argument, then the piped input, however long.

    With an argument, the piped input is data behind it, as in `UserMessage.typed`. Without one, it is the prompt.

    Args:
        argument: Prompt on the command line, if any.
        stdin: Piped input; None if there is none.
        warn: Prints a warning if no input comes: a program that runs panpan may leave its own input open.
        silence_s: Seconds without a byte before the warning.

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
        ConfigError: A line is no user message; the error names the line.
    """
    number = 0
    while (line := await stdin.line()) is not None:
        number += 1
        if line.strip():
            yield prompt_of_line(line, number)


def prompt_of_line(line: bytes, number: int) -> Prompt:
    """Return the message in a line of JSON.

    Raises:
        ConfigError: It is none; the error names the line by its number.
    """
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
        given = {} if (uuid := value.get("uuid")) is None else {"uuid": str(UUID(uuid))}
        message = UserMessage(content=blocks, is_verbatim=value.get("client_composed") is True, **given)
        return Prompt(message, is_for_next_round=priority in _AT_NEXT_ROUND, has_id=bool(given))
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError, RecursionError) as error:
        raise ConfigError(
            f"line {number} of the input is not a user message such as "
            '{"type":"user","message":{"role":"user","content":"hello"}}'
        ) from error


# Messages of a headless run that were read and that no turn has received yet.
#
# The rule: reading goes on while a turn runs, and no message is lost. It is in the turn, or it waits here.

MOST_WAITING = 1_000
"""Most messages to read ahead; an endless input is read no further."""


class PromptReader:
    """Reads prompts beside the turns.

    Args:
        prompts: Prompts to read; closed at its end, or when `read` is cancelled.
        known: Ids of the messages that the conversation has; a message that comes twice counts once.
        steering: Keeps the messages for the next round of the running turn.
        steer: Adds a message to `steering`; returns False if the message needs a turn of its own.
    """

    def __init__(
        self,
        prompts: AsyncGenerator[Prompt, None],
        steering: Steering,
        steer: Callable[[UserMessage], Awaitable[bool]],
        known: Iterable[str] = (),
    ) -> None:
        self._prompts = prompts
        self._known = set(known)
        self.named: set[str] = set()
        """Ids that senders gave to their messages."""
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

        Messages that an earlier turn did not receive come first.

        Raises:
            ConfigError: The prompt cannot be read; all before it were returned.
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
        """Wait until `next` would return at once."""
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
        """Messages that were read and that no turn has received, in the order of delivery."""
        return (*self._steering.waiting, *self._waiting)

    def take_back(self, uuid: str) -> bool:
        """Take back a message that no turn has received; False if none of this id waits."""
        message = next((one for one in self.waiting if one.uuid == uuid), None)
        if message is None:
            return False
        if not self._steering.remove(message):
            self._waiting.remove(message)
        self._steered.pop(uuid, None)
        self._known.discard(uuid)
        self.named.discard(uuid)
        self._changed()
        return True

    async def _take(self, prompt: Prompt) -> None:
        message = prompt.message
        if message.uuid in self._known:
            return
        self._known.add(message.uuid)
        if prompt.has_id:
            self.named.add(message.uuid)
        if prompt.is_for_next_round and self._runs_turn and await self._steer(message):
            self._steered[message.uuid] = message
        else:
            self._waiting.append(message)
        self._changed()

    def _changed(self) -> None:
        self._has_changed.set()
        self._has_changed = anyio.Event()
