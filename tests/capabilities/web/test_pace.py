from collections.abc import Callable

import pytest

from panpan.capabilities.web.web_pages import HostRateLimiter


def paced(timeouts: list[float], now: list[float]) -> HostRateLimiter:
    async def sleep(seconds: float) -> None:
        timeouts.append(seconds)

    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    return HostRateLimiter(2.0, clock=clock, sleep=sleep, jitter=lambda: 0.0)


async def test_requests_to_one_host_are_slow_and_in_order() -> None:
    timeouts: list[float] = []
    pace = paced(timeouts, [0.0])

    for _ in range(3):
        await pace.turn("a.org")

    assert timeouts == [2.0, 4.0]


async def test_rested_or_other_host_is_not_waited_for() -> None:
    timeouts: list[float] = []
    now = [0.0]
    pace = paced(timeouts, now)

    await pace.turn("a.org")
    await pace.turn("b.org")
    now[0] = 2.0
    await pace.turn("a.org")

    assert timeouts == []


async def test_idle_hosts_are_forgotten() -> None:
    now = [0.0]
    timeouts: list[float] = []
    pace = paced(timeouts, now)
    for number in range(1_000):
        await pace.turn(f"h{number}.org")
    now[0] = 100.0

    await pace.turn("new.org")
    await pace.turn("new.org")

    assert len(pace._hosts) == 1
    assert timeouts == [2.0]


async def test_host_may_want_a_longer_pause() -> None:
    timeouts: list[float] = []
    pace = paced(timeouts, [0.0])

    await pace.turn("a.org", at_least_s=10.0)
    await pace.turn("a.org", at_least_s=1.0)
    await pace.turn("a.org")

    assert timeouts == [10.0, 12.0]


async def test_cancelled_waiter_keeps_nobody_waiting() -> None:
    timeouts: list[float] = []

    async def sleep(seconds: float) -> None:
        timeouts.append(seconds)
        if len(timeouts) <= 20:
            raise RuntimeError  # whoever waits has left

    pace = HostRateLimiter(2.0, clock=lambda: 0.0, sleep=sleep, jitter=lambda: 0.0)
    await pace.turn("a.org")
    for _ in range(20):
        with pytest.raises(RuntimeError):
            await pace.turn("a.org")
    await pace.turn("a.org")

    assert timeouts == [2.0] * 21


@pytest.mark.parametrize(("pause_s", "expected"), [(2.0, [2.75, 5.5]), (0.0, [])])
async def test_pause_is_longer_by_up_to_a_second_unless_it_is_none(pause_s: float, expected: list[float]) -> None:
    timeouts: list[float] = []

    async def sleep(seconds: float) -> None:
        timeouts.append(seconds)

    pace = HostRateLimiter(pause_s, clock=lambda: 0.0, sleep=sleep, jitter=lambda: 0.75)
    for _ in range(3):
        await pace.turn("a.org")

    assert timeouts == expected
