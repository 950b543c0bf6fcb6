"""Several panpan that share the pace of a provider's requests through a folder, on clocks that only waiting moves."""

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.errors import RateLimitError, RetryableError
from panpan.models.client import LLMClient
from panpan.models.pace import FIRST_PAUSE_S, MAX_INTERVAL_S, MAX_PAUSE_S, SharedPace, share_of, share_rate
from panpan.types.content import TextBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import RetryScheduled
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage, Usage, UserMessage

REQUEST = ModelRequest("", (), (UserMessage.of("hi"),))
DONE = AssistantMessage(content=(TextBlock(text="done"),), usage=Usage(input_tokens=900, output_tokens=100))
SLOW_DOWN = RateLimitError("slow down", retry_after_s=30.0)
REAL_TIME_S = 1_800_000_000.0


@dataclass(frozen=True, slots=True)
class Rate:
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class World:
    """Machines that share a folder; what one waits, time goes on for all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_s = 1_000.0

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def pace(self, *, wrong_by_s: float = 0.0, jitter: float = 0.0, boot_s: float = 0.0) -> SharedPace:
        """Return the pace of one panpan, on a machine whose clock may be wrong, and which began when it began."""
        return SharedPace(
            self.folder,
            "anthropic",
            clock=lambda: self.now_s - boot_s,
            wall_clock=lambda: REAL_TIME_S + self.now_s + wrong_by_s,
            jitter=lambda: jitter,
        )

    def write(self, kind: str, content: str | bytes) -> Path:
        path = self.folder / f"anthropic.{kind}.json"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.stamp()
        return path

    def stamp(self) -> None:
        """Give the file of the pause the time of this world, as its file server would."""
        if self.has_pause:
            written_s = REAL_TIME_S + self.now_s
            os.utime(self.folder / "anthropic.pause.json", (written_s, written_s))

    @property
    def has_pause(self) -> bool:
        return (self.folder / "anthropic.pause.json").exists()

    async def fail(self, pace: SharedPace, failure: RetryableError = SLOW_DOWN) -> float:
        left_s = await pace.failed(failure)
        self.stamp()
        return left_s


class FakeProvider:
    """Plays one step for each try: a message, or an error to raise; notes the times."""

    name = "anthropic"

    def __init__(self, world: World, *steps: Any) -> None:
        self._world = world
        self._steps = list(steps)
        self.asked_s: list[float] = []

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[Any, None]:
        self.asked_s.append(self._world.now_s)
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        yield step

    async def prepare(self) -> None: ...

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return None

    async def aclose(self) -> None: ...


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def client_of(world: World, *steps: Any, **options: Any) -> tuple[LLMClient, FakeProvider]:
    provider = FakeProvider(world, *steps)
    client = LLMClient(
        provider,
        ModelOptions(model="m", max_output_tokens=100),
        **{"pace": world.pace(), "sleep": world.sleep, "clock": world.clock, "jitter": lambda: 0.0} | options,
    )
    return client, provider


async def events_of(client: LLMClient) -> Sequence[Any]:
    async with aclosing(client.stream(REQUEST)) as events:
        return [event async for event in events]


# --- a pause of one counts for all


async def test_pause_of_one_holds_back_all(world: World) -> None:
    refused, others = world.pace(), [world.pace(jitter=n / 3, boot_s=500.0 * n) for n in range(3)]
    assert [await one.wait_s() for one in (refused, *others)] == [0.0] * 4

    assert await world.fail(refused) == 30.0
    waits_s = [await one.wait_s() for one in (refused, *others)]

    assert waits_s[:2] == [30.0, 30.0]
    assert 30 < waits_s[2] < waits_s[3] < 45
    world.now_s += 29.9
    assert min([await one.wait_s() for one in (refused, *others)]) > 0
    world.now_s += 15.1
    assert [await one.wait_s() for one in (refused, *others)] == [0.0] * 4


async def test_pause_counts_once(world: World) -> None:
    refused, other = world.pace(), world.pace()
    await world.fail(refused)
    await other.wait_s()
    world.now_s += 30

    assert [await other.wait_s() for _ in range(3)] == [0.0] * 3


async def test_panpan_that_begins_in_a_pause_waits(world: World) -> None:
    await world.fail(world.pace())
    world.now_s += 29

    assert await world.pace().wait_s() == 30.0  # all of it, since clocks may differ

    world.now_s += 2
    assert await world.pace().wait_s() == 0.0


@pytest.mark.parametrize("wrong_by_s", [-60.0, 60.0])
async def test_wrong_clock_does_not_hide_a_pause(world: World, wrong_by_s: float) -> None:
    refused, other = world.pace(), world.pace(wrong_by_s=wrong_by_s)
    await other.wait_s()
    world.now_s += 5

    await world.fail(refused)

    assert await other.wait_s() == 30.0
    world.now_s += 30
    assert await other.wait_s() == 0.0


@pytest.mark.parametrize(("wrong_by_s", "wait_s"), [(-60.0, 30.0), (60.0, 0.0)])
async def test_wrong_clock_costs_at_most_one_pause(world: World, wrong_by_s: float, wait_s: float) -> None:
    await world.fail(world.pace())
    world.now_s += 20 if wait_s == 0 else 80
    late = world.pace(wrong_by_s=wrong_by_s)

    assert await late.wait_s() == wait_s  # a pause too many, or one request too early

    world.now_s += wait_s
    assert await late.wait_s() == 0.0


async def test_old_pause_does_not_count_after_a_long_silence(world: World) -> None:
    busy, refused = world.pace(), world.pace()
    await busy.wait_s()
    world.now_s += 100
    await world.fail(refused)
    world.now_s += 500

    assert await busy.wait_s() == 0.0


async def test_repeated_refusals_lengthen_the_pause(world: World) -> None:
    pace, pauses_s = world.pace(), []
    for _ in range(12):
        pauses_s.append(await world.fail(pace, RateLimitError("no")))
        world.now_s += pauses_s[-1]

    assert pauses_s[:4] == [FIRST_PAUSE_S * 2**n for n in range(4)]
    assert pauses_s[-1] == MAX_PAUSE_S
    for _ in range(12):
        pace.replied(Usage())
    assert await world.fail(pace, RateLimitError("no")) == FIRST_PAUSE_S


async def test_refusals_of_requests_under_way_lengthen_nothing(world: World) -> None:
    paces = [world.pace() for _ in range(5)]
    for pace in paces:
        await pace.wait_s()
    for pace in paces:
        await world.fail(pace)
        world.now_s += 0.1

    assert max([await pace.wait_s() for pace in paces]) <= 30
    told = (world.folder / "anthropic.pause.json").read_bytes()
    left_s = await world.fail(paces[0], RateLimitError("no"))
    assert left_s == await paces[0].wait_s() < 30
    assert (world.folder / "anthropic.pause.json").read_bytes() == told


@pytest.mark.parametrize(
    ("failure", "is_shared"),
    [
        (RateLimitError("429"), True),
        (RetryableError("529", retry_after_s=3.0), True),
        (RetryableError("529"), False),
        (RetryableError("x", retry_after_s=-1.0), False),
        (RetryableError("x", retry_after_s=float("nan")), False),
    ],
)
async def test_only_a_request_for_a_pause_is_shared(world: World, failure: RetryableError, *, is_shared: bool) -> None:
    left_s = await world.fail(world.pace(), failure)

    assert (left_s > 0, world.has_pause) == (is_shared, is_shared)


# --- rates


@settings(max_examples=20)
@given(
    limit=st.integers(1, 40),
    running=st.integers(1, 8),
    thinks_s=st.lists(st.floats(0, 20), min_size=1, max_size=5),
    requests_of_one=st.integers(1, 12),
)
def test_all_together_keep_to_the_rate(limit: int, running: int, thinks_s: list[float], requests_of_one: int) -> None:
    """Each place runs one attempt after the other; no window of a minute has more requests than the limit."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        share_rate(world.folder, {"anthropic": Rate(requests_per_minute=limit)}, running)
        sent_s = anyio.run(_sent_in, world, running, thinks_s, requests_of_one)

    if limit >= running:
        assert most_in_a_minute(sent_s) <= limit
    else:
        assert len(sent_s) <= limit * 5 + running


