"""One run of a server, from its start to its end, and the calls that go to it.

The rule: nothing of it is left when `run` returns. However it ends, whoever waits is told why, and nothing that a
server does raises more than a `ToolError` of the call that asked it.
"""

import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio import CancelScope, Lock, create_task_group, fail_after
from anyio.abc import TaskGroup
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    Implementation,
    ListRootsResult,
    PromptListChangedNotification,
    Result,
    Root,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl, ValidationError

from panpan.capabilities.mcp.bearer import Bearer, silence_library
from panpan.capabilities.mcp.catalogue import MAX_PROMPTS
from panpan.capabilities.mcp.definitions import MAX_TOOLS, Listing
from panpan.capabilities.mcp.elicitation import ask_form, ask_to_open
from panpan.capabilities.mcp.entries import ServerEntry
from panpan.capabilities.mcp.logins import Logins
from panpan.capabilities.mcp.logs import ServerLog, log_file
from panpan.capabilities.mcp.pending_call import PRESENT, PendingCall, reason_of
from panpan.capabilities.mcp.server_tasks import TaskExtension, cancel, result_of
from panpan.capabilities.mcp.transport import (
    Mender,
    Streams,
    bound_answer,
    host_streams,
    http_streams,
    program_streams,
)
from panpan.errors import HookRefusedError, PanpanError, ToolError
from panpan.session.host import Host
from panpan.system.files.canonical import canonical_path
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox
from panpan.system.sandbox.server_process import server_process
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import without_tags
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.permission import UserAsker
from panpan.version import __version__

_END_S = 1.0
"""Seconds that a program has to end by itself once its input is closed."""
_LIST_S = 30.0
_DAY_S = 86_400.0
_MAX_PAGES = 100
_MOST_RESOURCES = 500
_MAX_TITLE_CHARS = 100
_TYPED = compile_late(r"[!#-~]{1,500}")
"""Addresses that need no quotes in a mention."""
_SETTLE_S = 0.2
"""Changes of a list within this time are looked at together."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The place where servers of a session run."""

    project: Path
    """Canonical root of the project."""
    environment: Mapping[str, str]
    """Variables that programs get; no keys."""
    sandbox: CommandSandbox
    ask: UserAsker | None = None
    """Asks the user what servers want to know; None: nobody is there."""
    logins: Logins | None = None
    """Logins of the user; None: servers have those of their headers alone."""
    tell: Callable[[str, str, Mapping[str, Any]], Awaitable[None]] | None = None
    """Tells the user's hooks of an event, a name for their matchers, and what happens; see `HooksOfUser.tell`."""
    host: Host | None = None
    """The program that runs panpan, with servers of its own; None if there is none."""
    logs: Path | None = None
    """Folder of the logs of servers; None keeps none."""

    @property
    def can_ask(self) -> bool:
        """True if somebody is there who may answer what servers ask."""
        return self.ask is not None or (self.host is not None and self.host.answers_servers)


