from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.config.models import Price
from panpan.errors import AuthenticationError, ContextOverflowError, ProviderError, RateLimitError, StreamError
from panpan.errors import RetryableError as CanHeal
from panpan.models.client import REST_S, LLMClient, RetryPolicy
from panpan.types.content import TextBlock
from panpan.types.events import ReplyStarted, RetryScheduled, TextDelta
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage, Usage, UserMessage

REQUEST = ModelRequest("", (), (UserMessage.of("hi"),))
OPTIONS = ModelOptions(model="m", max_output_tokens=100)
DONE = AssistantMessage(content=(TextBlock(text="done"),), usage=Usage(input_tokens=1_000_000, output_tokens=2_000))


class FakeProvider:
    """Plays one list for each try: events are yielded, exceptions raised, functions called."""

    name = "fake"

    def __init__(self, *tries: list[Any]) -> None:
        self.tries = list(tries)
        self.asked: list[tuple[ModelRequest, ModelOptions]] = []
        self.open_streams = 0
        self.is_closed = self.is_prepared = False

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[Any, None]:
        self.asked.append((request, options))
        self.open_streams += 1
        try:
            for step in self.tries[min(len(self.asked), len(self.tries)) - 1]:
                if isinstance(step, Exception):
                    raise step
                if callable(step):
                    await step()
                    continue
                yield step
        finally:
            self.open_streams -= 1

    async def prepare(self) -> None:
        self.is_prepared = True

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return 42

    async def aclose(self) -> None:
        self.is_closed = True


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def client_of(provider: FakeProvider, clock: FakeTime | None = None, **options: Any) -> LLMClient:
    clock = clock or FakeTime()
    return LLMClient(provider, OPTIONS, sleep=clock.sleep, clock=clock, jitter=lambda: 0.5, **options)


async def collect(client: LLMClient) -> list[Any]:
    async with aclosing(client.stream(REQUEST)) as events:
        return [event async for event in events]


async def test_client_adds_price_and_time_to_the_message() -> None:
    clock = FakeTime()
    started = ReplyStarted("id", "m")
    provider = FakeProvider([started, lambda: clock.sleep(2.5), DONE])

    first, message = await collect(client_of(provider, clock, price=Price.flat(3, 15)))

    assert first is started
    assert message.cost_usd == pytest.approx(3.03)
    assert message.duration_s == 2.5
    assert message.content == DONE.content
    assert provider.asked == [(REQUEST, OPTIONS)]


async def test_unknown_price_is_none() -> None:
    (message,) = await collect(client_of(FakeProvider([DONE])))

    assert message.cost_usd is None


async def test_retryable_errors_are_retried_with_growing_pauses() -> None:
    clock = FakeTime()
    provider = FakeProvider(
        [CanHeal("overloaded")], [TextDelta(0, "half"), StreamError("cut")], [CanHeal("again")], [DONE]
    )

    events = await collect(client_of(provider, clock))

    assert events == [
        RetryScheduled(2, "overloaded", 0.25),
        TextDelta(0, "half"),
        RetryScheduled(3, "cut", 0.5),
        RetryScheduled(4, "again", 1.0),
        events[-1],
    ]
    assert clock.pauses == [0.25, 0.5, 1.0]
    assert events[-1].content == DONE.content


async def test_reply_time_excludes_earlier_attempts() -> None:
    clock = FakeTime()
    provider = FakeProvider([CanHeal("x")], [lambda: clock.sleep(1.5), DONE])

    *_, message = await collect(client_of(provider, clock))

    assert message.duration_s == 1.5


@pytest.mark.parametrize(
    "error",
    [ProviderError("bad request"), AuthenticationError("no"), ContextOverflowError("long"), ValueError("a bug")],
)
async def test_permanent_error_is_raised_at_once(error: Exception) -> None:
    provider = FakeProvider([error])

    with pytest.raises(type(error)) as caught:
        await collect(client_of(provider))

    assert caught.value is error
    assert len(provider.asked) == 1


