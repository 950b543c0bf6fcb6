from collections.abc import Mapping
from threading import Event

import anyio

from panpan.system.processes.process_table import Looks, RunningProcess
from tests.system.backends import on_both_backends, run_on, until


class Scan:
    """Counts its calls, and waits in the first one until it may go on."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_go_on = Event()

    def __call__(self) -> Mapping[int, RunningProcess]:
        self.calls += 1
        number = self.calls
        self.may_go_on.wait(30)
        return {number: RunningProcess(number, 1, 1, 1, "0", f"seen by look {number}")}


@on_both_backends
def test_all_who_come_while_a_look_is_under_way_get_the_next_one(backend: str) -> None:
    async def main() -> None:
        scan = Scan()
        looks = Looks(scan)
        seen: list[list[int]] = []

        async def one() -> None:
            seen.append(list(await looks.next()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            await until(lambda: scan.calls == 1)
            for _ in range(8):
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            scan.may_go_on.set()

        assert seen == [[1], *[[2]] * 8]
        assert scan.calls == 2

    run_on(backend, main)


@on_both_backends
def test_whoever_comes_later_gets_a_look_of_his_own(backend: str) -> None:
    async def main() -> None:
        scan = Scan()
        scan.may_go_on.set()
        looks = Looks(scan)

        assert [list(await looks.next()) for _ in range(3)] == [[1], [2], [3]]

    run_on(backend, main)


@on_both_backends
def test_a_look_that_was_given_up_keeps_nobody_waiting(backend: str) -> None:
    async def main() -> None:
        scan = Scan()
        looks = Looks(scan)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(looks.next)
            await until(lambda: scan.calls == 1)
            tasks.cancel_scope.cancel()
            scan.may_go_on.set()

        assert list(await looks.next()) == [2]

    run_on(backend, main)
