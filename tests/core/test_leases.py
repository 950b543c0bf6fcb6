"""Leases: what conflicts happens in the order in which it was asked for, and nothing else waits."""

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.core.leases import AGENTS, EVERYTHING, READS, FileUse, Leases

PATHS = st.sampled_from(["/w", "/w/a", "/w/a/x.py", "/w/b", "/w/b/y.py", "/w/B/Y.py", "/w/ab"])
USES = st.one_of(
    st.builds(FileUse.of, reads=st.lists(PATHS, max_size=2), writes=st.lists(PATHS, max_size=2)),
    st.sampled_from([EVERYTHING, AGENTS, READS]),
)


@pytest.mark.parametrize(
    ("one", "other", "conflicts"),
    [
        (FileUse.of(writes=["/w/a.py"]), FileUse.of(writes=["/w/b.py"]), False),
        (FileUse.of(writes=["/w/a.py"]), FileUse.of(writes=["/w/a.py"]), True),
        (FileUse.of(writes=["/w/a.py"]), FileUse.of(writes=["/w/A.py"]), True),
        (FileUse.of(writes=["/w/a.py"]), FileUse.of(reads=["/w"]), True),
        (FileUse.of(writes=["/w/a"]), FileUse.of(reads=["/w/ab"]), False),
        (FileUse.of(reads=["/w"]), FileUse.of(reads=["/w/a.py"]), False),
        (FileUse.of(reads=["/w/a.py"]), FileUse.of(writes=["/w/b.py"]), False),
        (READS, FileUse.of(writes=["/w/b.py"]), True),
        (EVERYTHING, FileUse(), True),
        (AGENTS, AGENTS, False),
        (AGENTS, FileUse.of(reads=["/w/a.py"]), True),
        (AGENTS, FileUse(), False),
        (AGENTS, EVERYTHING, True),
    ],
)
def test_conflict_is_an_overlap_with_a_change(one: FileUse, other: FileUse, conflicts: bool) -> None:
    assert one.conflicts_with(other) is conflicts
    assert other.conflicts_with(one) is conflicts


@given(uses=st.lists(USES, max_size=12), steps=st.lists(st.integers(0, 3), min_size=12, max_size=12), data=st.data())
def test_leases_are_granted_in_order_without_deadlock(
    uses: list[FileUse], steps: list[int], data: st.DataObject
) -> None:
    cancelled = data.draw(st.sets(st.integers(0, max(len(uses) - 1, 0)), max_size=2))
    held: dict[int, FileUse] = {}
    began: list[int] = []

    async def main() -> None:
        leases = Leases()
        asked = [leases.ask(use) for use in uses]

        async def work(number: int) -> None:
            with anyio.CancelScope() as scope:
                if number in cancelled:
                    scope.cancel()
                async with asked[number]:
                    assert not any(use.conflicts_with(uses[number]) for use in held.values())
                    held[number] = uses[number]
                    began.append(number)
                    try:
                        for _ in range(steps[number]):
                            await anyio.lowlevel.checkpoint()
                    finally:
                        del held[number]

        with anyio.fail_after(10):  # a deadlock
            async with anyio.create_task_group() as tasks:
                for number in range(len(uses)):
                    tasks.start_soon(work, number)

    anyio.run(main)
    assert {*began} | cancelled >= {*range(len(uses))}
    for at, number in enumerate(began):
        later = began[at + 1 :]
        assert not any(one < number and uses[one].conflicts_with(uses[number]) for one in later)


async def test_lease_that_is_cancelled_before_it_waits_holds_nobody_up() -> None:
    leases, use = Leases(), FileUse.of(writes=["/w/a"])
    first = leases.ask(use)

    async def never() -> None:
        await anyio.sleep_forever()

    async with first:
        with anyio.move_on_after(0):
            async with leases.ask(use, on_wait=never):
                raise AssertionError("it was held beside the first")
    assert not leases.ask(use).has_to_wait


async def test_lease_waits_for_conflicting_ones_alone() -> None:
    leases = Leases()

    async with leases.ask(FileUse.of(writes=["/w/a"])):
        free, busy = leases.ask(FileUse.of(writes=["/w/b"])), leases.ask(FileUse.of(reads=["/w"]))
        assert (free.has_to_wait, busy.has_to_wait) == (False, True)
        async with free:
            pass
    assert not busy.has_to_wait