async def test_attempts_are_bounded_and_the_last_error_counts_them() -> None:
    provider = FakeProvider([RateLimitError("slow down", provider="fake", status=429, request_id="r1")])

    with pytest.raises(RateLimitError, match=r"^slow down \(tried 3 times\)$") as caught:
        await collect(client_of(provider, retry=RetryPolicy(max_tries=3)))

    assert (caught.value.provider, caught.value.status, caught.value.request_id) == ("fake", 429, "r1")
    assert isinstance(caught.value.__cause__, RateLimitError)
    assert len(provider.asked) == 3


async def test_total_time_is_bounded() -> None:
    clock = FakeTime()
    provider = FakeProvider([lambda: clock.sleep(250), CanHeal("stalled")])

    with pytest.raises(CanHeal, match=r"stalled \(tried 3 times in 750 s\)"):
        await collect(client_of(provider, clock, retry=RetryPolicy(max_tries=100, cap_s=0.1)))


async def test_pause_of_the_provider_is_kept() -> None:
    clock = FakeTime()
    provider = FakeProvider([RateLimitError("x", retry_after_s=7)], [DONE])

    await collect(client_of(provider, clock))

    assert clock.pauses == [7.25]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_pause_ends_on_a_retry_now(backend: str) -> None:
    provider = FakeProvider([CanHeal("overloaded")], [CanHeal("again", retry_after_s=50.0)], [DONE])
    client = LLMClient(provider, OPTIONS)
    ended: list[bool] = []

    async def end_the_pause() -> None:
        while not client.retry_now():  # the pause begins once the event was taken
            await anyio.lowlevel.checkpoint()
        ended.append(client.retry_now())

    async def main() -> None:
        assert not client.retry_now()
        async with anyio.create_task_group() as task_group, aclosing(client.stream(REQUEST)) as events:
            async for event in events:
                if isinstance(event, RetryScheduled) and event.attempt == 3:
                    task_group.start_soon(end_the_pause)
        assert not client.retry_now()

    anyio.run(main, backend=backend)

    assert len(provider.asked) == 3
    assert ended == [False]


async def test_pause_that_is_too_long_stops_with_the_reason() -> None:
    provider = FakeProvider([RateLimitError("limit reached", retry_after_s=3600)])

    with pytest.raises(RateLimitError, match="limit reached; it asks to wait 3600 s, so try again later"):
        await collect(client_of(provider))


@pytest.mark.parametrize("retry_after_s", [0, -1, float("nan"), float("inf")])
async def test_senseless_pause_is_ignored(retry_after_s: float) -> None:
    clock = FakeTime()
    provider = FakeProvider([RateLimitError("x", retry_after_s=retry_after_s)], [DONE])

    await collect(client_of(provider, clock))

    assert clock.pauses == [0.25]


async def test_reply_without_a_message_is_retried() -> None:
    provider = FakeProvider([TextDelta(0, "x")], [DONE])

    events = await collect(client_of(provider))

    assert events[1].reason == "fake ended the reply without a message"
    assert len(provider.asked) == 2


async def test_complete_reply_is_never_retried() -> None:
    provider = FakeProvider([DONE, StreamError("the connection was reset")])

    (message,) = await collect(client_of(provider))

    assert message.content == DONE.content
    assert len(provider.asked) == 1


async def test_consumer_that_leaves_closes_the_stream() -> None:
    provider = FakeProvider([TextDelta(0, "a"), TextDelta(0, "b"), DONE])

    async with aclosing(client_of(provider).stream(REQUEST)) as events:
        async for _ in events:
            break

    assert provider.open_streams == 0


def test_pause_can_be_cancelled_on_both_event_loops() -> None:
    async def main() -> None:
        provider = FakeProvider([CanHeal("x")])
        client = LLMClient(provider, OPTIONS, jitter=lambda: 1.0, retry=RetryPolicy(base_s=30))
        seen = []
        with anyio.CancelScope() as scope:
            async with aclosing(client.stream(REQUEST)) as events:
                async for event in events:
                    seen.append(event)
                    scope.cancel()
        assert seen == [RetryScheduled(2, "x", 30.0)]
        assert provider.open_streams == 0

    for backend in ("asyncio", "trio"):
        anyio.run(main, backend=backend)


async def test_client_counts_tokens_and_closes_the_provider() -> None:
    provider = FakeProvider()
    client = client_of(provider)

    await client.prepare()
    assert provider.is_prepared
    assert await client.count_tokens(REQUEST) == 42
    await client.aclose()
    assert provider.is_closed


