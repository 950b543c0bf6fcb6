"""Starts the REPL, and checks at the end that no process is left over and the terminal is restored."""

import signal
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.driver import Repl
from tests.terminal_emulator import Screen


class Start(Protocol):
    """Starts the REPL and waits for its prompt."""

    def __call__(self, *args: str, waits: bool = True, **options: Any) -> Repl: ...


@pytest.fixture
def start(panpan: Panpan) -> Iterator[Start]:
    opened: list[Repl] = []

    def opening(*args: str, waits: bool = True, **options: Any) -> Repl:
        repl = Repl(panpan, *args, **options)
        opened.append(repl)
        if waits:
            repl.wait_for_prompt()
        return repl

    yield opening
    try:
        for repl in opened:
            _end_well(repl)
    finally:
        for repl in opened:
            repl.end()


def _end_well(repl: Repl) -> None:
    if repl.is_running:
        repl.signal(signal.SIGTERM)
    repl.wait()
    assert repl.left_over() == []
    assert not (crashes := repl.crash_reports()), crashes
    if repl.is_hung_up:
        return
    assert repl.has_settings_of_before
    repl.read(_assert_restored)


def _assert_restored(screen: Screen) -> None:
    assert screen.is_cursor_visible
    assert not screen.has_bracketed_paste
    assert not screen.is_alternate
