"""The newest run of each command of a session, as evidence for claims.

The rule: in doubt a run shows less. A run whose inputs have changed, or are not known, shows nothing.
"""

import posixpath
from collections.abc import Collection, Iterator, Sequence, Set
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias

from panpan.capabilities.receipts.build_scope import builds_all, names_build
from panpan.capabilities.receipts.command_scope import (
    Scope,
    exit_code_counts,
    key_of,
    may_run_tests,
    names_test_program,
    programs_of,
    scope_of,
)
from panpan.receipts.receipt import Receipt
from panpan.receipts.reports.test_reports import MOST_FILES
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

State: TypeAlias = Literal["fresh", "stale", "unknown"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The workspace around a run, as it is now. Paths are relative to its top."""

    top: str
    """Absolute and canonical."""
    test_files: Collection[str] | None = None
    """All test files; None if they are not known."""
    written: Collection[str] = ()
    """Files that exist and that agents of this session have written."""
    newer: Collection[str] = ()
    """Test files that came or changed after the run began, whoever wrote them."""


class CommandRun:
    """The newest run of one command, and what earlier runs of it tell of its kind.

    Args:
        receipt: The newest run.
        state: "fresh" if its inputs are as they were.
        around: The workspace.
        changed: Inputs that have changed since.
        is_of_turn: True if it ended in this turn.
        earlier: Earlier runs of the same command.
    """

    def __init__(
        self,
        receipt: Receipt,
        state: State,
        around: Surroundings,
        *,
        changed: Sequence[str] = (),
        is_of_turn: bool = True,
        earlier: Sequence[Receipt] = (),
    ) -> None:
        self.receipt = receipt
        self.state = state
        self.changed = changed
        self.is_of_turn = is_of_turn
        self._around = around
        self._earlier = earlier

    @property
    def is_fresh(self) -> bool:
        return self.state == "fresh"

    @property
    def passed(self) -> int:
        return sum(counts.passed for counts in self.receipt.tests)

    @property
    def failed(self) -> int:
        return sum(counts.failed for counts in self.receipt.tests)

    @property
    def skipped(self) -> int:
        return sum(counts.skipped for counts in self.receipt.tests)

    @cached_property
    def files(self) -> frozenset[str]:
        """Test files that its reports name."""
        return frozenset(file for counts in self.receipt.tests for file in counts.files)

    @cached_property
    def scope(self) -> Scope:
        """Tests that it selected: all also if paths were named that hold every test file of the workspace."""
        scope = scope_of(self.receipt, self._around.top)
        if scope == "all":
            return "paths" if self.unseen else "all"
        holds_all = bool(self._around.test_files) and self.files.issuperset(self._around.test_files or ())
        return "all" if scope == "paths" and holds_all else scope

    @cached_property
    def unseen(self) -> Sequence[str]:
        """Test files that it left out, although its words select all tests."""
        if scope_of(self.receipt, self._around.top) != "all":
            return ()
        seen = self.files | {file.path for file in self.receipt.inputs}
        new = {
            path for path in (*self._around.written, *self._around.newer) if path not in seen and decides_tests(path)
        }
        return sorted(new | self._without_result)

    @property
    def _without_result(self) -> Set[str]:
        """Test files that it read and does not report, where an exit code cannot say that it came to its end."""
        if exit_code_counts(self.receipt) or not 0 < len(self.files) < MOST_FILES:
            return frozenset()
        read = {file.path for file in self.receipt.inputs if file.path.endswith(".py") and is_test_file(file.path)}
        return read - self.files if any(file.endswith(".py") for file in self.files) else frozenset()

    @cached_property
    def families(self) -> frozenset[str]:
        """Test programs and the frameworks of its reports, and of those of earlier runs."""
        reported = (counts.framework for one in (self.receipt, *self._earlier) for counts in one.tests)
        return frozenset(reported) | programs_of(self.receipt)

    @cached_property
    def is_of_tests(self) -> bool:
        """True if it ran tests, or went wrong before it could."""
        ran = may_run_tests(self.receipt) and any(one.kind == "tests" for one in (self.receipt, *self._earlier))
        return ran or names_test_program(self.receipt)

    @property
    def tests_passed(self) -> bool:
        """True if its reports say that at least one test passed and none failed, and the command did not fail."""
        return self.passed > 0 and self.failed == 0 and self.receipt.is_success

    @property
    def ran_no_tests(self) -> bool:
        """True if it ended well and ran no test, or skipped all."""
        return self.passed + self.failed == 0 and self.receipt.is_success

    @property
    def succeeded(self) -> bool:
        """True if each part of its line ended with exit code 0."""
        return self.receipt.is_success and exit_code_counts(self.receipt)

    @property
    def was_seen_to_fail(self) -> bool:
        """True if it is certain that a part of it failed."""
        return self.receipt.timed_out or (self.receipt.exit_code not in (None, 0) and exit_code_counts(self.receipt))

    @cached_property
    def is_of_build(self) -> bool:
        """True if this run or an earlier one wrote binaries, and the words say that it is a build."""
        return names_build(self.receipt) and any(one.kind == "build" for one in (self.receipt, *self._earlier))

    @property
    def is_like_build(self) -> bool:
        """True if the words name a program that builds, whatever it wrote."""
        return names_build(self.receipt)

    @property
    def builds_all(self) -> bool:
        return builds_all(self.receipt, self._around.top)


class SessionEvidence:
    """Runs of a session that are evidence for its answer.

    Args:
        runs: The newest run of each command, in the order in which they ended.
        written: Files that the agents of this session have written, as receipts name them.
        removed: Test files that they have removed.
        now: The present.
    """

    def __init__(
        self,
        runs: Sequence[CommandRun],
        *,
        written: Collection[str] = (),
        removed: Collection[str] = (),
        now: datetime,
    ) -> None:
        self.runs = runs
        self.removed = frozenset(removed)
        self.written = frozenset(written)
        self.now = now

    @cached_property
    def test_runs(self) -> Sequence[CommandRun]:
        """Runs of tests, without those that a later one makes needless."""
        runs = [run for run in self.runs if run.is_of_tests]
        return [run for at, run in enumerate(runs) if not any(_covers(later, run) for later in runs[at + 1 :])]

    @cached_property
    def good_tests(self) -> Sequence[CommandRun]:
        """Runs of tests that passed, and still would as far as is known."""
        return [run for run in self.test_runs if run.is_fresh and run.tests_passed]

    @cached_property
    def doubts(self) -> Sequence[CommandRun]:
        """Runs of tests after which nobody can say that all tests pass."""
        return [run for run in self.test_runs if not (run.is_fresh and run.tests_passed) and not run.ran_no_tests]

    @cached_property
    def builds(self) -> Sequence[CommandRun]:
        return [run for run in self.runs if run.is_of_build or (run.is_like_build and run.was_seen_to_fail)]

    def after(self, run: CommandRun) -> Iterator[CommandRun]:
        """Yield the runs that ended after another one."""
        yield from self.runs[self.runs.index(run) + 1 :]


def _covers(later: CommandRun, run: CommandRun) -> bool:
    """Return True if a later run has tested all that an earlier one did, and all passed."""
    if not (later.is_fresh and later.tests_passed) or later.scope == "part" or later.families.isdisjoint(run.families):
        return False
    return later.scope == "all" or (bool(run.files) and run.files <= later.files)


def is_test_file(path: str) -> bool:
    """Return True if a file has a name that test programs look for."""
    return _TEST_FILE.search(path) is not None


def decides_tests(path: str) -> bool:
    """Return True if a file has tests, or says which tests there are."""
    return is_test_file(path) or posixpath.basename(path) in ("conftest.py", "pytest.ini")


_TEST_FILE = compile_late(r"(?:^|/)(?:test_[^/]*\.py|[^/]*_test\.(?:py|go)|[^/]*\.(?:test|spec)\.[jt]sx?)$")


def newest_runs(receipts: Sequence[Receipt]) -> Sequence[tuple[Receipt, Sequence[Receipt]]]:
    """Return the newest receipt of each command, in their order, each with the earlier ones of the same command."""
    by_key: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in receipts:
        runs = by_key.pop(key_of(receipt), [])
        by_key[key_of(receipt)] = [*runs, receipt]
    return [(runs[-1], runs[:-1]) for runs in by_key.values()]