@given(
    tries=st.integers(1, 5_000),
    jitter=st.floats(0, 1, exclude_max=True),
    asked=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    elapsed=st.floats(0, 10_000),
)
def test_pause_stays_within_its_bounds(tries: int, jitter: float, asked: float | None, elapsed: float) -> None:
    policy = RetryPolicy(max_tries=4_000)

    pause = _pause_or_none(
        lambda: policy.pause_s(CanHeal("x", retry_after_s=asked), tries=tries, elapsed_s=elapsed, jitter=jitter)
    )

    if pause is None:
        assert tries >= 4_000 or elapsed + 61 > 600 or (asked is not None and asked > 60)
    else:
        assert 0 <= pause <= 60.5
        assert asked is None or not 0 < asked <= 60 or pause >= asked
        assert elapsed + pause <= 600


def _pause_or_none(pause: Callable[[], float]) -> float | None:
    try:
        return pause()
    except CanHeal:
        return None


async def test_request_may_lower_the_output_limit_but_not_raise_it() -> None:
    provider = FakeProvider([DONE])
    client = LLMClient(provider, OPTIONS)
    for most in (None, 60, 600):
        async with aclosing(client.stream(replace(REQUEST, max_output_tokens=most))) as events:
            assert [event async for event in events]

    assert [options.max_output_tokens for _, options in provider.asked] == [100, 60, 100]


def with_fallback(first: FakeProvider, second: FakeProvider, clock: FakeTime) -> LLMClient:
    other = LLMClient(second, replace(OPTIONS, model="other"), sleep=clock.sleep, clock=clock, jitter=lambda: 0.5)
    return client_of(first, clock, fallbacks=[other])


@pytest.mark.parametrize("failure", [CanHeal("overloaded"), RateLimitError("slow down"), StreamError("cut")])
async def test_fallback_answers_after_three_tries(failure: Exception) -> None:
    first, second = FakeProvider([failure]), FakeProvider([DONE])

    *_, switched, reply = await collect(with_fallback(first, second, FakeTime()))

    assert len(first.asked) == 3
    assert switched == RetryScheduled(1, f"{failure} (tried 3 times); other answers instead of m", 0.0)
    assert reply.content == DONE.content
    assert second.asked[0][1].model == "other"


async def test_fallback_answers_at_once_for_a_missing_model() -> None:
    first, second = FakeProvider([ProviderError("no such model", status=404)]), FakeProvider([DONE])

    assert len(await collect(with_fallback(first, second, FakeTime()))) == 2
    assert len(first.asked) == 1


async def test_first_model_rests_and_is_asked_again() -> None:
    clock = FakeTime()
    first, second = FakeProvider([CanHeal("x")], [CanHeal("x")], [CanHeal("x")], [DONE]), FakeProvider([DONE])
    client = with_fallback(first, second, clock)

    await collect(client)
    await collect(client)
    assert (len(first.asked), len(second.asked)) == (3, 2)
    clock.now += REST_S
    await collect(client)
    assert (len(first.asked), len(second.asked)) == (4, 2)


@pytest.mark.parametrize(
    "error", [ProviderError("bad request"), AuthenticationError("no"), ContextOverflowError("long")]
)
async def test_fallback_is_not_asked_for_other_errors(error: Exception) -> None:
    first, second = FakeProvider([error]), FakeProvider([DONE])

    with pytest.raises(type(error)):
        await collect(with_fallback(first, second, FakeTime()))
    assert second.asked == []


async def test_last_fallback_has_all_tries_and_its_error_counts() -> None:
    first, second = FakeProvider([CanHeal("first")]), FakeProvider([CanHeal("second")])

    with pytest.raises(CanHeal, match="second"):
        await collect(with_fallback(first, second, FakeTime()))
    assert (len(first.asked), len(second.asked)) == (3, 8)


async def test_fallback_gets_options_and_is_closed() -> None:
    first, second = FakeProvider([CanHeal("x")]), FakeProvider([DONE])
    client = with_fallback(first, second, FakeTime())

    client.change_options(effort="low")
    await collect(client)
    await client.aclose()

    assert [options.effort for _, options in (*first.asked, *second.asked)] == ["low"] * 4
    assert first.is_closed
    assert second.is_closed
