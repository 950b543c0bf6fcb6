"""The client that the conformance suite of the protocol's authors runs: made of panpan's own classes.

    python -m tests.peers.mcp_conformance_client URL

It calls each tool of the server, and answers each question with its default.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from panpan.capabilities.mcp.catalogue import Listing
from panpan.capabilities.mcp.connection import Connection, Surroundings
from panpan.capabilities.mcp.entries import read_entry
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.permission import UserAnswer, UserQuestion

_EXAMPLES: Mapping[str, Any] = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}


async def main(url: str) -> None:
    """Speak to a server as the suite wants; exit with the reason if it cannot be spoken to."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    place = Surroundings(Path.cwd(), {}, CommandSandbox(), take_defaults)
    connection = Connection(read_entry("peer", {"type": "http", "url": url}, {}, "the suite"), place, ignore)
    async with anyio.create_task_group() as group:
        group.start_soon(connection.run)
        await connection.ready.wait()
        if connection.failure:
            sys.exit(connection.failure)
        for name, arguments in calls(connection.listing.tools, context.get("toolCalls")):
            call = connection.begin(name, arguments)
            while not call.is_over:
                await call.news.wait()
        connection.stop()


def calls(tools: Sequence[Mapping[str, Any]], given: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the calls that a scenario gives, else one of each tool."""
    if isinstance(given, list):
        yield from ((one["name"], one["arguments"]) for one in given)
        return
    for tool in tools:
        properties = tool["inputSchema"].get("properties", {})
        arguments = {name: _EXAMPLES.get(schema.get("type"), "x") for name, schema in properties.items()}
        if tool["name"] == "json_schema_echo":  # the scenario about schemas wants the other tool's back
            arguments = {"schema": next(one for one in tools if one is not tool)["inputSchema"]}
        yield tool["name"], arguments


async def take_defaults(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
    """Answer each question with its default, else with the first choice."""
    chosen = [
        next((one.label for one in question.choices if one.description == "the default"), question.choices[0].label)
        for question in questions
    ]
    return [UserAnswer(chosen=(label,)) for label in chosen]


async def ignore(_: Listing) -> None:
    """Take a list of tools."""


if __name__ == "__main__":
    anyio.run(main, sys.argv[-1])
