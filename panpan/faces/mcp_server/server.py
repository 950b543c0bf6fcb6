"""The server: its tools, and one answer for each request of a client.

The rule: a client may only be stricter than the command line that started the server, and works only in the folders
that it serves.
"""

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, TypeAlias
from uuid import UUID

import anyio
import mcp_types as types
from anyio import create_task_group, to_thread
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from panpan.cli_kit.failures import report_failure
from panpan.cli_kit.serving import ArgsT, ServedPlace, ServedTool
from panpan.config.locations import Locations
from panpan.config.project_limits import STRICTNESS
from panpan.config.sources import load_settings
from panpan.core.tool import input_schema
from panpan.core.tool_call import wrong_arguments
from panpan.errors import PanpanError, ToolError, unwrap_single_exception
from panpan.faces.mcp_server.forms import Filled
from panpan.faces.mcp_server.session_search import SESSION_SEARCH, begun_in
from panpan.faces.mcp_server.turns import Question, Turn, Turns, unexpected
from panpan.session.frontend import SessionConfig, SessionOptions
from panpan.session.stored.store import session_path, summary_of
from panpan.types.permission import PermissionMode
from panpan.version import __version__

MAX_PROMPT_CHARS = 1_000_000
ANSWER_S = 600.0
"""Seconds that a client has to answer a question."""
_ASKED = "answer"
"""Key of the only input request of a result."""
_DAY_MS = 86_400_000
_INVALID_STATE = "Invalid or expired requestState"

_INSTRUCTIONS = (
    "panpan is a coding agent. The tool panpan gives it a task, which it works on in a folder of this machine. "
    "It asks for permission by elicitation; without that, it does only what needs no permission."
)

Context: TypeAlias = ServerRequestContext[Turns, Any]
Answer: TypeAlias = types.CallToolResult | types.InputRequiredResult


def _not_blank(prompt: str) -> str:
    if not prompt.strip():
        raise ValueError("is empty; say what panpan is to do")
    return prompt


def _session_id(name: str) -> str:
    try:
        is_id = str(UUID(name)) == name
    except ValueError:
        is_id = False
    if not is_id:
        raise ValueError("is not the id of a session; session_search finds them")
    return name


