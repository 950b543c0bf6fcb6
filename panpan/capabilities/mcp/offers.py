"""Prompts of servers as slash commands, and their resources as mentions, `@SERVER:URI`."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from panpan.capabilities.mcp.results import MAX_RESULT_CHARS, parts_of
from panpan.capabilities.mcp.servers import McpServers
from panpan.errors import ConfigError, ToolError
from panpan.session.command import Command, Terminal
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import mark_untrusted
from panpan.types.attachments import find_mentions
from panpan.types.content import ImageBlock, TextBlock, UserContent, for_model
from panpan.types.messages import UserMessage
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.system.files.output_store import OutputStore

_NAME = compile_late(r"[A-Za-z0-9_.-]{1,64}")
"""Names of prompts that can be typed and told apart."""
MOST_RESOURCES = 10
"""Most resources of one message."""


def prompt_commands(servers: McpServers) -> Iterator[Command]:
    """Yield a command for each prompt that is known."""
    for server, known in servers.catalogue.outlines.items():
        for prompt in known.prompts:
            name = prompt.get("name")
            if isinstance(name, str) and _NAME.fullmatch(name):
                yield Command(
                    f"mcp__{server}__{name}",
                    clean_line(str(prompt.get("description") or f"A prompt of the MCP server {server}"))[:200],
                    partial(_begin, servers, server, prompt),
                    arguments=" ".join(f"[{argument}]" for argument in _arguments(prompt)),
                    sends_itself=True,
                )


def _arguments(prompt: Mapping[str, Any]) -> Mapping[str, bool]:
    """Return the names of a prompt's arguments, each with whether it is needed."""
    given = prompt.get("arguments")
    found = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    return {clean_line(str(one.get("name"))): one.get("required") is True for one in found}


def filled_arguments(prompt: Mapping[str, Any], words: str) -> Mapping[str, str]:
    """Return the arguments of a prompt that typed words mean; the last takes the rest.

    Raises:
        ConfigError: One is missing, or a quote is open.
    """
    names = list(_arguments(prompt))
    try:
        given = shlex.split(words)
    except ValueError as error:
        raise ConfigError(f"the words cannot be read: {error}") from error
    if len(given) > len(names) > 0:
        given = [*given[: len(names) - 1], " ".join(given[len(names) - 1 :])]
    filled = dict(zip(names, given, strict=False))
    if missing := [name for name, is_needed in _arguments(prompt).items() if is_needed and name not in filled]:
        raise ConfigError(f"the prompt needs {', '.join(missing)}; write it behind the command")
    return filled


async def _begin(servers: McpServers, server: str, prompt: Mapping[str, Any], terminal: Terminal, rest: str) -> None:
    """Send a prompt of a server to the model."""
    name = prompt["name"]
    arguments = filled_arguments(prompt, rest)
    try:
        connection = await servers.ready(server)
        messages = await connection.prompt(name, arguments)
    except ToolError as error:
        raise ConfigError(str(error)) from error
    typed = TextBlock(text=f"/mcp__{server}__{name} {rest}".rstrip())
    texts, pictures = [], list[ImageBlock]()
    for message in messages:
        for part in parts_of(message["content"]):
            if isinstance(part, str):
                who = "" if message.get("role") == "user" else "(said by the assistant) "
                texts.append(f"{who}{part}")
            else:
                pictures.append(part)
    text = mark_untrusted("\n\n".join(texts), "mcp-content", f"{server}/{clean_line(name)}")
    terminal.submit(UserMessage(content=(typed, for_model(text), *pictures)))


async def with_resources(
    message: UserMessage, servers: McpServers, outputs: "OutputStore", warn: Callable[[str], None]
) -> UserMessage:
    """Return the user's message with the resources that it mentions.

    Args:
        message: The message.
        servers: The servers.
        outputs: Keeps what is too long.
        warn: Told about each that cannot be read.
    """
    names = {entry.name for entry in servers.entries}
    parts = (mention.name.partition(":") for mention in find_mentions(message.typed))
    found = [(server, uri) for server, _, uri in parts if server in names and uri]
    blocks: list[UserContent] = []
    wanted = list(dict.fromkeys(found))
    if len(wanted) > MOST_RESOURCES:
        warn(f"only the first {MOST_RESOURCES} of {len(wanted)} resources are attached")
    for server, uri in wanted[:MOST_RESOURCES]:
        try:
            connection = await servers.ready(server)
            contents = await connection.read(uri)
        except ToolError as error:
            warn(clean_line(f"@{server}:{uri} is not attached: {error}"))
            continue
        for part in (part for one in contents for part in parts_of({"type": "resource", "resource": one})):
            if isinstance(part, ImageBlock):
                blocks.append(part)
            else:
                text = outputs.shorten("resource", part, max_chars=MAX_RESULT_CHARS)
                blocks.append(for_model(mark_untrusted(text, "mcp-content", server)))
    return message.model_copy(update={"content": (*message.content, *blocks)}) if blocks else message
