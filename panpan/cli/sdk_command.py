"""Runs a session for a program on the Claude Agent SDK, or any that sends its messages as lines of JSON.

The rule: `initialize` is answered before anything heavy is imported.
"""

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from panpan.cli_kit.failures import StdoutWriter, say
from panpan.cli_kit.options import Options
from panpan.cli_kit.sdk_options import names_in
from panpan.cli_kit.stdin import StdinReader
from panpan.config.locations import Locations
from panpan.errors import ConfigError, PanpanError, unwrap_single_exception
from panpan.faces.sdk.channel import Channel, LineQueue, Request
from panpan.faces.sdk.handshake import Hello, hello_answer, read_hello

if TYPE_CHECKING:
    from panpan.faces.headless.face import HeadlessFace
    from panpan.faces.headless.prompts import Prompt
    from panpan.faces.sdk.controls import Controls
    from panpan.session.frontend import Askers
    from panpan.session.session import Session

OF_SDK = ("CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_ENTRYPOINT")
"""Variables of a program that begins with `initialize`."""


async def run_sdk(options: Options, out: StdoutWriter) -> int:
    """Run the turns that the program asks for, and return the exit code.

    Raises:
        PanpanError: The session could not be opened, or the output could not be written.
        BrokenPipeError: Nobody reads the output.
    """
    lines = LineQueue(out)
    channel = Channel(StdinReader(sys.stdin), lines)
    with unwrap_single_exception():
        async with anyio.create_task_group() as group:
            group.start_soon(lines.run)
            try:
                request, hello = await _hello(options, channel)
                code = await _run(options, channel, request, hello)
            except PanpanError:
                await lines.drain()
                raise
            await lines.drain()
            group.cancel_scope.cancel("everything is said")
    return code


async def _hello(options: Options, channel: Channel) -> tuple[Request | None, Hello]:
    """Return the first request, and what it wants if it is `initialize`, which then is answered.

    Raises:
        ConfigError: It lacks fields that the command line announces, without which the session may do too much.
    """
    if not _is_of_sdk(options):
        return None, Hello()
    announced = names_in(options["initialize_fields"]) or ()
    request = await channel.first()
    if request is None or request.subtype != "initialize":
        _require_delivered(announced, Hello())
        return request, Hello()
    try:
        hello = read_hello(request)
        _require_delivered(announced, hello)
    except ConfigError as error:
        channel.refuse(request.id, str(error))
        _require_delivered(announced, Hello())
        return None, Hello()
    channel.respond(request.id, hello_answer(hello, options["output_style"], is_first=True))
    return None, hello


def _require_delivered(announced: Sequence[str], hello: Hello) -> None:
    if missing := [name for name in announced if name not in hello.delivered]:
        raise ConfigError(f"--initialize-fields: the first request is no initialize with {', '.join(missing)}")


def _is_of_sdk(options: Options) -> bool:
    """Return True if the program begins with a request, as far as the environment and the command line tell."""
    asks = options["permission_prompt_tool"] is not None or options["permission_prompts"] == "host"
    return any(map(os.environ.get, OF_SDK)) or asks or options["await_initialize"] or bool(options["initialize_fields"])


async def _run(options: Options, channel: Channel, request: Request | None, hello: Hello) -> int:
    from panpan.cli.session_opening import session_of
    from panpan.faces.headless.output_formats import show_failed_start
    from panpan.faces.headless.run import run_headless
    from panpan.faces.sdk.controls import Controls, Rights
    from panpan.faces.sdk.face import SdkFace, Wanted
    from panpan.faces.sdk.mirror import Mirror, StoreFolder

    warn = (lambda _: None) if options["quiet"] else say
    may_bypass = options["allow_skipping"] or options["permission_mode"] == "bypassPermissions"
    cwd = Path(options["cwd"] or ".")
    store = StoreFolder.of(cwd, os.environ, options["resume"]) if options["session_mirror"] else None
    follow = (lambda _: None) if store is None else Mirror(channel.out.put, store.path).follow
    controls = Controls(channel, Rights(may_bypass), warn, follow)
    controls.take(hello)
    wanted, faces = Wanted.of(options, os.environ), list[SdkFace]()

    def make_face(session: "Session") -> "HeadlessFace":
        face = SdkFace(channel.out, session, wanted)
        faces.append(face)
        controls.attach(session, face)
        return face

    async def failed_start(error: PanpanError) -> None:
        await show_failed_start(channel.out, error)

    async with anyio.create_task_group() as group:
        group.start_soon(channel.run, controls)
        if request is not None:
            channel.answer_soon(group, request, controls)
        for problem in await controls.host.learn_tools(_servers_of(options, hello)):
            warn(problem)
        askers = _askers(options, controls)
        opening = session_of(
            _options_with(options, hello),
            ask=askers.permission,
            ask_user=askers.user,
            ask_plan=askers.plan,
            host=controls.host,
            warn=warn,
        )
        code = await run_headless(
            opening
            if store is None
            else _from_store(opening, partial(store.bring_in, Locations.find(cwd, os.environ), warn)),
            _prompts(channel),
            make_face,
            say=say,
            warn=warn,
            show_failed_start=failed_start,
            background=options["background"],
            has_one_prompt=False,
            ends_well=lambda: channel.is_controlled or hello != Hello(),
            take_reader=controls.take_reader,
        )
        group.cancel_scope.cancel("the run is over")
    return code


@asynccontextmanager
async def _from_store(
    opening: AbstractAsyncContextManager["Session"], bring_in: Callable[[], None]
) -> AsyncGenerator["Session", None]:
    """Open a session after what the program's store has of it was brought in."""
    await to_thread.run_sync(bring_in)
    async with opening as session:
        yield session


def _askers(options: Options, controls: "Controls") -> "Askers":
    """Return the functions that ask the program; none if it does not want to be asked."""
    from panpan.session.frontend import Askers

    asks = options["permission_prompt_tool"] is not None or options["permission_prompts"] == "host"
    return controls.askers if asks and options["permission_prompts"] != "none" else Askers()


def _servers_of(options: Options, hello: Hello) -> list[str]:
    """Return the names of the program's own MCP servers; opening the session tells what else is wrong with others."""
    names = list(hello.servers)
    for config in options["mcp_config"]:
        with suppress(ValueError, AttributeError, RecursionError):  # a file, or not JSON
            servers = json.loads(config).get("mcpServers", {}).items()
            names += [name for name, one in servers if isinstance(one, dict) and one.get("type") == "sdk"]
    return list(dict.fromkeys(names))


def _options_with(options: Options, hello: Hello) -> Options:
    """Return the options with those of `initialize`, which are stronger."""
    given = dict(hello.options)
    for name in ("mcp_config", "settings", "disallowed_tools"):
        if name in given:
            given[name] = (*options[name], *given[name])
    for name in ("system_prompt", "append_system_prompt"):
        if name in given:
            given[f"{name}_file"] = None
    return {**options, **given}


async def _prompts(channel: Channel) -> "AsyncGenerator[Prompt, None]":
    """Yield the messages of the program.

    Raises:
        ConfigError: A line is no message, and the program has not spoken the control protocol, in which such a line is
            reported and left out.
    """
    from panpan.faces.headless.prompts import prompt_of_line

    async for line, number in channel.messages():
        try:
            prompt = prompt_of_line(line, number)
        except ConfigError as error:
            if not channel.is_controlled:
                raise
            channel.report(str(error))
            continue
        yield prompt
