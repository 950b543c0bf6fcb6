"""The prompts of a headless run: the whole of standard input, or one a line of JSON."""

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from panpan.errors import ConfigError
from panpan.faces.stdin import StdinReader
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
    """Whether a turn that runs shall get it; if not, it waits for its end. Without a turn it begins one."""


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
