"""Any order of the steps of several processes leaves one holder at most."""

from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.batch.store.lease import STALE_S, Claim, Holder, Watch
from tests.batch.lease_model import Contender, DiskModel, finish, holder, run_to_its_end

DEAD = 99


def _disk_of_a_dead_holder() -> DiskModel:
    disk = DiskModel()
    disk.files[1] = holder(DEAD).model_dump_json().encode()
    return disk


def _contenders(n: int, rounds: int = 1) -> Sequence[Contender]:
    disk = _disk_of_a_dead_holder()
    all_of_them: list[Contender] = []

    def is_gone(one: Holder) -> bool:
        return one.pid == DEAD or all_of_them[one.pid].is_over

    all_of_them.extend(Contender(name, disk, is_gone, rounds=rounds) for name in range(n))
    return all_of_them


def _all_orders(most: int) -> Iterator[tuple[int, ...]]:
    """Yield each order of the steps of two processes in which the first has `most` steps at least."""
    for length in range(most + 1):
        for bits in range(2**length):
            yield tuple(bits >> place & 1 for place in range(length))


def test_lease_has_one_holder_in_every_order_of_two() -> None:
    takeovers = 0
    for order in _all_orders(11):
        one, other = processes = _contenders(2)
        for turn in order:
            processes[turn].step()
            assert not (one.holds and other.holds), order
        takeovers += one.holds or other.holds
    assert takeovers > 100, "the orders were too short to come to a take-over"


_TURN = st.tuples(st.integers(0, 3), st.integers(0, 14))
"""A process, and its steps before the next one's turn; 0 kills it."""


@settings(max_examples=400, deadline=None)
@given(st.lists(_TURN, max_size=40))
def test_lease_has_one_holder_when_processes_are_killed(order: Sequence[tuple[int, int]]) -> None:
    processes = _contenders(4, rounds=3)
    for turn, steps in order:
        if not steps:
            processes[turn].kill()
        for _ in range(steps):
            processes[turn].step()
            assert sum(one.holds for one in processes) <= 1
            assert not any(one.was_told for one in processes), "the lease of a living process was taken"
    for _ in range(400):
        for one in processes:
            one.step()
    assert all(one.is_over for one in processes), "nobody could take it"


@settings(max_examples=200, deadline=None)
@given(before=st.integers(0, 12), order=st.lists(st.integers(0, 1), max_size=30))
def test_lease_tells_a_suspended_holder_at_its_next_beat(before: int, order: Sequence[int]) -> None:
    disk = DiskModel()
    sleeper = Contender(0, disk, lambda _: False, beats=10**6)
    for _ in range(before):
        sleeper.step()
    now = [0.0]
    takers = [Contender(name, disk, lambda _: False, beats=10**6, clock=lambda: now[0]) for name in (1, 2)]
    for turn in [*order, *[0, 1] * 100]:
        now[0] += 1.0
        takers[turn].step()
    (winner,) = [one for one in takers if one.holds]
    for _ in range(12):
        sleeper.step()
        winner.step()
    assert not sleeper.holds
    assert winner.holds


def test_watch_counts_no_time_in_which_it_did_not_look() -> None:
    now = [0.0]
    watch = Watch(lambda: now[0], lambda _: False)
    data = holder(1).model_dump_json().encode()
    assert not watch.is_dead(1, data)
    now[0] += 3_600  # the machine slept, and its holder with it
    assert not watch.is_dead(1, data)
    for _ in range(int(STALE_S)):
        now[0] += 1
        dead = watch.is_dead(1, data)
    assert dead


def test_watch_is_alive_while_the_counter_moves() -> None:
    now = [0.0]
    watch = Watch(lambda: now[0], lambda _: False)
    me = holder(1)
    for beat in range(100):
        now[0] += 1
        assert not watch.is_dead(1, me.model_copy(update={"beat": beat // 5}).model_dump_json().encode())
    assert watch.has_moved


def test_watch_holds_a_damaged_file_until_it_is_stale() -> None:
    for damaged in (b"", b'{"token": "a', b"\xff\xfe"):
        now = [0.0]
        watch = Watch(lambda now=now: now[0], lambda _: True)
        verdicts = []
        for _ in range(int(STALE_S) + 2):
            verdicts.append(watch.is_dead(1, damaged))
            now[0] += 1
        assert verdicts == [False] * int(STALE_S) + [True] * 2


def test_claim_of_a_slow_process_takes_nothing_from_later_ones() -> None:
    disk = _disk_of_a_dead_holder()

    def is_gone(one: Holder) -> bool:
        return one.pid == DEAD

    slow = Claim(disk, holder(0), Watch(lambda: 0.0, is_gone))
    steps = slow.try_to_take().__await__()
    for _ in range(3):  # it has judged the holder dead, and is about to take over
        next(steps)
    for name in (1, 2, 3):
        later = Claim(disk, holder(name), Watch(lambda: 0.0, is_gone))
        assert run_to_its_end(later.try_to_take())
        if name < 3:
            run_to_its_end(later.release())
    assert not finish(steps)
    assert run_to_its_end(later.is_ours())
