"""The MCP servers of one session: which may run, when they are started, and when not again.

The rule: nothing is started that the user did not bring himself or say yes to. A server that fails costs what was asked
of it; it is started again when it is needed, later each time, and not for ever.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
from anyio import create_task_group, to_thread
from anyio.abc import TaskGroup

from panpan.capabilities.mcp.catalogue import Catalogue
from panpan.capabilities.mcp.entries import MAX_SERVERS, ServerEntry
from panpan.capabilities.mcp.settings import PACKAGE
from panpan.errors import ConfigError, ToolError
from panpan.session.user_hooks import ServerChanges, ToolsOfServers
from panpan.system.environment import how_to_install
from panpan.system.text.terminal_text import clean_line
from panpan.types.attachments import OtherMentions

if TYPE_CHECKING:
    from panpan.capabilities.mcp.approvals import Approvals
    from panpan.capabilities.mcp.connection import Connection, Surroundings
    from panpan.capabilities.mcp.definitions import Changes, KnownTool, Listing

MAX_FAILURES = 5
"""Failures in a row after which a server is not started again in this session."""
FIRST_PAUSE_S = 1.0
"""Pause before a server that has failed is started again; doubled with each failure in a row."""
_LONGEST_PAUSE_S = 60.0
_MAX_ERROR_CHARS = 500
_LONGEST_WAIT_S = 5.0
"""Longest wait of a call for such a pause."""
_STEADY_S = 60.0
"""A server that ran so long has not failed in a row."""


def _plain(name: str) -> str:
    """Return a name without what makes no difference for people."""
    return name.casefold().replace("-", "_")


State: TypeAlias = Literal["off", "waits for your yes", "not started", "is starting", "runs", "wants a login", "failed"]


class _Slot:
    """The place of one server, whichever run of it is the present one."""

    def __init__(self, entry: ServerEntry, *, is_replaceable: bool = False) -> None:
        self.entry = entry
        self.is_replaceable = is_replaceable or entry.transport == "host"
        self.connection: Connection | None = None
        self.failures = 0
        self.failure = ""
        self.not_before = 0.0
        self.lock = anyio.Lock()
        """Held while it is started."""


def read_none(name: str, written: Any) -> ServerEntry:
    """Refuse a server, where none can come later."""
    raise ConfigError(f"the server {name} cannot be added here")


class McpServers(ToolsOfServers, OtherMentions):
    """Starts servers as they are needed, while `serve` runs.

    Args:
        entries: The servers, by their names.
        catalogue: What is known of their tools.
        approvals: Servers of the project that the user has said yes to; None without any that needs a yes.
        surroundings: Makes the place where they run.
        warn: Tells the user something.
        read: Reads the entry of a server that comes later; raises ConfigError if it cannot be used.
    """

    def __init__(
        self,
        entries: Mapping[str, ServerEntry],
        catalogue: Catalogue,
        approvals: "Approvals | None",
        surroundings: "Callable[[], Surroundings]",
        warn: Callable[[str], None],
        read: Callable[[str, Any], ServerEntry] = read_none,
    ) -> None:
        self.catalogue = catalogue
        self._slots = {name: _Slot(entry) for name, entry in entries.items()}
        self._approvals = approvals
        self._surroundings = surroundings
        self._warn = warn
        self._read = read
        self._group: TaskGroup | None = None
        self._switched_off: set[str] = set()
        """Names of servers that do not run in this session for now."""
        for entry in entries.values():
            if self.may_run(entry):
                catalogue.recall(entry)

    @property
    def entries(self) -> Sequence[ServerEntry]:
        """All servers, by name."""
        return [slot.entry for _, slot in sorted(self._slots.items())]

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._slots)

    @property
    def usable(self) -> Sequence[ServerEntry]:
        """Those that may run."""
        return [entry for entry in self.entries if self.may_run(entry)]

    @property
    def waiting(self) -> Sequence[ServerEntry]:
        """Those that wait for a yes of the user."""
        return [entry for entry in self.entries if self.state(entry.name) == "waits for your yes"]

    @property
    def offered_mentions(self) -> Mapping[str, str]:
        running = ((name, slot.connection) for name, slot in self._slots.items() if self.state(name) == "runs")
        return {
            f"{name}:{uri}": title
            for name, connection in running
            if connection is not None
            for uri, title in connection.resources.items()
        }

    def entry(self, name: str) -> ServerEntry:
        """Return a server."""
        return self._slots[name].entry

    def may_run(self, entry: ServerEntry) -> bool:
        """True if a server may be started or spoken to."""
        is_approved = not entry.needs_approval or (self._approvals is not None and self._approvals.has(entry))
        return entry.settings.enabled and is_approved and entry.name not in self._switched_off

    def state(self, name: str) -> State:
        """Return how a server is."""
        slot = self._slots[name]
        if not slot.entry.settings.enabled or name in self._switched_off:
            return "off"
        if not self.may_run(slot.entry):
            return "waits for your yes"
        connection = slot.connection
        if connection is not None and not connection.is_ending:
            return "runs" if connection.ready.is_set() else "is starting"
        if connection is not None and connection.wants_login:
            return "wants a login"
        return "failed" if slot.failure else "not started"

    def failure(self, name: str) -> str:
        """Return why a server failed last; empty if it did not."""
        return self._slots[name].failure

    def approve(self, name: str) -> None:
        """Let a server of the project run from now on.

        Raises:
            ConfigError: The yes cannot be kept.
        """
        assert self._approvals is not None
        self._approvals.add(self._slots[name].entry)

    def retry(self, name: str) -> None:
        """Let a server that has failed be started at once, and one that runs be ended."""
        slot = self._slots[name]
        slot.failures, slot.failure, slot.not_before = 0, "", 0.0
        if slot.connection is not None:
            slot.connection.stop()

    async def serve(self) -> None:
        """Keep servers until it is cancelled; none of them is left then."""
        async with create_task_group() as self._group:
            try:
                for entry in self.usable:
                    if entry.name not in self.catalogue.outlines:
                        self.start_soon(entry.name)
                await anyio.sleep_forever()
            finally:
                self._group = None
                for slot in self._slots.values():
                    if slot.connection is not None:
                        slot.connection.stop()

    def start_soon(self, name: str) -> None:
        """Start a server beside the session, if that can be; a failure is told by its state."""
        if self._group is not None:
            self._group.start_soon(self._try, name)

    def run_soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something beside the session, which ends with it."""
        if self._group is not None:
            self._group.start_soon(work)

    async def _try(self, name: str) -> None:
        try:
            await self.ready(name)
        except ToolError as error:
            self._warn(clean_line(str(error)))

    async def settle(self) -> Sequence[str]:
        """Wait for the servers of which nothing is known yet; return a sentence about each that failed."""
        failed: list[str] = []
        await to_thread.run_sync(self.catalogue.load)
        for entry in self.usable:
            if entry.name not in self.catalogue.outlines:
                try:
                    await self.ready(entry.name)
                except ToolError as error:
                    failed.append(str(error))
        return failed

    async def ready(self, name: str, *, is_retry: bool = False) -> "Connection":
        """Return a server that can be asked, started if need be.

        Args:
            name: Name of the server.
            is_retry: True for work in the background that waits for it: then a failure does not count as one in a row.

        Raises:
            ToolError: There is none of that name, it may not run, or it fails.
        """
        slot = self._slots.get(name)
        if slot is None:
            raise ToolError(f"there is no MCP server {name}")
        match self.state(name):
            case "off":
                raise ToolError(f"the MCP server {name} is switched off")
            case "waits for your yes":
                raise ToolError(
                    f"the MCP server {name} of this project was not started: the user has not said yes to it",
                    advice="the user can look at it with /mcp and say yes with `/mcp approve NAME`",
                )
        async with slot.lock:
            connection = slot.connection
            if connection is not None and connection.is_ending:
                await connection.ended.wait()
            if connection is None or connection.is_ending:
                connection = await self._start(slot, is_retry=is_retry)
        await connection.ready.wait()
        if connection.is_ending:
            raise ToolError(f"the MCP server {name} {connection.failure or 'was ended'}")
        return connection

    async def _start(self, slot: _Slot, *, is_retry: bool) -> "Connection":
        name = slot.entry.name
        if self._group is None:
            raise ToolError("no MCP server can be started, since the session is over")
        if slot.failures >= MAX_FAILURES and not is_retry:
            raise ToolError(
                f"the MCP server {name} {slot.failure}; it failed {slot.failures} times and is not started again",
                advice="the user can start it with `/mcp reconnect NAME`",
            )
        if (wait_s := slot.not_before - anyio.current_time()) > _LONGEST_WAIT_S and not is_retry:
            raise ToolError(
                f"the MCP server {name} {slot.failure}; it is started again in {wait_s:.0f} s at the earliest"
            )
        await anyio.sleep(max(wait_s, 0))
        try:
            module = await to_thread.run_sync(import_module, "panpan.capabilities.mcp.connection")
        except ImportError as error:
            raise ToolError(
                f"the MCP server {name} needs a library; install it with: {how_to_install(PACKAGE)}"
            ) from error
        if self._group is None:  # the session has ended meanwhile
            raise ToolError("no MCP server can be started, since the session is over")
        connection: Connection = module.Connection(slot.entry, self._surroundings(), self._listed(slot.entry))
        slot.connection = connection
        self._group.start_soon(self._run, slot, connection, is_retry)
        return connection

    async def _run(self, slot: _Slot, connection: "Connection", is_retry: bool) -> None:
        try:
            await connection.run()
            self._note_failure(slot, connection, counts=not is_retry)
        finally:
            connection.ended.set()

    def _note_failure(self, slot: _Slot, connection: "Connection", *, counts: bool) -> None:
        if not connection.failure:
            return
        if connection.wants_login or not counts:
            slot.failure = connection.failure
            return
        now = anyio.current_time()
        slot.failures = 1 if now - connection.started_at > _STEADY_S else slot.failures + 1
        slot.failure = connection.failure
        slot.not_before = now + min(FIRST_PAUSE_S * 2 ** (slot.failures - 1), _LONGEST_PAUSE_S)

    def _listed(self, entry: ServerEntry) -> "Callable[[Listing], object]":
        async def take(listing: "Listing") -> None:
            changes = await to_thread.run_sync(self._learn, entry, listing)
            for problem in changes.problems:
                self._warn(clean_line(f"the MCP server {entry.name}: a tool is left out: {problem}"))
            if changes.changed:
                names = ", ".join(changes.changed)
                self._warn(
                    clean_line(f"the MCP server {entry.name} has changed {names}; you are asked when it is called")
                )

        return take

    async def reconnect(self, server: str) -> None:
        if server in self._slots:
            self.retry(server)
        await self.ready(server)

    async def switch(self, server: str, *, is_on: bool) -> None:
        if server not in self._slots:
            raise ToolError(f"there is no MCP server {server}")
        if is_on:
            self._switched_off.discard(server)
            await self.ready(server)
            return
        self._switched_off.add(server)
        if (connection := self._slots[server].connection) is not None:
            connection.stop()

    async def replace(self, servers: Mapping[str, Any]) -> ServerChanges:
        errors: dict[str, str] = {}
        entries: dict[str, ServerEntry] = {}
        for name, written in servers.items():
            try:
                entries[name] = self._read(name, written)
            except ConfigError as error:
                errors[name] = str(error)
        removed = sorted(name for name, slot in self._slots.items() if slot.is_replaceable and name not in servers)
        changed = [
            name for name, one in entries.items() if name not in self._slots or self.entry(name).written != one.written
        ]
        for name in (*removed, *(name for name in changed if name in self._slots)):
            await self._remove(name)
        for name in changed:
            if twin := next((one for one in self._slots if _plain(one) == _plain(name)), None):
                errors[name] = f"the server {name} is hard to tell from {twin}"
            elif len(self._slots) >= MAX_SERVERS:
                errors[name] = f"the server {name} is left out, since there are more than {MAX_SERVERS}"
            else:
                self._slots[name] = _Slot(entries[name], is_replaceable=True)
                self.catalogue.recall(entries[name])
        added = sorted(name for name in changed if name in self._slots)

        async def start(name: str) -> None:
            try:
                await self.ready(name)
            except ToolError as error:
                errors[name] = str(error)

        async with create_task_group() as group:
            for name in added:
                group.start_soon(start, name)
        return ServerChanges(added, removed, errors)

    async def read(self, server: str, uri: str) -> Sequence[Mapping[str, Any]]:
        return await (await self.ready(server)).read(uri)

    async def _remove(self, name: str) -> None:
        slot = self._slots.pop(name)
        self._switched_off.discard(name)
        self.catalogue.forget(name)
        if (connection := slot.connection) is not None:
            connection.stop()
            await connection.ended.wait()

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> str:
        connection = await self.ready(server)
        pending = connection.begin(tool, arguments)
        try:
            while not pending.is_over:
                await pending.news.wait()
        finally:
            pending.cancel()
        if pending.error is not None:
            raise pending.error
        assert pending.result is not None
        from panpan.capabilities.mcp.results import words_of

        text, _ = words_of(pending.result)
        if pending.result.is_error:
            raise ToolError(clean_line(f"{tool} of the MCP server {server} failed: {text}")[:_MAX_ERROR_CHARS])
        return text

    def take_listings(self, listings: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Take the tools of servers in the program that runs panpan, as they are now; blocks."""
        from panpan.capabilities.mcp.definitions import Listing

        for name, tools in listings.items():
            if (slot := self._slots.get(name)) is not None and slot.entry.transport == "host":
                self._learn(slot.entry, Listing(tools))

    def _learn(self, entry: ServerEntry, listing: "Listing") -> "Changes":
        """Learn what a server says of itself; the program that runs panpan is believed, also where it has changed."""
        changes = self.catalogue.learn(entry, listing)
        if entry.transport != "host":
            return changes
        known = self.catalogue.server(entry.name)
        for tool in () if known is None else known.pending.values():
            self.catalogue.accept(entry, tool)
        return replace(changes, changed=())

    def accept(self, tool: "KnownTool") -> None:
        """Let the changed definition of a tool count, since the user has said yes to it."""
        self.catalogue.accept(self._slots[tool.server].entry, tool)
