"""JUnit XML reports, read as the work of strangers: no DOCTYPE, and bounded in size and depth."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from xml.parsers import expat

from panpan.types.dataclass import dataclass

MAX_BYTES = 20_000_000
"""Largest report that is read."""
_MOST_DEPTH = 50
MOST_NAMES = 10
"""Most names of failed tests of a report."""
_MOST_PLACES = 500
_MAX_NAME_CHARS = 200
_BAD = frozenset({"failure", "error"})
_SKIPPED = frozenset({"notrun", "disabled", "skipped"})
_FRAMEWORKS = (
    "pytest",
    "nextest",
    "jest",
    "vitest",
    "mocha",
    "karma",
    "jasmine",
    "phpunit",
    "rspec",
    "gotestsum",
    "bats",
)


class NotAReportError(Exception):
    """The XML is no JUnit report, or is not well formed."""


@dataclass(frozen=True, slots=True)
class JUnitReport:
    """One report."""

    framework: str
    """Name that it gives; else "junit"."""
    passed: int
    failed: int
    skipped: int
    failed_names: Sequence[str]
    """Names of the first failed tests."""
    files: Sequence[str]
    """Files that it names, as it names them."""
    classes: Sequence[str]
    """Class names of tests, which may be modules."""
    passed_by: Mapping[str, int]
    """Tests that passed, by their file as in `files`, else by their class as in `classes`."""
    times: Sequence[datetime]
    """Starts of its suites; none if it does not say. Without a time zone it may be the local time, or UTC."""

    def is_made_between(self, begin: datetime, end: datetime) -> bool:
        """Return True if all its suites started in this stretch of time."""
        return all(any(begin <= time <= end for time in _in_utc(one)) for one in self.times)


def read_junit(data: bytes) -> JUnitReport:
    """Return a report.

    Raises:
        NotAReportError: It is none, or more than is read.
    """
    if len(data) > MAX_BYTES:
        raise NotAReportError
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = reader.refuse
    parser.EntityDeclHandler = reader.refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, UnicodeError, ValueError, LookupError) as error:
        raise NotAReportError from error
    return reader.report()


class _Reader:
    def __init__(self) -> None:
        self._depth = 0
        self._root: Mapping[str, str] = {}
        self._suites: list[Mapping[str, str]] = []
        self._stated = 0
        """Failures and errors that the outermost suites state."""
        self._suite_depth = 0
        self._case: dict[str, str] | None = None
        self._outcome = ""
        self._outcomes: dict[tuple[str, ...], str] = {}
        self._origins: dict[tuple[str, ...], str] = {}
        """File or class of each test."""
        self._places: dict[str, None] = {}
        self._classes: dict[str, None] = {}
        self._times: dict[datetime, None] = {}
        self._framework = ""

    def refuse(self, *_: object) -> None:
        raise NotAReportError

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise NotAReportError
        if self._depth == 1:
            if name not in ("testsuites", "testsuite"):
                raise NotAReportError
            self._root = attributes
        if name in ("testsuites", "testsuite"):
            self._start_suite(name, attributes)
        elif name == "testcase":
            self._case = attributes
            self._outcome = "skipped" if attributes.get("status", "").lower() in _SKIPPED else ""
        elif self._case is not None and name in _BAD:
            self._outcome = "failed"
        elif self._case is not None and name == "skipped" and self._outcome != "failed":
            self._outcome = "skipped"

    def end(self, name: str) -> None:
        self._depth -= 1
        if name == "testcase" and self._case is not None:
            self._end_case(self._case)
            self._case = None
        elif name == "testsuite":
            self._suite_depth -= 1

    def _start_suite(self, name: str, attributes: dict[str, str]) -> None:
        if name == "testsuite":
            self._suite_depth += 1
            if self._suite_depth == 1:
                self._stated += _number(attributes, "failures") + _number(attributes, "errors")
            if len(self._places) < _MOST_PLACES and (place := attributes.get("file")):
                self._places[place] = None
        if (time := _time(attributes.get("timestamp", ""))) and len(self._times) < _MOST_PLACES:
            self._times[time] = None
        said = " ".join((attributes.get("name", ""), *(value for key, value in attributes.items() if ":" in key)))
        self._framework = self._framework or _framework(said)

    def _end_case(self, case: Mapping[str, str]) -> None:
        name, group, place = (_clean(case.get(key, "")) for key in ("name", "classname", "file"))
        key = (group, name) if self._framework == "pytest" else (str(len(self._outcomes)), group, name)
        if self._outcomes.get(key) != "failed":  # a test that passed may have failed when it was taken down
            self._outcomes[key] = self._outcome or "passed"
            self._origins[key] = place or group
        if place and len(self._places) < _MOST_PLACES:
            self._places[place] = None
        if group and len(self._classes) < _MOST_PLACES:
            self._classes[group] = None

    def report(self) -> JUnitReport:
        outcomes = list(self._outcomes.values())
        failed = [key for key, outcome in self._outcomes.items() if outcome == "failed"]
        stated = self._stated or _number(self._root, "failures") + _number(self._root, "errors")
        return JUnitReport(
            self._framework or "junit",
            outcomes.count("passed"),
            max(len(failed), stated),
            outcomes.count("skipped"),
            ["::".join(part for part in key[-2:] if part) for key in failed[:MOST_NAMES]],
            list(self._places),
            list(self._classes),
            Counter(self._origins[key] for key, outcome in self._outcomes.items() if outcome == "passed"),
            list(self._times),
        )


def _framework(said: str) -> str:
    words = said.lower()
    if "maven-surefire" in words:
        return "surefire"
    return next((name for name in _FRAMEWORKS if name in words), "")


def _number(attributes: Mapping[str, str], name: str) -> int:
    text = attributes.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _in_utc(time: datetime) -> Sequence[datetime]:
    """Return the moments that a time may mean."""
    return [time.replace(tzinfo=UTC), time.astimezone(UTC)] if time.tzinfo is None else [time]


def _clean(text: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in text[:_MAX_NAME_CHARS])
