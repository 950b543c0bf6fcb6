"""The end of a parent is noticed, also where it came first."""

import os
import subprocess
import sys
import threading

from panpan.system.processes.own_process import wait_for_end_of


def test_wait_ends_with_the_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    waiting = threading.Thread(target=wait_for_end_of, args=(process.pid,), kwargs={"getppid": lambda: process.pid})
    waiting.start()
    was_waiting = waiting.is_alive()

    process.communicate(b"\n")
    waiting.join(20)

    assert (was_waiting, waiting.is_alive()) == (True, False)


def test_wait_ends_without_a_descriptor_once_the_parent_is_another() -> None:
    seen = iter([0, 0, 7])  # 0 is a parent in another namespace, which no descriptor can be had of

    wait_for_end_of(0, getppid=lambda: next(seen))

    assert list(seen) == []


def test_wait_ends_at_once_where_the_parent_was_gone_before() -> None:
    wait_for_end_of(os.getppid(), getppid=lambda: os.getppid() + 1)
