"""Tasks of servers: calls that a server works on by itself, and tells of when it is asked (MCP extension `tasks`).

Source: SEP-2663, the extension `io.modelcontextprotocol/tasks` of the revision 2026-07-28.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, ClassVar, Literal, Protocol

import anyio
from anyio import CancelScope, fail_after, move_on_after
from mcp import MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp_types import INVALID_PARAMS, CallToolResult, Request, RequestParams, Result

from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line

EXTENSION = "io.modelcontextprotocol/tasks"
_ANSWER_S = 60.0
_CANCEL_S = 2.0
_POLL_S = 1.0
_SHORTEST_POLL_S, _LONGEST_POLL_S = 0.05, 60.0
_MAX_CHARS = 500
_MAX_ID_CHARS = 1_000
_MOST_QUESTIONS = 100
_PATIENCE_S = 600.0
"""Seconds without an answer after which a task is given up: what stands before a server may be away for a moment."""


class Follower(Protocol):
    """Whoever waits for a task."""

    def note_task(self, task_id: str) -> None:
        """Take the name that the server has given to it."""

    def note_state(self, message: str) -> None:
        """Take how it is going; called at each answer."""


Answer = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Answers a question of the server: the method and its parameters."""


class ServerTask(Result):
    """A task that a server has made of a call; how it is, `tasks/get` tells."""

    result_type: Literal["task"] = "task"
    task_id: str


class _State(Result):
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    poll_interval_ms: float | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = None


class _Params(RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class _Ask(Request[_Params, str]):
    name_param: ClassVar[str | None] = "taskId"
    method: str = "tasks/get"


class TaskExtension(ClientExtension):
    """Says that panpan follows tasks, and does.

    Args:
        follower: Returns whoever waits for the call that is made now.
        answer: Answers questions of the server.
    """

    identifier = EXTENSION

    def __init__(self, follower: Callable[[], Follower], answer: Answer) -> None:
        self._follower = follower
        self._answer = answer

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=ServerTask, resolve=self._resolve)]

    async def _resolve(self, task: ServerTask, context: ClaimContext) -> CallToolResult:
        follower = self._follower()
        if not 0 < len(task.task_id) <= _MAX_ID_CHARS:
            raise ToolError(f"the server has made a task with a name of {len(task.task_id):,} characters")
        follower.note_task(task.task_id)
        return await result_of(context.session, task.task_id, follower, self._answer)


async def result_of(session: ClientSession, task_id: str, follower: Follower, answer: Answer) -> CallToolResult:
    """Ask a server for a task until it has ended, and return the result of the call.

    Raises:
        ToolError: It failed, or the server has ended it.
        MCPError: The server does not answer any more.
        ValueError: It answers what is no state of a task.
    """
    try:
        return await _followed(session, task_id, follower, answer)
    except _EndedError:
        raise
    except (ToolError, ValueError):  # the server may still work on it, for nobody
        await cancel(session, task_id)
        raise


class _EndedError(ToolError):
    """The server says that the task has ended without a result."""


async def _followed(session: ClientSession, task_id: str, follower: Follower, answer: Answer) -> CallToolResult:
    answered, failing_since, pause_s = set[str](), 0.0, _POLL_S
    while True:
        try:
            with fail_after(_ANSWER_S):
                state = await session.send_request(_Ask(params=_Params(task_id=task_id)), _State)
            follower.note_state(state.status_message or "")
            # a server that has not looked at an answer yet asks again
            new = {key: one for key, one in (state.input_requests or {}).items() if key not in answered}
            if state.status == "input_required" and new:
                if len(answered) + len(new) > _MOST_QUESTIONS:
                    raise ToolError(f"the task asks more than {_MOST_QUESTIONS} questions")
                await _answer_all(session, task_id, new, answer)
                answered |= new.keys()
        except (MCPError, TimeoutError) as error:  # it may answer again in a moment
            if isinstance(error, MCPError) and error.error.code == INVALID_PARAMS:
                raise _EndedError("the server does not know the task") from error
            failing_since = failing_since or anyio.current_time()
            if anyio.current_time() - failing_since > _PATIENCE_S:
                raise
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_POLL_S)
            continue
        failing_since, pause_s = 0.0, _POLL_S
        match state.status:
            case "completed":
                return CallToolResult.model_validate({"resultType": "complete", **(state.result or {})}, by_name=False)
            case "failed":
                why = (state.error or {}).get("message") or state.status_message or "it gives no reason"
                raise _EndedError(f"the server says that the task failed: {clean_line(str(why))[:_MAX_CHARS]}")
            case "cancelled":
                raise _EndedError("the server has ended the task")
            case _:
                interval = state.poll_interval_ms
                wait_s = interval / 1_000 if interval is not None and isfinite(interval) and interval > 0 else _POLL_S
                await anyio.sleep(min(max(wait_s, _SHORTEST_POLL_S), _LONGEST_POLL_S))


async def _answer_all(session: ClientSession, task_id: str, asked: Mapping[str, Any], answer: Answer) -> None:
    answers = {
        key: await answer(str(one.get("method")), one.get("params") or {})
        for key, one in asked.items()
        if isinstance(one, Mapping)
    }
    asking = _Ask(method="tasks/update", params=_Params(task_id=task_id, input_responses=answers))
    with fail_after(_ANSWER_S):
        await session.send_request(asking, Result)


async def cancel(session: ClientSession, task_id: str) -> bool:
    """Tell a server that nobody waits for a task any more; return True if it has taken that."""
    with CancelScope(shield=True), move_on_after(_CANCEL_S), suppress(MCPError, ValueError, RuntimeError):
        await session.send_request(_Ask(method="tasks/cancel", params=_Params(task_id=task_id)), Result)
        return True
    return False