def most_in_a_minute(sent_s: Sequence[float]) -> int:
    return max(sum(begin <= one < begin + 60 for one in sent_s) for begin in sent_s)


async def test_slow_shares_are_spread_over_the_interval(world: World) -> None:
    share_rate(world.folder, {"anthropic": Rate(requests_per_minute=2)}, 8)

    sent_s = await _sent_in(world, 8, [0.0], 100)

    assert most_in_a_minute(sent_s) == 2


async def _sent_in(world: World, places: int, thinks_s: Sequence[float], requests_of_one: int) -> list[float]:
    """Return the times of the requests of five minutes."""
    begin_s, sent_s = world.now_s, list[float]()
    due = [(begin_s, place, 0, world.pace(jitter=place / places)) for place in range(places)]
    while due and due[0][0] < begin_s + 300:
        world.now_s, place, count, pace = heappop(due)
        wait_s = await pace.wait_s()
        if not wait_s:
            sent_s.append(world.now_s)
            wait_s, count = thinks_s[len(sent_s) % len(thinks_s)], count + 1
            if count % requests_of_one == 0:
                pace = world.pace(jitter=place / places)  # the next attempt in its place
        heappush(due, (world.now_s + wait_s, place, count, pace))
    return sent_s


async def test_tokens_hold_back_the_next_request(world: World) -> None:
    share_rate(world.folder, {"anthropic": Rate(tokens_per_minute=60_000)}, 2)
    pace = world.pace()
    assert await pace.wait_s() == 0.0

    pace.replied(Usage(input_tokens=1_000, cache_read_input_tokens=4_000, output_tokens=5_000))

    assert await pace.wait_s() == pytest.approx(20)


