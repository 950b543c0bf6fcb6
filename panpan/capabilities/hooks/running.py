"""Running hooks: all that an event means side by side, each as a program without a terminal, or as a request."""

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any, TypeAlias

import anyio

from panpan.capabilities.hooks.actions import Command, HostCall, Judgement, Request, ServerCall
from panpan.capabilities.hooks.configuration import Handler
from panpan.capabilities.hooks.contract import Answer, HookRun, is_answer, read_answer
from panpan.errors import ToolError
from panpan.system.processes.process import capture
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_VARIABLE = compile_late(r"\$(?:\{(?P<braced>\w+)\}|(?P<name>\w+))")
_MOST_BYTES = 1_000_000
"""Most that is read of a hook's output."""


@dataclass(frozen=True, slots=True)
class Server:
    """Access to servers for hooks that ask one."""

    network: WebNetwork
    user_agent: str
    variables: Mapping[str, str]
    """The environment of panpan, of which a hook gets what it names."""


@dataclass(frozen=True, slots=True)
class Said:
    """A hook, and what it said."""

    handler: Handler
    answer: Answer
    duration_ms: int


AskSession: TypeAlias = Callable[[Judgement | ServerCall | HostCall, Mapping[str, Any], float], Awaitable[HookRun]]
"""Asks a model, a tool of a server, or the program that runs panpan, about what a hook is told, within so many
seconds."""


Watch: TypeAlias = Callable[[Handler], AbstractContextManager[Callable[[Answer], None]]]
"""Is entered when a hook begins and left when it ends; takes the answer, if one comes."""


@contextmanager
def unwatched(handler: Handler) -> Generator[Callable[[Answer], None], None, None]:
    """Let a hook run without telling anybody."""
    yield lambda _: None


async def no_session(asked: Judgement | ServerCall | HostCall, told: Mapping[str, Any], timeout_s: float) -> HookRun:
    """Return that nobody is asked, as outside of a session."""
    needed = "a model that judges" if isinstance(asked, Judgement) else "MCP servers"
    return HookRun(failure=f"only a session has {needed}")


async def run_all(
    runs: Sequence[tuple[Handler, Mapping[str, Any]]],
    *,
    cwd: Path,
    env: Mapping[str, str],
    server: Server,
    ask_session: AskSession = no_session,
    watch: Watch = unwatched,
) -> Sequence[Said]:
    """Run hooks side by side, each with what it is told, and return what they said, in their order.

    Args:
        runs: The hooks, and what each is told.
        cwd: Working directory of programs.
        env: Environment of programs.
        server: What a request needs.
        ask_session: Asks a model, or a tool of a server.
        watch: Told of each beginning and each end.
    """
    said: dict[int, Said] = {}

    async def run(number: int, handler: Handler, told: Mapping[str, Any]) -> None:
        started_at = perf_counter()
        with watch(handler) as take:
            answer = await ask(handler, told)
            take(answer)
        said[number] = Said(handler, answer, round(1000 * (perf_counter() - started_at)))

    async def ask(handler: Handler, told: Mapping[str, Any]) -> Answer:
        match handler.action:
            case Command() as command:
                ran = await _run_command(command, handler, told, cwd=cwd, env=env)
            case Request() as request:
                # no key of panpan's own leaves by what somebody else wrote
                asked = server if handler.plugin is None else replace(server, variables=env)
                ran = await _ask(request, handler, told, asked)
            case Judgement() | ServerCall() | HostCall() as asked:
                ran = await ask_session(asked, {**told, "hook_event_name": handler.event}, handler.timeout_s)
                if isinstance(asked, ServerCall) and handler.is_guard and not ran.failure and not is_answer(ran.stdout):
                    ran = HookRun(failure="what the tool returned says nothing to a hook")
        return read_answer(handler.event, ran)

    async with anyio.create_task_group() as tasks:
        for number, (handler, told) in enumerate(runs):
            tasks.start_soon(run, number, handler, told)
    return [said[number] for number in range(len(runs))]


async def _ask(request: Request, handler: Handler, told: Mapping[str, Any], server: Server) -> HookRun:
    """Send a hook's server what the hook is told. The address is the user's own, and leads to no other one."""
    allowed = {name: server.variables.get(name, "") for name in request.variables}
    headers = {
        name: _VARIABLE.sub(lambda found: allowed.get(found["name"] or found["braced"], ""), value).strip()
        for name, value in request.headers
    }
    content = json.dumps({**told, "hook_event_name": handler.event}).encode()
    try:
        with anyio.fail_after(handler.timeout_s):
            async with (
                GuardedClient(server.network, user_agent=server.user_agent, own=(request.url,)) as client,
                client.stream(
                    "POST",
                    request.url,
                    headers={"content-type": "application/json", **headers},
                    content=content,
                    timeout_s=handler.timeout_s,
                    max_redirects=0,
                ) as response,
            ):
                body = await response.read(_MOST_BYTES, within_s=handler.timeout_s)
    except TimeoutError:
        return HookRun(failure=f"it took longer than {handler.timeout_s:g} s and was left")
    except (ToolError, ValueError) as error:
        return HookRun(failure=str(error))
    if not 200 <= response.status < 300:
        return HookRun(failure=f"the server answered {response.status}")
    return HookRun(stdout=body.decode("utf-8", errors="replace"))


async def _run_command(
    command: Command, handler: Handler, told: Mapping[str, Any], *, cwd: Path, env: Mapping[str, str]
) -> HookRun:
    """Run a command with what its hook is told on the standard input. Nothing that it starts runs on."""
    argv = ["/bin/sh", "-c", *command.argv] if command.is_line else list(command.argv)
    if handler.plugin is not None:  # what it compiles would count as a change of the plug-in
        env = {**env, **handler.plugin.variables, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        with TemporaryFile() as stdin:
            stdin.write(json.dumps({**told, "hook_event_name": handler.event}).encode())
            stdin.seek(0)
            ended = await capture(
                argv, cwd=cwd, env=env, timeout_s=handler.timeout_s, max_bytes=_MOST_BYTES, stdin=stdin
            )
    except (ToolError, OSError) as error:  # such as a full disk
        return HookRun(failure=str(error))
    stdout, stderr = (text.decode("utf-8", errors="replace") for text in (ended.stdout, ended.stderr))
    if ended.timed_out:
        return HookRun(failure=f"it took longer than {handler.timeout_s:g} s and was ended")
    if ended.is_truncated:
        return HookRun(failure=f"it printed more than {_MOST_BYTES:,} bytes and was ended")
    return HookRun(ended.exit_code, stdout, stderr)
