"""The client that the conformance suite of the protocol's authors runs: made of panpan's own classes.

    python -m tests.peers.mcp_conformance_client URL

It calls each tool of the server, answers each question with its default, and logs in where that is wanted, as a user
would: the browser is a request to the issuer's page, whose answer leads to panpan.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx2

from panpan.capabilities.mcp.authorization import LoginPage, log_in
from panpan.capabilities.mcp.connection import Connection, Surroundings
from panpan.capabilities.mcp.definitions import Listing
from panpan.capabilities.mcp.entries import read_entry
from panpan.capabilities.mcp.issuers import Issuers
from panpan.capabilities.mcp.logins import Logins
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.web.network import WebNetwork
from panpan.types.permission import UserAnswer, UserQuestion

DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""Address of the client metadata document that the suite knows."""
MOST_LOGINS = 3
_EXAMPLES: Mapping[str, Any] = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}


def main() -> None:
    """Speak to the server whose address is the last argument."""
    anyio.run(speak, sys.argv[-1])


async def speak(url: str) -> None:
    """Speak to a server as the suite wants; exit with the reason if it cannot be spoken to."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    client = {"client_id": context.get("client_id", DOCUMENT), "client_secret": context.get("client_secret")}
    written = {"type": "http", "url": url, **{key: value for key, value in client.items() if value}}
    entry = read_entry("peer", written, {}, "the suite")
    with TemporaryDirectory() as folder:
        logins = Logins(Path(folder), Issuers(WebNetwork(), "panpan"))
        place = Surroundings(Path.cwd(), {}, CommandSandbox(), take_defaults, logins)
        for _ in range(MOST_LOGINS):
            failure = await use(Connection(entry, place, ignore), context, logins)
            if "wants a login" not in failure:
                break
            await log_in(entry, logins, agree)
    if failure:
        sys.exit(failure)


async def use(connection: Connection, context: Mapping[str, Any], logins: Logins) -> str:
    """Call the tools of a server, and return why it cannot be spoken to."""
    async with anyio.create_task_group() as group:
        group.start_soon(connection.run)
        await connection.ready.wait()
        for name, arguments in calls(connection.listing.tools, context.get("toolCalls")):
            for _ in range(MOST_LOGINS):
                if connection.is_ending:
                    break
                call = connection.begin(name, arguments)
                while not call.is_over:
                    await call.news.wait()
                if call.error is None or "wants further scopes" not in str(call.error):
                    break
                await log_in(connection.entry, logins, agree)
        connection.stop()
    return connection.failure


async def agree(page: LoginPage) -> None:
    """Open a page of an issuer that agrees at once, and go where it leads."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(page.address)


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
    main()
