"""The clock of budgets: it stands while the user is asked something, for all agents of a session."""

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio
from anyio import CancelScope


class TurnClock:
    """Measures time in which nobody waits for the user, and ends what has used up its own."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._questions = 0
        self._stands_since = 0.0
        self._stood_s = 0.0
        self._limited: dict[CancelScope, Callable[[], float]] = {}

    @property
    def seconds(self) -> float:
        """Seconds of any beginning, without those in which it stood."""
        return (self._stands_since if self._questions else self._now()) - self._stood_s

    @contextmanager
    def standing(self) -> Generator[None, None, None]:
        """Let it stand, as long as the user is asked."""
        if not self._questions:
            self._stands_since = self._now()
        self._questions += 1
        self._set_deadlines()
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._stood_s += self._now() - self._stands_since
            self._set_deadlines()

    @contextmanager
    def limited(self, left_s: Callable[[], float]) -> Generator[CancelScope, None, None]:
        """Cancel the body when the seconds that `left_s` returns, which may be infinite, are used up."""
        with CancelScope() as scope:
            self._limited[scope] = left_s
            self._set_deadlines()
            try:
                yield scope
            finally:
                del self._limited[scope]

    def _set_deadlines(self) -> None:
        for scope, left_s in self._limited.items():
            left = math.inf if self._questions else left_s()
            scope.deadline = math.inf if left == math.inf else anyio.current_time() + left
