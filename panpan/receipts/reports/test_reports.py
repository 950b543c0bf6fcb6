"""Counts of tests from the reports that a command has written, and from its output.

The rule: a report counts only if this command made it. One that was there before, was copied, or says that it was made
at another time counts for nothing.
"""

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from panpan.errors import ToolError
from panpan.receipts.digests import Content
from panpan.receipts.receipt import TestCounts
from panpan.receipts.reports.junit_report import MAX_BYTES, MOST_NAMES, JUnitReport, NotAReportError, read_junit
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

_MOST_REPORTS = 2_000
_MOST_TOTAL_BYTES = 60_000_000
MOST_FILES = 200
"""Most test files that the counts of a report name."""
_CLOCK_SLACK = timedelta(seconds=1)
"""Reports may leave the parts of a second out."""
_MAX_LINE_BYTES = 1_000_000
_MOST_TESTS = 200_000
_OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}
"""By the word of `go test`."""


@dataclass(frozen=True, slots=True)
class RanBetween:
    """Stretch of time in which a command ran."""

    began: datetime
    ended: datetime


class TestFiles:
    """Finds the files that reports name.

    Args:
        cwd: Where the command started.
        top: Top of the workspace; both canonical.
    """

    __test__ = False  # pytest takes a class of this name for tests

    def __init__(self, cwd: Path, top: Path) -> None:
        self._top = str(top)
        self._cwd = cwd
        self._files: dict[tuple[str, bool], str] = {}
        """Files that were found, by their name in a report, and whether it is that of a file."""

    @cached_property
    def _bases(self) -> Sequence[str]:
        inside = [str(folder) for folder in (self._cwd, *self._cwd.parents) if folder.is_relative_to(self._top)]
        return inside or [str(self._cwd)]

    def named_by(self, reports: Sequence[JUnitReport]) -> tuple[str, ...]:
        """Return the files that exist, relative to the workspace."""
        names = [(name, True) for report in reports for name in report.files]
        names += [(name, False) for report in reports for name in report.classes]
        found = {place for name, is_file in names if (place := self._file_of(name, is_file=is_file))}
        return tuple(sorted(found)[:MOST_FILES])

    def passed_in(self, reports: Sequence[JUnitReport]) -> Mapping[str, int]:
        """Return how many tests passed, by the files that exist."""
        found: Counter[str] = Counter()
        for report in reports:
            files = frozenset(report.files)
            for name, passed in report.passed_by.items():
                found[self._file_of(name, is_file=name in files)] += passed
        del found[""]
        return dict(sorted(found.items())[:MOST_FILES])

    def _file_of(self, name: str, *, is_file: bool) -> str:
        """Return the file of this name in a report, or the one that a class may be in; empty if there is none here."""
        if (name, is_file) not in self._files:
            names = [name] if is_file else _modules(name)
            places = (place for one in names for base in self._bases if (place := self._place(base, one)))
            self._files[name, is_file] = next(places, "")
        return self._files[name, is_file]

    def _place(self, base: str, name: str) -> str | None:
        if "\0" in name:
            return None
        path = os.path.normpath(os.path.join(base, name))  # noqa: PTH118 - thousands of names
        if not path.startswith(f"{self._top}/") or not os.path.isfile(path):  # noqa: PTH113
            return None
        return os.fsencode(path[len(self._top) + 1 :]).decode("utf-8", "backslashreplace")


def counts_of_pytest(paths: Iterable[Path], files: TestFiles) -> tuple[TestCounts, ...]:
    """Return the counts of the reports that we have asked pytest for, one for each run of it."""
    reports = [report for path in paths if (report := _read(path)) is not None]
    return tuple(_counts("pytest", [report], files) for report in reports)


def possible_reports(outputs: Mapping[str, Content]) -> list[str]:
    """Return the files that may be reports, by their names, sizes and first bytes."""
    return [
        path
        for path, content in outputs.items()
        if path.endswith(".xml")
        and content.size <= MAX_BYTES
        and content.head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<")
    ]


def counts_of_written(
    outputs: Mapping[str, Content],
    inputs: Iterable[Content],
    ran: RanBetween,
    files: TestFiles,
    tracked: Collection[str],
) -> tuple[TestCounts, ...]:
    """Return the counts of the reports among the files that a command has written, one for each framework.

    Args:
        outputs: What it wrote, by canonical path.
        inputs: What it read and did not write; a report that has the same content as one of these is a copy.
        ran: When it ran.
        files: Finds the files that reports name.
        tracked: Files that git tracks. A report among them counts only if it says that it was made now.
    """
    known = {content.sha256 for content in inputs}
    found: dict[str, list[JUnitReport]] = {}
    left = _MOST_TOTAL_BYTES
    for path in possible_reports(outputs)[:_MOST_REPORTS]:
        content = outputs[path]
        left -= content.size
        if left < 0:
            break
        if content.sha256 in known:
            continue
        known.add(content.sha256)
        report = _read(Path(path))
        if report is not None and _is_own(report, content, ran, is_tracked=path in tracked):
            found.setdefault(report.framework, []).append(report)
    return tuple(_counts(framework, reports, files) for framework, reports in sorted(found.items()))


def _is_own(report: JUnitReport, content: Content, ran: RanBetween, *, is_tracked: bool) -> bool:
    begin, end = ran.began - _CLOCK_SLACK, ran.ended + _CLOCK_SLACK
    if report.times:
        return report.is_made_between(begin, end)
    changed = content.changed_ns / 1e9
    return begin.timestamp() <= changed <= end.timestamp() and not is_tracked


def _read(path: Path) -> JUnitReport | None:
    try:
        return read_junit(read_regular_file(path, max_bytes=MAX_BYTES))
    except (ToolError, NotAReportError):
        return None


def _counts(framework: str, reports: Sequence[JUnitReport], files: TestFiles) -> TestCounts:
    return TestCounts(
        framework=framework,
        passed=sum(report.passed for report in reports),
        failed=sum(report.failed for report in reports),
        skipped=sum(report.skipped for report in reports),
        files=files.named_by(reports),
        names=tuple(name for report in reports for name in report.failed_names)[:MOST_NAMES],
        passed_in=files.passed_in(reports),
    )


def _modules(name: str) -> Iterable[str]:
    """Yield the files that a dotted name may be in, the longest first: `a.b.TestC` is in `a/b.py`, perhaps."""
    parts = name.split(".")[:20]
    for length in range(len(parts), 0, -1):
        yield "/".join(parts[:length]) + ".py"


class GoTestOutput:
    """Lines of `go test -json` in an output: counts tests that began and ended, in packages that ended.

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
            names=tuple(failed[:MOST_NAMES]),
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
