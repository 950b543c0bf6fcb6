"""The pipes to a program: order, requests in both directions, and bounds."""

import json
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio import fail_after
from hypothesis import given
from hypothesis import strategies as st

from panpan.cli_kit.stdin import StdinReader
from panpan.errors import ConfigError, ToolError
from panpan.faces.sdk.channel import MAX_UNREAD_CHARS, Channel, LineQueue, Request

PATIENCE_S = 10
MOST_WAITING = 5


class Out:
    """Keeps what is written, while it is read."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.is_read = anyio.Event()
        self.is_read.set()
        self._has_more = anyio.Event()

    async def write(self, text: str) -> None:
        await self.is_read.wait()
        self.lines += map(json.loads, text.splitlines())
        self._has_more.set()
        self._has_more = anyio.Event()

    async def until(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a line, and return it."""
        while (found := next(filter(is_wanted, self.lines), None)) is None:
            await self._has_more.wait()
        return found


class Pipe:
    """Standard input of the channel."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self.stream = os.fdopen(reading)

    def send(self, *lines: Mapping[str, Any] | bytes) -> None:
        for line in lines:
            os.write(self._writing, (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._writing)
        self._writing = -1


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()
    pipe.stream.close()


async def refuse_all(request: Request) -> Mapping[str, Any]:
    raise ConfigError(f"no {request.subtype}")


@asynccontextmanager
async def running(pipe: Pipe, answers: Any = refuse_all) -> AsyncGenerator[tuple[Channel, Out], None]:
    out = Out()
    lines = LineQueue(out)
    channel = Channel(StdinReader(pipe.stream), lines, MOST_WAITING)
    with fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(lines.run)
            group.start_soon(channel.run, answers)
            yield channel, out
            group.cancel_scope.cancel("the test is over")


async def wait_for(out: Out, kind: str) -> dict[str, Any]:
    return await out.until(lambda line: bool(line["type"] == kind))


def answer_to(request: Mapping[str, Any], **response: Any) -> Mapping[str, Any]:
    body = {"subtype": "success", "request_id": request["request_id"], "response": response}
    return {"type": "control_response", "response": body}


async def test_queue_drops_only_deltas_for_a_slow_reader() -> None:
    out = Out()
    out.is_read = anyio.Event()
    lines = LineQueue(out)
    async with anyio.create_task_group() as group:
        group.start_soon(lines.run)
        for number in range(40):
            lines.put({"type": "stream_event", "n": number, "text": "x" * (MAX_UNREAD_CHARS // 20)})
            lines.put({"type": "assistant", "n": number})
        await anyio.lowlevel.checkpoint()
        out.is_read.set()
        await lines.drain()
        group.cancel_scope.cancel("the test is over")

    numbers = {
        kind: [line["n"] for line in out.lines if line["type"] == kind] for kind in ("stream_event", "assistant")
    }
    assert numbers["assistant"] == list(range(40))
    assert numbers["stream_event"] == list(range(len(numbers["stream_event"])))
    assert 18 <= len(numbers["stream_event"]) <= 22


async def test_channel_asks_and_gets_the_answer(pipe: Pipe) -> None:
    async with running(pipe) as (channel, out), anyio.create_task_group() as group:
        found: list[Mapping[str, Any]] = []

        async def ask() -> None:
            found.append(await channel.ask("can_use_tool", tool_name="LS"))

        group.start_soon(ask)
        request = await wait_for(out, "control_request")
        pipe.send(answer_to(request, behavior="allow"))

    assert found == [{"behavior": "allow"}]
    assert request["request"] == {"subtype": "can_use_tool", "tool_name": "LS"}


async def test_question_is_refused_while_too_many_wait(pipe: Pipe) -> None:
    async with running(pipe) as (channel, out), anyio.create_task_group() as group:

        async def ask_twice() -> None:
            await channel.ask("hook_callback")
            await channel.ask("mcp_message")

        for _ in range(MOST_WAITING):
            group.start_soon(ask_twice)
        last = await out.until(lambda line: bool(line.get("request_id") == f"panpan-{MOST_WAITING}"))
        with pytest.raises(ToolError, match="5 requests wait for the program already"):
            await channel.ask("hook_callback")

        pipe.send(answer_to(last))
        later = await out.until(lambda line: bool(line.get("request_id") == f"panpan-{MOST_WAITING + 1}"))
        group.cancel_scope.cancel("the test is over")

    assert later["request"]["subtype"] == "mcp_message"  # there is room again


async def test_request_is_refused_while_too_many_wait(pipe: Pipe) -> None:
    released = anyio.Event()

    async def answer_late(request: Request) -> Mapping[str, Any]:
        await released.wait()
        return {}

    def asked(number: int) -> Mapping[str, Any]:
        return {"type": "control_request", "request_id": f"r-{number}", "request": {"subtype": "x"}}

    async with running(pipe, answer_late) as (_, out):
        for number in range(MOST_WAITING + 1):
            pipe.send(asked(number))
        refused = (await wait_for(out, "control_response"))["response"]
        released.set()
        await out.until(lambda line: bool(line["response"]["request_id"] == f"r-{MOST_WAITING - 1}"))
        pipe.send(asked(MOST_WAITING + 1))
        accepted = await out.until(lambda line: bool(line["response"]["request_id"] == f"r-{MOST_WAITING + 1}"))

    assert refused["request_id"] == f"r-{MOST_WAITING}"
    assert "5 requests wait already" in refused["error"]
    assert accepted["response"]["subtype"] == "success"
    assert len(out.lines) == MOST_WAITING + 2


async def test_cancelled_question_is_taken_back(pipe: Pipe) -> None:
    async with running(pipe) as (channel, out):
        with anyio.move_on_after(0.01):
            await channel.ask("hook_callback")
        taken_back = await wait_for(out, "control_cancel_request")

    assert taken_back["request_id"] == out.lines[0]["request_id"]


async def test_end_of_the_input_fails_open_and_later_questions(pipe: Pipe) -> None:
    async with running(pipe) as (channel, out):
        async with anyio.create_task_group() as group:
            group.start_soon(wait_and_close, out, pipe)
            with pytest.raises(ToolError, match="closed its side"):
                await channel.ask("can_use_tool")
        with pytest.raises(ToolError, match="closed its side"):
            await channel.ask("can_use_tool")


async def wait_and_close(out: Out, pipe: Pipe) -> None:
    await wait_for(out, "control_request")
    pipe.close()


async def test_request_that_is_taken_back_gets_no_answer(pipe: Pipe) -> None:
    is_begun = anyio.Event()

    async def never(request: Request) -> Mapping[str, Any]:
        is_begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with running(pipe, never) as (_, out):
        pipe.send({"type": "control_request", "request_id": "1", "request": {"subtype": "set_model"}})
        await is_begun.wait()
        pipe.send({"type": "control_cancel_request", "request_id": "1"}, b'{"type":"control_response"}')
        await wait_for(out, "system")

    assert [line["type"] for line in out.lines] == ["system"]


async def test_missing_field_of_a_request_is_an_error_of_it(pipe: Pipe) -> None:
    async def fails(request: Request) -> Mapping[str, Any]:
        return {"title": request.fields["title"]}

    async with running(pipe, fails) as (_, out):
        pipe.send({"type": "control_request", "request_id": "1", "request": {"subtype": "rename_session"}})
        line = await wait_for(out, "control_response")

    assert line["response"]["subtype"] == "error"
    assert line["response"]["error"] == "the request rename_session needs title"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ODD = st.fixed_dictionaries(
    {"type": st.sampled_from(["control_request", "control_response", "control_cancel_request", "keep_alive", "user"])},
    optional={"request_id": json_values, "request": json_values, "response": json_values},
)


@given(st.lists(ODD, max_size=8))
def test_odd_lines_never_end_the_reading(lines: list[dict[str, Any]]) -> None:
    async def main() -> list[dict[str, Any]]:
        pipe = Pipe()
        async with running(pipe) as (_, out):
            pipe.send(*lines, {"type": "control_request", "request_id": "last", "request": {"subtype": "dance"}})
            await out.until(lambda line: bool(line.get("response", {}).get("request_id") == "last"))
        pipe.close()
        pipe.stream.close()
        return out.lines

    assert anyio.run(main)[-1]["response"]["error"] == "no dance"