class TaskInput(BaseModel):
    """Arguments of the tool `panpan`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: Annotated[str, AfterValidator(_not_blank)] = Field(
        max_length=MAX_PROMPT_CHARS, description="The task, in words"
    )
    cwd: str = Field(default=".", description="Folder to work in, absolute or relative to the first served folder")
    max_usd: float | None = Field(default=None, gt=0, description="Most US dollars that the session may cost")
    mode: PermissionMode | None = Field(
        default=None, description="Permission mode, if it is stricter than the server's; plan changes nothing"
    )
    session: Annotated[str, AfterValidator(_session_id)] | None = Field(
        default=None,
        description="Id of an earlier session of this folder to continue",
    )


_TASK = types.Tool(
    name="panpan",
    title="Give panpan a task",
    description="Give a task to panpan, a coding agent: it reads, edits and runs what the task needs in a folder, and "
    "returns its final answer. The session stays on disk, so that a later call can continue it.",
    input_schema=input_schema(TaskInput),
    output_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string"},
            "subtype": {"type": "string"},
            "is_error": {"type": "boolean"},
            "result": {"type": "string"},
            "stop_reason": {"type": ["string", "null"]},
            "total_cost_usd": {"type": ["number", "null"]},
            "usage": {"type": "object"},
        },
        "required": ["session_id", "subtype", "is_error", "result"],
    },
    annotations=types.ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    ),
)
_READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


_MOST_READERS = 2
"""Most calls of tools that only read at the same time; each has a thread."""


class PanpanServer:
    """Answers the requests of clients.

    Args:
        place: The folders that it serves, and the settings there.
        tools: Tools of features that only read.
        warn: Prints one line on standard error.
        answer_s: Seconds that a client has to answer a question.
    """

    def __init__(
        self,
        place: ServedPlace,
        tools: Sequence[ServedTool[Any]],
        warn: Callable[[str], None],
        *,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._place = place
        self._answer_s = answer_s
        self._tools = {tool.name: tool for tool in (*tools, SESSION_SEARCH)}
        self._warn = warn
        self._readers = anyio.Semaphore(_MOST_READERS)
        self.protocol: Server[Turns] = Server(
            "panpan",
            title="panpan",
            version=__version__,
            instructions=_INSTRUCTIONS,
            cache_hints={"tools/list": CacheHint(_DAY_MS, "public"), "server/discover": CacheHint(_DAY_MS, "public")},
            lifespan=_turns,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        security = RequestStateSecurity.ephemeral(ttl=answer_s)
        self.protocol.middleware.append(RequestStateBoundary(security, default_audience="panpan"))

    async def _list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        reading = [
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=input_schema(tool.input_model),
                annotations=_READS,
            )
            for _, tool in sorted(self._tools.items())
        ]
        return types.ListToolsResult(tools=[*reading, _TASK])

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        arguments, tool = params.arguments or {}, self._tools.get(params.name)
        try:
            with unwrap_single_exception():
                if params.name == _TASK.name:
                    return await self._work(ctx, params, arguments)
                if tool is None:
                    raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:100]}")
                parsed = _parsed(tool.name, tool.input_model, arguments)
                return _result(await self._read(tool, parsed))
        except PanpanError as error:
            return _result(str(error), is_error=True)
        except MCPError:
            raise
        except Exception as error:  # the client gets no traceback
            report_failure(error)
            return _result(unexpected(error), is_error=True)

    async def _read(self, tool: ServedTool[Any], parsed: Any) -> str:
        """Run a tool that only reads, few at a time; without a caller it ends when it next looks whether to go on."""
        async with self._readers, create_task_group() as group:
            keeps_going = threading.Event()
            keeps_going.set()

            async def stop_with_call() -> None:
                try:
                    await anyio.sleep_forever()
                finally:
                    keeps_going.clear()

            group.start_soon(stop_with_call)
            result = await to_thread.run_sync(tool.run, parsed, self._place, keeps_going.is_set)
            group.cancel_scope.cancel("there is a result")
        return result

    async def _work(self, ctx: Context, params: types.CallToolRequestParams, arguments: Mapping[str, Any]) -> Answer:
        """Begin a turn, or go on with one that waits for the answer in this request."""
        turns = ctx.lifespan_context
        if params.request_state is None:
            parsed = _parsed(_TASK.name, TaskInput, arguments)
            config = await to_thread.run_sync(self.config, parsed)
            answer_s = self._answer_s if _can_ask(ctx) else None
            turn = Turn(config, parsed.prompt, answer_s=answer_s, warn=self._warn)
            turns.start(turn)
        else:
            if (held := turns.take(params.request_state)) is None:
                raise MCPError(
                    code=types.INVALID_PARAMS, message=_INVALID_STATE, data={"reason": "invalid_request_state"}
                )
            turn, question = held
            given = (params.input_responses or {}).get(_ASKED)
            question.answer(_filled(given) if isinstance(given, types.ElicitResult) else Filled())
        return await _while_there(ctx, partial(_follow, ctx, turns, turn))

    def config(self, given: TaskInput) -> SessionConfig:
        """Return the session of a call; blocks.

        Raises:
            PanpanError: It is not allowed, or a setting is wrong.
        """
        folder = self._place.folder(given.cwd)
        locations = Locations.find(folder, self._place.env)
        settings = load_settings(folder, self._place.env, self._place.overrides, locations).settings
        overrides = dict(self._place.overrides)
        if given.mode is not None:
            if STRICTNESS[given.mode] < STRICTNESS[settings.permission.mode]:
                raise ToolError(
                    f"the mode {given.mode} allows more than {settings.permission.mode}, the mode of this server; "
                    "leave it out or name a stricter one"
                )
            overrides["permission.mode"] = given.mode
        if given.max_usd is not None:
            own = settings.max_budget_usd
            overrides["max_budget_usd"] = given.max_usd if own is None else min(given.max_usd, own)
        options: SessionOptions = {"overrides": overrides, "env": self._place.env}
        if given.session is not None:
            self._require_own(given.session, locations)
            options["session"] = given.session
        return SessionConfig(folder, options)

    def _require_own(self, session_id: str, locations: Locations) -> None:
        """Refuse a session that was not begun in the served folders, as if it did not exist."""
        summary = summary_of(session_path(locations.sessions_folder, session_id))
        if summary is None or not begun_in(summary, self._place):
            raise ToolError(f"there is no session {session_id} of this folder; leave session out to begin one")


@asynccontextmanager
async def _turns(_: Server[Turns]) -> AsyncGenerator[Turns, None]:
    async with create_task_group() as group:
        try:
            yield Turns(group)
        finally:
            group.cancel_scope.cancel("the server ends")


def _parsed(name: str, model: type[ArgsT], arguments: Mapping[str, Any]) -> ArgsT:
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        raise ToolError(wrong_arguments(name, error)) from error


async def _while_there(ctx: Context, answer: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return an answer, or give it up when the client hangs up.

    Of the older era, the library lets a call go on then, in case that its stream is resumed. Ours cannot be resumed.
    """
    request = ctx.request
    if not isinstance(request, Request) or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return await answer()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel("the client has gone")

    async with create_task_group() as group:
        group.start_soon(watch)
        given = await answer()
        group.cancel_scope.cancel("there is an answer")
        return given
    raise MCPError(code=types.INTERNAL_ERROR, message="the client has gone")


