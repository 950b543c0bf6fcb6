"""MCP servers: their tools, found by search and called under the names that rules know.

The model gets two tools, `ToolSearch` and `CallTool`, whatever servers there are, so that the beginning of the requests
stays the same. What becomes known later is a reminder.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, to_thread

from panpan.capabilities.mcp.settings import PROJECT_FILE, McpServerSettings, agents_with_servers
from panpan.core.background import Background, Elsewhere, Job
from panpan.core.hooks import Hook, Round, ToolCall
from panpan.core.late_tool import late_tool
from panpan.core.tool import Tool, digest_of, is_enabled
from panpan.errors import ConfigError
from panpan.permissions.rules.rules import CALL_TOOL, SEARCH_TOOL, SERVER_PREFIX
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.session.context import SessionContext
from panpan.session.reminders import ReminderSource
from panpan.session.user_hooks import HooksOfUser
from panpan.system.text.terminal_text import clean_line
from panpan.types.events import TaskInfo
from panpan.types.messages import AssistantMessage, SystemReminder, UserMessage
from panpan.types.permission import Ask, Decision, Reason

if TYPE_CHECKING:
    from panpan.capabilities.mcp.connection import Surroundings
    from panpan.capabilities.mcp.logins import Logins
    from panpan.capabilities.mcp.servers import McpServers
    from panpan.session.host import Host

_MAX_DIRECT_NAME_CHARS = 64
"""Longest name of a tool that providers take."""
_STATUS = {"off": "disabled", "runs": "connected", "failed": "failed", "wants a login": "needs-auth"}
"""Words of stream-json for states; for the others it is "pending"."""
_MAX_LISTED_CHARS = 50
"""Most characters of what a server says of itself in the list."""


class McpCapability(Capability):
    """Speaks to MCP servers."""

    name = McpServerSettings.table

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        settings, places = session.settings.named(McpServerSettings), session.setup.loaded.places
        self._given = tuple(session.config.options.get("mcp_config") or ())
        has_any = bool(
            settings
            or self._given
            or PROJECT_FILE in places.trust.believed
            or any(server.kind == "mcp" for one in places.plugins for server in one.plugin.servers)
            or agents_with_servers(places)
        )
        self._login: CancelScope | None = None
        """The login that is under way, or was last."""
        self.servers: McpServers | None = self._made() if has_any else None
        """The servers; None where there are none, and nothing more is imported."""
        if self.servers is not None and (background := session.find(Background)) is not None:
            background.take_up(self.name, partial(self._take_up, self.servers, background))

    def _take_up(
        self, servers: "McpServers", background: Background, info: TaskInfo, what: str
    ) -> tuple[Job, Elsewhere]:
        from panpan.capabilities.mcp.long_calls import LongCall

        call = LongCall.kept(info, what, servers, self.session.tool_context.outputs, background)
        return call.go_on, call.elsewhere

    def _made(self) -> "McpServers | None":
        from panpan.capabilities.mcp.catalogue import Catalogue
        from panpan.capabilities.mcp.entries import GivenServers, environment_of, read_entries, read_entry
        from panpan.capabilities.mcp.servers import McpServers

        session, setup = self.session, self.session.setup
        known = read_entries(
            session.settings.named(McpServerSettings),
            setup.loaded.places,
            GivenServers(self._given, session.config.options.get("strict_mcp_config", False)),
            environment_of(setup.env, session.settings),
            setup.cwd,
        )
        for problem in known.problems:
            session.warn(clean_line(problem))
        if not known.entries:
            return None
        folder, own = setup.locations.home / "mcp", session.settings
        root = setup.locations.project_root
        catalogue = Catalogue(
            folder / "known", lambda name: is_enabled(name, own.tools.enabled, own.permission.deny), root
        )
        approvals = None
        if any(entry.needs_approval for entry in known.entries.values()):
            from panpan.capabilities.mcp.approvals import Approvals

            approvals = Approvals(folder, root)
        environment = environment_of(setup.env, session.settings)
        read = partial(read_entry, environment=environment, place="the program", origin="flag", project=root)
        servers = McpServers(known.entries, catalogue, approvals, self._surroundings, session.warn, read)
        if (host := session_host(session)) is not None:
            servers.take_listings(host.listings)
        return servers

    def _surroundings(self) -> "Surroundings":
        from panpan.capabilities.mcp.connection import Surroundings

        context, setup = self.session.tool_context, self.session.setup
        asker = self.session.frontend.askers.user
        hooks = self.session.capabilities.find(HooksOfUser)
        tell = None if hooks is None else hooks.tell
        return Surroundings(
            setup.locations.project_root,
            context.environment,
            context.sandbox,
            asker,
            self.logins,
            tell,
            session_host(self.session),
            setup.locations.home / "mcp" / "logs",
        )

    @cached_property
    def logins(self) -> "Logins":
        """The logins of the user."""
        from panpan.capabilities.mcp.issuers import Issuers
        from panpan.capabilities.mcp.logins import Logins, folder_below

        session = self.session
        return Logins(folder_below(session.setup.locations.home), Issuers(session.network, session.user_agent))

    def log_in_soon(self, name: str, terminal: Terminal) -> None:
        """Let the user log in at a server, in the browser, while the session goes on; it ends a login before."""
        servers = self.servers
        assert servers is not None
        if self._login is not None:
            self._login.cancel("another one takes its place")

        async def run() -> None:
            with CancelScope() as self._login:
                await self._log_in(servers, name, terminal)

        servers.run_soon(run)

    async def _log_in(self, servers: "McpServers", name: str, terminal: Terminal) -> None:
        from panpan.capabilities.mcp.authorization import LoginPage, log_in
        from panpan.system.processes.user_browser import show_in_browser

        async def show(page: LoginPage) -> None:
            say(terminal, page.lines)
            if await to_thread.run_sync(show_in_browser, page.address):
                note = "Your browser shows it. panpan waits for five minutes; another /mcp login takes its place."
            else:
                note = f"No browser was opened. For one elsewhere, log in with: panpan mcp login {name} --no-browser"
            say(terminal, note, "dim")

        try:
            login = await log_in(servers.entry(name), self.logins, show)
        except ConfigError as error:
            self.session.warn(clean_line(str(error)))
            return
        say(terminal, f"{name}: {login.about}")
        if servers.state(name) != "runs":
            servers.retry(name)
            servers.start_soon(name)

    def services(self) -> Iterable[object]:
        return (self,) if self.servers is None else (self, self.servers)

    def described(self) -> Mapping[str, Callable[[], object]]:
        return {"mcp_servers": self._rows}

    def _rows(self) -> object:
        servers = self.servers
        if servers is None:
            return []
        rows = []
        for one in servers.entries:
            row = {"name": one.name, "status": _STATUS.get(servers.state(one.name), "pending"), "scope": one.origin}
            if failure := servers.failure(one.name):
                row["error"] = failure
            rows.append(row)
        return rows

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        if self.servers is None:
            return
        yield late_tool(__package__, SEARCH_TOOL, "tool_search:ToolSearch", self.servers)
        # a run without a person ends with its turn, and what went on in the background would be lost
        may_move = agent.is_main and self.session.frontend.is_interactive
        background = self.session.find(Background) if may_move else None
        yield late_tool(__package__, CALL_TOOL, "call_tool:CallTool", self.servers, background)
        yield from self._direct(background)

    def _direct(self, background: Background | None) -> Iterable[Tool[Any]]:
        """Return the tools that the model has from the beginning."""
        servers = self.servers
        assert servers is not None
        direct = (entry.name for entry in servers.entries if entry.settings.exposure == "direct")
        known = {name: tool for server in direct for name, tool in servers.catalogue.tools_of(server).items()}
        offered = [tool for name, tool in sorted(known.items()) if len(name) <= _MAX_DIRECT_NAME_CHARS]
        if not offered:
            return ()
        from panpan.capabilities.mcp.call_tool import McpTool
        from panpan.capabilities.mcp.definitions import for_list

        return [McpTool.of(tool, servers, background) for tool in for_list(offered)]

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (_ReadsDefinitions(self.servers), _AsksForPerson()) if self.servers is not None else ()

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (_ListedServers(self.servers),) if self.servers is not None else ()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        trust = self.session.setup.loaded.trust
        if PROJECT_FILE in trust.files.content and trust.may_be_asked:
            self.session.warn(f"MCP servers of the project wait until you trust it: panpan trust ({PROJECT_FILE})")
        if self.servers is None:
            yield
            return
        if waiting := self.servers.waiting:
            names = ", ".join(entry.name for entry in waiting)
            self.session.warn(f"MCP servers of the project wait for your yes: {names}; /mcp shows what they would run")
        async with concurrently(self.servers.serve):
            yield

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        if self.servers is None or "@" not in message.text:
            return message
        from panpan.capabilities.mcp.offers import with_resources

        return await with_resources(message, self.servers, self.session.tool_context.outputs, self.session.warn)

    def session_commands(self) -> Iterable[Command]:
        if self.servers is None or not any(known.prompts for known in self.servers.catalogue.outlines.values()):
            return ()
        from panpan.capabilities.mcp.offers import prompt_commands

        return prompt_commands(self.servers)

    @classmethod
    def commands(cls) -> Iterable[Command]:
        arguments = "[approve|login|reconnect NAME]"
        return (Command("mcp", "Show the MCP servers", _mcp, arguments=arguments, is_immediate=True),)


def session_host(session: SessionContext) -> "Host | None":
    """Return the program that runs the session; None if there is none."""
    return session.config.options.get("host")


class _ReadsDefinitions(Hook):
    """Reads what is known of tools before the first call of one, beside the event loop."""

    def __init__(self, servers: "McpServers") -> None:
        self._catalogue = servers.catalogue

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        if self._catalogue.is_unread and any(use.name == CALL_TOOL for use in reply.tool_uses):
            await to_thread.run_sync(self._catalogue.load)


class _AsksForPerson(Hook):
    """Asks a person about a tool that its server has changed, or that wants one."""

    async def before_tool(self, call: ToolCall) -> Decision | None:
        if not call.tool.name.startswith(SERVER_PREFIX):
            return None
        from panpan.capabilities.mcp.call_tool import McpTool

        tool = call.tool
        if not isinstance(tool, McpTool):
            return None
        if tool.pending is not None:
            text = f"the MCP server {tool.known.server} has changed this tool since you accepted it"
            return Ask(Reason(text), is_protected=True)
        if tool.known.needs_person:
            return Ask(Reason(f"the MCP server {tool.known.server} wants a person to agree"), is_protected=True)
        return None


class _ListedServers(ReminderSource):
    """Tells the model which servers there are."""

    def __init__(self, servers: "McpServers") -> None:
        self._servers = servers

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if all(tool.name != SEARCH_TOOL for tool in round_.conversation.tools):
            return ()
        text = self._text()
        if not text:
            return ()
        return (SystemReminder(text=text, cause=f"mcp:servers:{digest_of(text.encode()).hex()}"),)

    def _text(self) -> str:
        lines = [self._line(entry.name) for entry in self._servers.usable]
        if not lines:
            return ""
        return "\n".join(["MCP servers, whose tools ToolSearch finds and CallTool calls:", *lines])

    def _line(self, name: str) -> str:
        known = self._servers.catalogue.outlines.get(name)
        if known is None:
            return f"- {name}: starts, ToolSearch waits for it"
        about = clean_line(known.instructions)
        about = f"{about[:_MAX_LISTED_CHARS].rstrip()}…" if len(about) > _MAX_LISTED_CHARS else about
        return f"- {name}, {known.tools:,} tools{f': {about}' if about else ''}"


async def _mcp(terminal: Terminal, rest: str) -> None:
    capability = terminal.session[McpCapability]
    servers = capability.servers
    if servers is None:
        say(terminal, "no MCP server is known; panpan mcp add adds one, in a shell")
        return
    from panpan.capabilities.mcp.entries import how_to_get_library

    word, _, name = rest.strip().partition(" ")
    name = name.strip()
    if not word:
        await _show(terminal, servers, capability.logins)
        return
    if word not in ("approve", "login", "reconnect") or name not in {entry.name for entry in servers.entries}:
        names = ", ".join(entry.name for entry in servers.entries)
        raise ConfigError(f"write /mcp, or /mcp with approve, login or reconnect and a name; there are {names}")
    entry = servers.entry(name)
    if word == "approve" and not entry.needs_approval:
        raise ConfigError(f"the MCP server {name} is your own and needs no approval")
    if word == "approve":
        await to_thread.run_sync(servers.approve, name)
        say_pairs(terminal, [(name, "\n".join(map(clean_line, entry.described())))])
        say(terminal, f"the MCP server {name} may run in this project, exactly so")
    if word == "login":
        if not servers.may_run(entry):
            raise ConfigError(f"the MCP server {name} is {servers.state(name)}; it has to be able to run first")
        if command := how_to_get_library():
            raise ConfigError(f"MCP servers need a library; install it with: {command}")
        capability.log_in_soon(name, terminal)
        return
    servers.retry(name)
    servers.start_soon(name)
    say(terminal, f"the MCP server {name} is starting; /mcp shows how it is", "dim")


async def _show(terminal: Terminal, servers: "McpServers", logins: "Logins") -> None:
    rows = []
    await to_thread.run_sync(servers.catalogue.load)
    for entry in servers.entries:
        known = servers.catalogue.server(entry.name)
        state = servers.state(entry.name)
        about = [state if known is None else f"{state}, {len(known.tools):,} tools"]
        if (failure := servers.failure(entry.name)) and state in ("failed", "wants a login"):
            about.append(failure)
        about += entry.described()
        if login := logins.get(entry.settings.url or ""):
            about.append(f"with your login: {login.about}")
        about += [f"left out: {problem}" for problem in (known.problems if known else ())]
        if known and known.pending:
            about.append(f"changed since you accepted them: {', '.join(known.pending)}")
        if state == "wants a login":
            about.append(f"/mcp login {entry.name} logs you in")
        if state == "waits for your yes":
            about.append(f"/mcp approve {entry.name} lets it run in this project, exactly so")
        rows.append((entry.name, "\n".join(map(clean_line, about))))
    say_pairs(terminal, rows)
