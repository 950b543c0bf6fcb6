"""MCP servers: what they cost before they are used, a call beyond the library's own, and a search."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure
from benchmarks.model_server import ModelServer, serving
from panpan.capabilities.mcp.catalogue import Catalogue
from panpan.capabilities.mcp.connection import Connection, Surroundings
from panpan.capabilities.mcp.definitions import Listing
from panpan.capabilities.mcp.entries import ServerEntry, read_entry
from panpan.system.environment import child_environment
from panpan.system.sandbox.command_sandbox import CommandSandbox
from tests.fakes import mcp_server

TITLE = "MCP servers"

SERVERS, TOOLS_EACH = 20, 20
MANY_TOOLS = 5_000
_CALLS = 200
_SCRIPT = {"repeat": True, "replies": [{"text": "Hello.", "writes": "bulk"}]}


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark; runs with and without servers alternate."""
    with bench() as none, bench() as one, bench() as many, serving(_SCRIPT) as server:
        _know(none, 0)  # with settings, but without servers in them
        _know(one, 1)
        _know(many, SERVERS)
        for place in (none, one, many):
            _first_request(place, server)  # it compiles
        rows = [[_first_request(place, server) for place in (none, one, many)] for _ in range(runs)]
    beyond = [[[place[part] - row[0][part] for place in row[1:]] for row in rows] for part in (0, 1)]
    yield Figure("first request, one server that is not used, beyond none", "ms", [row[0] for row in beyond[0]], 2)
    yield Figure("its size, beyond that with none", "KB", [row[0] for row in beyond[1]], 1.2)
    yield Figure(f"first request, {SERVERS} servers with {SERVERS * TOOLS_EACH} tools", "ms", [r[1] for r in beyond[0]])
    yield Figure("its size, beyond that with none", "KB", [row[1] for row in beyond[1]], 2.5)
    pairs = [anyio.run(_calls_ms) for _ in range(runs)]
    yield Figure("a call by panpan's connection", "ms", [ours for ours, _ in pairs])
    yield Figure("a call by the library alone", "ms", [its for _, its in pairs])
    yield Figure("the one beyond the other", "ms", [ours - its for ours, its in pairs], 2)
    catalogue = Catalogue(None)
    catalogue.learn(_entry("big"), Listing([_tool(number) for number in range(MANY_TOOLS)]))
    catalogue.search("issue", 5)  # it makes the index
    yield Figure(f"search over {MANY_TOOLS:,} tools", "ms", [_search_ms(catalogue) for _ in range(runs)], 20)


def _entry(name: str) -> ServerEntry:
    return read_entry(name, {"command": "no-such-server"}, {}, "the benchmark")


def _tool(number: int) -> Mapping[str, Any]:
    words = ("issue", "commit", "branch", "review", "file", "user", "team", "build", "test", "note")
    about = " ".join(words[(number * step) % 10] for step in range(1, 9))
    fields = {f"{word}_{number % 7}": {"type": "string", "description": f"The {word}."} for word in words[:5]}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"name": f"{words[number % 10]}_{number}", "description": f"Does {about}.", "inputSchema": schema}


def _know(place: Bench, servers: int) -> None:
    """Write servers into the settings, and their tools as an earlier run would have kept them."""
    home = place.home / ".panpan"
    home.mkdir(mode=0o700)
    names = [f"server{number}" for number in range(servers)]
    tables = [f'[mcp.{name}]\ncommand = "no-such-server"' for name in names]
    (home / "settings.toml").write_text("\n".join(["version = 1", *tables]))
    catalogue = Catalogue(home / "mcp" / "known")
    for name in names:
        text = f"The server {name} knows issues, commits and reviews of a repository."
        catalogue.learn(_entry(name), Listing([_tool(number) for number in range(TOOLS_EACH)], text))


def _first_request(place: Bench, server: ModelServer) -> tuple[float, float]:
    """Return the milliseconds from the start to the first request, and its kilobytes."""
    run = place.ask(server.url)
    request = server.requests(1)[0]
    return (request["began_at"] - run.started_at) * 1000, request["bytes"] / 1000


async def _calls_ms() -> tuple[float, float]:
    """Return the milliseconds of a call by panpan's connection, and by the library alone."""
    state = Path(mcp_server.__file__).with_name("no-state.json")
    argv = ["-I", "-S", mcp_server.__file__, str(state), "/dev/null"]
    entry = read_entry("toy", {"command": sys.executable, "args": argv}, {}, "the benchmark")
    place = Surroundings(Path.cwd(), child_environment(), CommandSandbox())
    connection = Connection(entry, place, _ignore)
    async with anyio.create_task_group() as group:
        group.start_soon(connection.run)
        await connection.ready.wait()
        started_at = perf_counter()
        for number in range(_CALLS):
            call = connection.begin("echo", {"message": str(number)})
            while not call.is_over:
                await call.news.wait()
        ours = (perf_counter() - started_at) * 1000 / _CALLS
        connection.stop()
    async with Client(StdioServerParameters(command=sys.executable, args=argv)) as client:
        started_at = perf_counter()
        for number in range(_CALLS):
            await client.call_tool("echo", {"message": str(number)})
        its = (perf_counter() - started_at) * 1000 / _CALLS
    return ours, its


async def _ignore(_: Listing) -> None:
    pass


def _search_ms(catalogue: Catalogue) -> float:
    started_at = perf_counter()
    catalogue.search("review of a commit in the team", 5)
    return (perf_counter() - started_at) * 1000
