"""The prompts of a headless run: the whole of standard input, or one a line of JSON."""

import json
import sys
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from anyio import to_thread
from pydantic import TypeAdapter, ValidationError

from panpan.errors import ConfigError
from panpan.types.content import TextBlock, UserContent
from panpan.types.messages import UserMessage

_content = TypeAdapter(tuple[UserContent, ...])


async def prompt_of_text(argument: str | None, *, has_pipe: bool) -> UserMessage:
    """Return the one prompt of a run: the argument, then what is piped in, however long.

    Raises:
        ConfigError: There is no prompt.
    """
    piped = ""
    if has_pipe:
        data = await to_thread.run_sync(sys.stdin.buffer.read, abandon_on_cancel=True)
        piped = data.decode(errors="replace")
    text = "\n\n".join(part for part in (argument or "", piped.rstrip("\n")) if part.strip())
    if not text:
        raise ConfigError("there is no prompt; give one with -p, or pipe it in: echo 'what does this do?' | panpan")
    return UserMessage.of(text)


async def prompts_of_json_lines() -> AsyncGenerator[UserMessage, None]:
    """Yield a prompt for each line of standard input that is a user message.

    Raises:
        ConfigError: A line is not one; says which.
    """
    lines: Iterator[tuple[int, bytes]] = enumerate(sys.stdin.buffer, start=1)
    while (numbered := await to_thread.run_sync(next, lines, None, abandon_on_cancel=True)) is not None:
        number, line = numbered
        if line.strip():
            yield _message_of(line, number)


def _message_of(line: bytes, number: int) -> UserMessage:
    try:
        value: Any = json.loads(line)
        if value["type"] != "user":
            raise ConfigError(f"line {number} of the input has type {value['type']!r}; only 'user' is understood")
        content = value["message"]["content"]
        if isinstance(content, str):
            return UserMessage(content=(TextBlock(text=content),))
        return UserMessage(content=_content.validate_python(tuple(content)))
    except (ValueError, KeyError, TypeError, ValidationError, RecursionError) as error:
        raise ConfigError(
            f"line {number} of the input is not a user message such as "
            '{"type":"user","message":{"role":"user","content":"hello"}}'
        ) from error
