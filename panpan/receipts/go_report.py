"""Lines of `go test -json` in the output of a command."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from panpan.receipts.receipt import TestCounts

_MAX_LINE_BYTES = 1_000_000
_MOST_TESTS = 200_000
_MOST_NAMES = 10
_OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}


_CLOCK_SLACK = timedelta(seconds=1)


class GoTestOutput:
    """Counts the tests whose beginning and end an output tells, in packages whose end it tells.

    Args:
        began: Start of the command. Lines with an earlier time are of another run, and are only shown again.
    """

    def __init__(self, began: datetime | None = None) -> None:
        self._since = began - _CLOCK_SLACK if began else None
        self._rest = b""
        self._tests: dict[tuple[str, str], str] = {}
        """Outcomes by package and test; empty while one runs."""
        self._packages: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Take a part of the output."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest if rest.startswith(b"{") and len(rest) <= _MAX_LINE_BYTES else b""
        for line in lines:
            if line.startswith(b"{") and b'"Action":' in line:
                self._take(line)

    def counts(self) -> TestCounts | None:
        """Return the counts; None if no tests were told of."""
        outcomes = {key: outcome for key, outcome in self._tests.items() if outcome and key[0] in self._packages}
        failed = [f"{package}.{test}" for (package, test), outcome in outcomes.items() if outcome == "failed"]
        broken = {package for package, outcome in self._packages.items() if outcome == "failed"}
        failed += sorted(broken - {package for (package, _), outcome in outcomes.items() if outcome == "failed"})
        if not outcomes and not failed:
            return None
        done = list(outcomes.values())
        return TestCounts(
            framework="go test",
            passed=done.count("passed"),
            failed=len(failed),
            skipped=done.count("skipped"),
            names=tuple(failed[:_MOST_NAMES]),
        )

    def _take(self, line: bytes) -> None:
        try:
            event: Any = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        action, package, test = (event.get(key, "") for key in ("Action", "Package", "Test"))
        if not all(isinstance(one, str) for one in (action, package, test)) or not package or self._is_old(event):
            return
        outcome = _OUTCOMES.get(action, "")
        if not test:
            if outcome:
                self._packages[package] = outcome
        elif action == "run" and len(self._tests) < _MOST_TESTS:
            self._tests[package, test] = ""
        elif outcome and (package, test) in self._tests:
            self._tests[package, test] = outcome

    def _is_old(self, event: dict[str, Any]) -> bool:
        try:
            time = datetime.fromisoformat(event["Time"])
        except (KeyError, TypeError, ValueError):
            return False
        return self._since is not None and time.replace(tzinfo=time.tzinfo or UTC) < self._since