async def test_smaller_number_of_attempts_speeds_up_the_next_request(world: World) -> None:
    rates = {"anthropic": Rate(requests_per_minute=4)}
    share_rate(world.folder, rates, 4)
    pace = world.pace()
    assert await pace.wait_s() == 60.0

    share_rate(world.folder, rates, 1)

    assert await pace.wait_s() == 15.0


def test_share_is_written_only_when_it_changes(world: World) -> None:
    rates = {"a/b": Rate(60, 1_000), "c": Rate()}
    share_rate(world.folder, rates, 2)
    inodes = [path.stat().st_ino for path in sorted(world.folder.iterdir())]
    share_rate(world.folder, rates, 2)

    assert [path.name for path in sorted(world.folder.iterdir())] == ["a%2Fb.rate.json", "c.rate.json"]
    assert [path.stat().st_ino for path in sorted(world.folder.iterdir())] == inodes
    share_rate(world.folder, rates, 3)
    assert json.loads((world.folder / "a%2Fb.rate.json").read_text()) == {"interval_s": 3.0, "seconds_per_token": 0.18}


def test_share_of_no_attempt_is_that_of_one() -> None:
    assert share_of(Rate(6), 0) == share_of(Rate(6), 1)


# --- files that are not as they should be

HOSTILE = [
    "", "{", "[]", "null", "7", "[" * 4_000, "\0" * 4_000, b"\xff\xfe", "x" * 10_000,
    '{"id": 7, "pause_s": 5}', '{"id": "x"}', '{"id": "x", "pause_s": "5"}', '{"id": "x", "pause_s": true}',
    '{"id": "x", "pause_s": -5}', '{"id": "x", "pause_s": NaN}', '{"interval_s": -1, "seconds_per_token": NaN}',
    '{"interval_s": [1], "seconds_per_token": {}}',
]  # fmt: skip


@pytest.mark.parametrize("kind", ["rate", "pause"])
@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
async def test_content_without_sense_holds_back_nothing(world: World, kind: str, content: str | bytes) -> None:
    world.write(kind, content)

    assert await world.pace().wait_s() == 0.0


@pytest.mark.parametrize("number", ["1e300", "Infinity", "9" * 1_000])
async def test_huge_numbers_are_bounded(world: World, number: str) -> None:
    world.write("pause", f'{{"id": "x", "pause_s": {number}}}')
    assert await world.pace().wait_s() == MAX_PAUSE_S

    world.write("pause", "")
    world.write("rate", f'{{"interval_s": {number}, "seconds_per_token": {number}}}')
    pace = world.pace()
    assert await pace.wait_s() == MAX_INTERVAL_S / 2
    world.now_s += MAX_INTERVAL_S / 2
    assert await pace.wait_s() == 0.0
    pace.replied(Usage(input_tokens=10**9))
    assert await pace.wait_s() == MAX_INTERVAL_S