class Connection:
    """A server that runs, or is spoken to.

    Args:
        entry: The server.
        surroundings: Its place.
        listed: Told what it says of itself, at the start and when that changes.
    """

    def __init__(
        self, entry: ServerEntry, surroundings: Surroundings, listed: Callable[[Listing], Awaitable[None]]
    ) -> None:
        self.entry = entry
        self.listing = Listing()
        self.resources: Mapping[str, str] = {}
        """Addresses of its resources that can be typed, each with its title."""
        self.ready = anyio.Event()
        """Set when it can be asked, or has failed."""
        self.failure = ""
        """Reason why it cannot be used any more; empty while it can."""
        self.started_at = 0.0
        self.ended = anyio.Event()
        """Set when nothing is left of it."""
        self._surroundings = surroundings
        logs = surroundings.logs
        self._log = ServerLog(log_file(logs, entry, surroundings.project) if logs is not None else None, entry)
        self._listed = listed
        self._stop = anyio.Event()
        self._changed = anyio.Event()
        self._client: Client | None = None
        self._group: TaskGroup | None = None
        self.questions = 0
        """Questions of the server that wait for the user; then it is not silent."""
        self._asking = Lock()
        self.mender = Mender()
        self._status = 0
        """Status of the last answer that was an error."""
        self._refusal = ""
        """Reason why the server refused to start; empty if it did not."""
        self.wants_login = False
        """True if it did not start for want of a login, which the user may get at any time."""

    @property
    def is_ending(self) -> bool:
        """True if it can be asked nothing more."""
        return self._stop.is_set() or self.ended.is_set()

    def stop(self) -> None:
        """Let it end."""
        self._stop.set()

    async def run(self) -> None:
        """Start it, and keep it until it ends or is stopped."""
        silence_library()
        self.started_at = anyio.current_time()
        self._log.note(f"starts: {self.entry.title}")
        try:
            async with self._streams() as streams:
                await self._speak(streams)
        except (Exception, BaseExceptionGroup) as error:
            if not self.failure and not self._stop.is_set():
                status = f" (HTTP status {self._status})" if self._status else ""
                self.failure = self._shown(self._refusal or f"{reason_of(error)}{status}")
            log.debug("the server %s has failed", self.entry.name, exc_info=True)
        finally:
            self._client = None
            self._log.end(self.failure or "was ended")
            self.ready.set()

    async def _speak(self, streams: Streams) -> None:
        entry = self.entry
        client = Client(
            _Given(streams),
            client_info=Implementation(name="panpan", version=__version__),
            list_roots_callback=self._roots,
            elicitation_callback=self._elicit if self._surroundings.can_ask else None,
            message_handler=self._take_news,
            extensions=[TaskExtension(PRESENT.get, self._answer)],
            cache=None,
        )
        with CancelScope(deadline=anyio.current_time() + entry.settings.start_s) as scope:
            async with create_task_group() as group:
                group.start_soon(self._end_if_stopped_early, scope)
                async with client:
                    await self._list(client)
                    scope.deadline = math.inf
                    self._client, self._group = client, group
                    self._refusal, self.wants_login = "", False  # it has refused what is not needed
                    self.ready.set()
                    try:
                        await self._follow(client, group)
                    finally:
                        self._client = None
                group.cancel_scope.cancel("the server is not needed any more")
        if scope.cancelled_caught and not self._stop.is_set():
            self._fail(f"did not start within {entry.settings.start_s:g} s")

    async def _end_if_stopped_early(self, scope: CancelScope) -> None:
        await self._stop.wait()
        if not self.ready.is_set():
            scope.cancel("the server is stopped")

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[Streams, None]:
        entry, place = self.entry, self._surroundings
        if entry.transport == "host":
            if place.host is None:
                raise ToolError("is in the program that runs panpan, and none does")
            async with host_streams(entry.name, place.host, self.mender) as streams:
                yield streams
            return
        if entry.transport != "stdio":
            async with http_streams(entry, self._http_client, self.mender) as streams:
                yield streams
            return
        argv = (entry.settings.command or "", *entry.settings.args)
        own = {name: value.get_secret_value() for name, value in entry.settings.env.items()}
        cwd, bounds = _folder_of(entry.settings.cwd or ".", place), _bounds(entry, place)
        if entry.is_boxed and not place.sandbox.is_on:
            raise ToolError(
                "has to run in the sandbox, which is off (sandbox.mode); as a server of your own it may run without it"
            )
        if entry.is_boxed and await place.sandbox.is_missing():
            raise ToolError("has to run in the sandbox, and none works here; `panpan doctor` says why")
        async with (
            server_process(argv, cwd, {**place.environment, **own}, place.sandbox, bounds, end_s=_END_S) as process,
            create_task_group() as group,
        ):
            group.start_soon(process.keep_errors, self._log.take)
            async with program_streams(process, self._fail, self.mender) as streams:
                yield streams
            group.cancel_scope.cancel("the server is not needed any more")

    def _http_client(self, **_: Any) -> httpx2.AsyncClient:
        entry = self.entry
        headers = {name: value.get_secret_value() for name, value in entry.settings.headers.items()}
        logins, has_own = self._surroundings.logins, "authorization" in {name.lower() for name in headers}
        bearer = None if logins is None or has_own else Bearer(entry, logins, self._note_refusal)
        return httpx2.AsyncClient(
            auth=bearer,
            headers={"User-Agent": f"panpan/{__version__}", "Accept-Encoding": "identity", **headers},
            timeout=httpx2.Timeout(entry.settings.start_s, read=entry.silence_s),
            event_hooks={"response": [self._note_status, bound_answer]},
        )

    def _note_refusal(self, why: str, *, wants_login: bool) -> None:
        """Note why the present request was refused: it is that of a call, or one of the start."""
        call = PRESENT.get(None)
        if call is not None:
            call.note_refusal(f"the MCP server {self.entry.name} {why}")
        elif not self.ready.is_set():
            self._refusal, self.wants_login = why, wants_login

    async def _note_status(self, response: httpx2.Response) -> None:
        self._status = response.status_code if response.is_error else 0

    def _fail(self, why: str) -> None:
        """Note why it cannot be used any more, and end it."""
        self.failure = self.failure or self._shown(why)
        self.stop()

    def _shown(self, why: str) -> str:
        """Return a reason without values that may be secrets, and without tags of panpan's own."""
        return without_tags(self.entry.without_values(why))

    async def _roots(self, context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(self._surroundings.project.as_uri()))])

    async def _elicit(
        self, context: Any, params: ElicitRequestFormParams | ElicitRequestURLParams
    ) -> ElicitResult | ErrorData:
        self.questions += 1
        try:
            async with self._asking:
                if isinstance(params, ElicitRequestURLParams):
                    await self._tell("Elicitation", message=params.message, mode=params.mode, url=params.url)
                else:
                    form = params.requested_schema
                    await self._tell("Elicitation", message=params.message, mode=params.mode, requested_schema=form)
                answer = await self._answer_of_program(params) or await self._answer_of_user(params)
                await self._tell("ElicitationResult", mode=params.mode, **answer)
        except HookRefusedError:
            answer = {"action": "decline"}
        finally:
            self.questions -= 1
        return ElicitResult.model_validate(answer)

    async def _answer_of_program(
        self, params: ElicitRequestFormParams | ElicitRequestURLParams
    ) -> Mapping[str, Any] | None:
        """Return the answer of the program that runs panpan; None if it has none that a server could read."""
        host = self._surroundings.host
        if host is None or not host.answers_servers:
            return None
        question = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            answer = await host.answer_server(self.entry.name, question)
            return ElicitResult.model_validate(answer).model_dump(include={"action", "content"}, exclude_none=True)
        except (ToolError, ValidationError) as error:
            log.debug("the program does not answer the question of %s: %s", self.entry.name, error)
            return None

    async def _answer_of_user(self, params: ElicitRequestFormParams | ElicitRequestURLParams) -> Mapping[str, Any]:
        ask, server = self._surroundings.ask, self.entry.name
        if ask is None:
            return {"action": "decline"}
        if isinstance(params, ElicitRequestURLParams):
            return await ask_to_open(server, params.message, params.url, ask)
        return await ask_form(server, params.message, params.requested_schema, ask)

    async def _tell(self, event: str, **told: Any) -> None:
        if (tell := self._surroundings.tell) is not None:
            await tell(event, self.entry.name, {"mcp_server_name": self.entry.name, **told})

    async def _take_news(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification | PromptListChangedNotification):
            self._changed.set()

    async def _list(self, client: Client) -> None:
        tools: list[Mapping[str, Any]] = []
        self.mender.begin()
        if client.server_capabilities.tools is not None:
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += (tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools)
                if (cursor := page.next_cursor) is None or len(tools) > MAX_TOOLS or self.mender.room < 0:
                    break
        prompts, left_out = await self._prompts(client), tuple(self.mender.left_out)
        self.resources = await self._offered_resources(client)
        self.listing = Listing(tools, client.instructions or "", prompts, left_out)
        await self._listed(self.listing)

    async def _prompts(self, client: Client) -> Sequence[Mapping[str, Any]]:
        if client.server_capabilities.prompts is None:
            return ()
        prompts: list[Mapping[str, Any]] = []
        cursor: str | None = None
        try:
            for _ in range(_MAX_PAGES):
                page = await client.list_prompts(cursor=cursor)
                prompts += (prompt.model_dump(by_alias=True, exclude_none=True, mode="json") for prompt in page.prompts)
                if (cursor := page.next_cursor) is None or len(prompts) > MAX_PROMPTS:
                    break
        except (MCPError, ValueError) as error:  # its tools count all the same
            log.debug("the server %s does not list its prompts: %s", self.entry.name, error)
        return prompts

    async def _offered_resources(self, client: Client) -> Mapping[str, str]:
        """Return the first resources of the server; it may have many, and they are only offered."""
        if client.server_capabilities.resources is None:
            return {}
        try:
            page = await client.list_resources()
        except (MCPError, ValueError) as error:  # its tools count all the same
            log.debug("the server %s does not list its resources: %s", self.entry.name, error)
            return {}
        named = {str(one.uri): clean_line(one.title or one.name)[:_MAX_TITLE_CHARS] for one in page.resources}
        return {uri: title for uri, title in list(named.items())[:_MOST_RESOURCES] if _TYPED.fullmatch(uri)}

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """Return the messages of a prompt, as the server sends them.

        Raises:
            ToolError: The server refuses, or does not answer in time.
        """
        with self._asked() as client, fail_after(self.entry.settings.start_s):
            result = await client.get_prompt(name, dict(arguments))
        return [message.model_dump(by_alias=True, mode="json") for message in result.messages]

    async def read(self, uri: str) -> Sequence[Mapping[str, Any]]:
        """Return the contents of a resource, as the server sends them.

        Raises:
            ToolError: The server refuses, or does not answer in time.
        """
        with self._asked() as client, fail_after(self.entry.settings.start_s):
            result = await client.read_resource(uri)
        return [one.model_dump(by_alias=True, mode="json") for one in result.contents]

    @contextmanager
    def _asked(self) -> Iterator[Client]:
        """Give the client for one request, and turn its errors into a ToolError."""
        if self._client is None:
            raise ToolError(f"the MCP server {self.entry.name} {self.failure or 'was ended'}")
        asked = PendingCall()
        token = PRESENT.set(asked)
        try:
            yield self._client
        except PanpanError:
            raise
        except Exception as error:
            why = asked.refusal or f"the MCP server {self.entry.name} {self.failure or reason_of(error)}"
            raise ToolError(why) from error
        finally:
            PRESENT.reset(token)

    async def _follow(self, client: Client, group: TaskGroup) -> None:
        """List the tools again when the server says that they have changed, until it is stopped."""
        tools = client.server_capabilities.tools
        if tools is not None and tools.list_changed and client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            group.start_soon(self._listen, client)
        group.start_soon(self._list_again, client)
        await self._stop.wait()

    async def _list_again(self, client: Client) -> None:
        while True:
            await self._changed.wait()
            await anyio.sleep(_SETTLE_S)
            self._changed = anyio.Event()
            try:
                with fail_after(_LIST_S):
                    await self._list(client)
            except (MCPError, TimeoutError, ValueError) as error:  # the old list goes on to count
                log.debug("the server %s does not list its tools: %s", self.entry.name, error)

    async def _listen(self, client: Client) -> None:
        try:
            has_prompts = client.server_capabilities.prompts is not None
            async with client.listen(tools_list_changed=True, prompts_list_changed=has_prompts) as events:
                async for _ in events:
                    self._changed.set()
        except (MCPError, ListenNotSupportedError, TimeoutError, RuntimeError, ValueError) as error:
            log.debug("the server %s tells of no changes: %s", self.entry.name, error)

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> PendingCall:
        """Let the server work on a call.

        Raises:
            ToolError: It has ended.
        """
        pending = PendingCall()

        async def call(client: Client) -> CallToolResult:
            return await client.call_tool(
                tool,
                dict(arguments),
                read_timeout_seconds=_DAY_S,  # its tool looks at the time, but not while the user is asked
                progress_callback=pending.note,
            )

        return self._run(pending, call)

    def follow(self, task_id: str) -> PendingCall:
        """Follow a task of the server that an earlier call began.

        Raises:
            ToolError: The server has ended.
        """
        pending = PendingCall()
        pending.note_task(task_id)
        return self._run(pending, lambda client: result_of(client.session, task_id, pending, self._answer))

    async def end_task(self, task_id: str) -> bool:
        """Tell the server that nobody waits for a task any more; return True if it has taken that."""
        return self._client is not None and await cancel(self._client.session, task_id)

    def _run(self, pending: PendingCall, call: Callable[[Client], Awaitable[CallToolResult]]) -> PendingCall:
        client, group = self._client, self._group
        if client is None or group is None:
            raise ToolError(f"the MCP server {self.entry.name} {self.failure or 'was ended'}")

        async def run() -> None:
            PRESENT.set(pending)
            await pending.run(partial(call, client), self._why_gone)

        group.start_soon(run)
        return pending

    def _why_gone(self) -> str:
        why = self.failure or ("was ended" if self._stop.is_set() else "")
        return why and f"the MCP server {self.entry.name} {why}"

    async def _answer(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a question of a task; only those to the user and for roots are answered."""
        answer: Result | ErrorData
        if method == "elicitation/create" and self._surroundings.can_ask:
            kind = ElicitRequestURLParams if params.get("mode") == "url" else ElicitRequestFormParams
            answer = await self._elicit(None, kind.model_validate(params, by_name=False))
        elif method == "roots/list":
            answer = await self._roots(None)
        else:
            answer = ElicitResult(action="cancel")
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


class _Given:
    """Streams that are open already, in the form that the library opens."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    async def __aenter__(self) -> Streams:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        for stream in self._streams:
            await stream.aclose()


def _folder_of(written: str, place: Surroundings) -> Path:
    return place.project / Path(written).expanduser()


def _bounds(entry: ServerEntry, place: Surroundings) -> Bounds:
    """Return the box of a program."""
    if not entry.is_boxed:
        return Bounds(is_read_only=False, is_outside=True)
    writes = [canonical_path(Path(folder)) for folder in entry.folders]
    if moved := [str(path) for path, folder in zip(writes, entry.folders, strict=True) if str(path) != folder]:
        raise ToolError(f"a folder that it may change leads elsewhere now, to {moved[0]}")
    hosts = entry.settings.network
    return Bounds(
        is_read_only=True,
        is_server=True,
        roots=(place.project,),
        opened=frozenset(writes),
        has_network="*" in hosts,
        hosts=() if "*" in hosts else hosts,
    )