async def _follow(ctx: Context, turns: Turns, turn: Turn) -> Answer:
    """Tell a client of a turn until it is over, or until the client has to answer a question in another request."""
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    count = 0
    try:
        while True:
            news = turn.news
            while turn.lines:
                count += 1
                await ctx.session.report_progress(count, message=turn.lines.popleft())
            if turn.end is not None:
                return _result(turn.end.text, turn.end.result, is_error=turn.end.is_error)
            question = turn.question
            if question is None or question.closed.is_set():
                await news.wait()
            elif not _can_ask(ctx):
                question.answer(Filled())
            elif is_modern:
                params = types.ElicitRequestFormParams(
                    message=question.form.message, requested_schema=question.form.schema
                )
                requests: types.InputRequests = {_ASKED: types.ElicitRequest(params=params)}
                return types.InputRequiredResult(input_requests=requests, request_state=turns.hold(turn, question))
            else:
                await _elicit(ctx, question)
    finally:
        if turn.end is None and not turn.is_held:
            await turn.cancel()


async def _elicit(ctx: Context, question: Question) -> None:
    """Put a question to a client of the older era, until it is answered or closed."""

    async def withdraw() -> None:
        await question.closed.wait()
        group.cancel_scope.cancel("the question is closed")

    async with create_task_group() as group:
        group.start_soon(withdraw)
        try:
            given = await ctx.session.elicit_form(question.form.message, question.form.schema, ctx.request_id)
        except (MCPError, ValidationError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            question.answer(Filled())
        else:
            question.answer(_filled(given))


def _filled(given: types.ElicitResult) -> Filled:
    return Filled(is_accepted=given.action == "accept", is_persons=given.action != "cancel", content=given.content)


def _can_ask(ctx: Context) -> bool:
    """Return True if the client can put a form to a person; an empty capability means forms."""
    capabilities = ctx.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _result(text: str, result: Mapping[str, Any] | None = None, *, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    return types.CallToolResult(
        content=content, structured_content=None if result is None else dict(result), is_error=is_error
    )