@pytest.mark.parametrize("kind", ["fifo", "folder", "no folder"])
async def test_unusable_place_is_told_once_and_ignored(
    world: World, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    place = world.folder / "anthropic.pause.json"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        world.folder = world.folder / "file" / "pace"
        world.folder.parent.write_text("")
    pace = world.pace()

    with caplog.at_level(logging.WARNING):
        waits_s = [await pace.wait_s() for _ in range(3)]
        await pace.failed(RateLimitError("no"))
        share_rate(world.folder, {}, 1)

    assert waits_s == [0.0] * 3
    assert len(caplog.records) == 1


async def test_folder_that_does_not_answer_is_left_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.write("pause", '{"id": "x", "pause_s": 30}')
    asked, is_over = list[float](), threading.Event()

    def hang() -> float:
        asked.append(world.now_s)
        is_over.wait(60)
        return 0.0

    pace = SharedPace(world.folder, "anthropic", clock=world.clock, wall_clock=hang, patience_s=0.05)
    try:
        waits_s = [await pace.wait_s() for _ in range(3)]
        world.now_s += 301
        waits_s.append(await pace.wait_s())
    finally:
        is_over.set()

    assert waits_s == [0.0] * 4
    assert asked == [1_000.0, 1_301.0]
    assert [record.getMessage() for record in caplog.records] == [
        "the pace of anthropic is not shared: the folder does not answer"
    ]


async def test_pause_is_kept_where_it_cannot_be_told(world: World) -> None:
    (world.folder / "file").write_text("")
    world.folder = world.folder / "file" / "pace"
    pace = world.pace()

    assert await pace.failed(SLOW_DOWN) == 30.0
    assert await pace.wait_s() == 30.0


async def test_link_in_the_place_of_the_pause_is_not_written_through(world: World, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (world.folder / "anthropic.pause.json").symlink_to(mine)

    await world.pace().failed(SLOW_DOWN)

    assert mine.read_text() == "mine"


# --- clients


async def test_client_tells_that_it_waits_for_the_rate_limit(world: World) -> None:
    await world.fail(world.pace())
    client, provider = client_of(world, DONE)

    wait, reply = await events_of(client)

    assert wait == RetryScheduled(1, "waiting for the rate limit of anthropic", 30.0)
    assert reply.content == DONE.content
    assert provider.asked_s == [1_030.0]


async def test_no_client_asks_while_one_pauses(world: World) -> None:
    refused, first = client_of(world, SLOW_DOWN, DONE)
    others = [client_of(world, DONE, DONE) for _ in range(3)]
    for client, _ in others:
        await events_of(client)
    async with aclosing(refused.stream(REQUEST)) as events:
        assert (await anext(events)).delay_s == 30.0
        world.stamp()
        for client, _ in others:
            world.now_s = 1_001.0
            await events_of(client)
        world.now_s = 1_001.0
        assert [event async for event in events][-1].content == DONE.content

    assert [provider.asked_s for _, provider in others] == [[1_000.0, 1_031.0]] * 3
    assert first.asked_s == [1_000.0, 1_031.0]


async def test_waiting_for_others_uses_up_no_time_for_tries(world: World) -> None:
    share_rate(world.folder, {"anthropic": Rate(requests_per_minute=0.1)}, 1)  # one in 600 s
    client, provider = client_of(world, *[RetryableError("away")] * 5, DONE)

    events = await events_of(client)

    assert events[-1].content == DONE.content
    assert len(provider.asked_s) == 6


async def test_fallback_waits_for_its_own_provider(world: World) -> None:
    elsewhere = World(world.folder / "other")
    fallback, second = client_of(world, DONE, pace=elsewhere.pace())
    client, first = client_of(world, *[SLOW_DOWN] * 3, fallbacks=[fallback])

    await events_of(client)

    assert len(first.asked_s) == 3
    assert second.asked_s == [first.asked_s[-1]]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_wait_ends_on_a_retry_now(tmp_path: Path, backend: str) -> None:
    world = World(tmp_path)

    async def main() -> None:
        await world.fail(world.pace())
        client, provider = client_of(world, DONE, sleep=anyio.sleep)
        async with anyio.create_task_group() as tasks, aclosing(client.stream(REQUEST)) as events:
            assert isinstance(await anext(events), RetryScheduled)

            async def hurry() -> None:
                while not client.retry_now():
                    await anyio.lowlevel.checkpoint()

            tasks.start_soon(hurry)
            assert [event.content async for event in events] == [DONE.content]
        assert provider.asked_s == [1_000.0]

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_wait_can_be_cancelled(tmp_path: Path, backend: str) -> None:
    world = World(tmp_path)

    async def main() -> None:
        await world.fail(world.pace())
        client, provider = client_of(world, DONE, sleep=anyio.sleep)
        with anyio.CancelScope() as scope:
            async with aclosing(client.stream(REQUEST)) as events:
                async for _ in events:
                    scope.cancel()
        assert scope.cancelled_caught
        assert provider.asked_s == []

    anyio.run(main, backend=backend)


def test_module_is_not_loaded_without_the_setting() -> None:
    program = (
        "import sys\n"
        "from panpan.models.factory import resolve_model, create_client\n"
        "from panpan.models.model_choice import ModelRequirement\n"
        "create_client(resolve_model([ModelRequirement(model='opus')], {'ANTHROPIC_API_KEY': 'k'}))\n"
        "print('panpan.models.pace' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
