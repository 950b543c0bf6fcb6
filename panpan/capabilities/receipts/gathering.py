"""Gathers what a closing line needs: the newest run of each command that matters, and if it still holds."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from anyio import to_thread

from panpan.capabilities.receipts.answer_claims import AnswerClaim
from panpan.capabilities.receipts.build_scope import names_build
from panpan.capabilities.receipts.command_scope import names_test_program, scope_of
from panpan.capabilities.receipts.session_evidence import (
    CommandRun,
    SessionEvidence,
    Surroundings,
    decides_tests,
    is_test_file,
    newest_runs,
)
from panpan.capabilities.receipts.session_receipts import SessionReceipt, SessionReceipts
from panpan.errors import PanpanError
from panpan.file_trees.listed_files import list_files
from panpan.receipts.receipt import Receipt
from panpan.receipts.staleness import Freshness
from panpan.types.dataclass import dataclass

_MOST_RUNS = 40
"""Most commands whose inputs are looked at; where reads cannot be seen, each look goes through the workspace."""
_MOST_NEWS = 10
"""The same where the answer claims nothing."""


async def gather(
    receipts: SessionReceipts, claims: Sequence[AnswerClaim], told: Collection[str], now: datetime | None = None
) -> SessionEvidence:
    """Return the commands of a session that matter for an answer.

    Commands that ran in a subagent's own copy of the workspace show nothing about the workspace.

    Args:
        receipts: Receipts of the session, all of them.
        claims: Claims of the answer.
        told: Ids of the receipts whose results an earlier line called verified.
        now: The present; None to ask the clock.
    """
    now = now or datetime.now(UTC)
    here = {one.receipt.id: one for one in receipts.receipts if one.root == receipts.root}
    newest = newest_runs([one.receipt for one in here.values()])
    kinds = {claim.kind for claim in claims}
    is_all, is_any = bool(kinds & {"tests", "build"}), "command" in kinds
    chosen = [
        (receipt, earlier)
        for receipt, earlier in newest
        if is_any
        or (_shows_something(receipt, earlier) and (is_all or _is_news(here[receipt.id], receipts.turn, told)))
    ]
    if not chosen:
        return SessionEvidence((), now=now)
    top = str(receipts.root)
    written = await to_thread.run_sync(_present, receipts.root, receipts.files_written_here())
    removed = await to_thread.run_sync(_removed, receipts.root, receipts.files_removed_here())
    found_tests = await _test_files(receipts.root, [receipt for receipt, _ in chosen]) if "tests" in kinds else None
    test_files = found_tests.paths if found_tests and found_tests.are_all else None
    not_looked_at = len(chosen) - (_MOST_RUNS if kinds else _MOST_NEWS)
    runs = []
    for number, (receipt, earlier) in enumerate(chosen):  # an older one still counts as a doubt
        found = Freshness("unknown") if number < not_looked_at else await here[receipt.id].freshness()
        newer = found_tests.newer_than(receipt) if found_tests else ()
        is_of_turn = here[receipt.id].turn == receipts.turn
        around = Surroundings(top, test_files, written, newer)
        runs.append(
            CommandRun(receipt, found.state, around, changed=found.changed, is_of_turn=is_of_turn, earlier=earlier)
        )
    return SessionEvidence(runs, written=written, removed=removed, now=now)


def _shows_something(receipt: Receipt, earlier: Sequence[Receipt]) -> bool:
    """Return True if it ran tests or built something, or its words say that it was to."""
    kinds = {one.kind for one in (receipt, *earlier)}
    return not kinds.isdisjoint(("tests", "build")) or names_test_program(receipt) or names_build(receipt)


def _is_news(one: SessionReceipt, turn: int, told: Collection[str]) -> bool:
    return one.turn == turn or one.receipt.id in told


def _present(root: Path, written: Iterable[str]) -> frozenset[str]:
    """Return the written files without those that have tests and are gone. Blocks."""
    return frozenset(path for path in written if not decides_tests(path) or os.path.lexists(root / path))


def _removed(root: Path, gone: Iterable[str]) -> frozenset[str]:
    """Return the test files that are still gone. Blocks."""
    return frozenset(path for path in gone if is_test_file(path) and not os.path.lexists(root / path))


@dataclass(frozen=True, slots=True)
class _TestFiles:
    """Test files of the workspace, and files that say which tests there are."""

    changed: Mapping[str, float]
    """Times of their last changes, seconds since 1970, by path."""
    are_all: bool
    """False if there may be others, in repositories within this one."""

    @property
    def paths(self) -> Collection[str]:
        return [path for path in self.changed if is_test_file(path)]

    def newer_than(self, receipt: Receipt) -> Collection[str]:
        began = datetime.fromisoformat(receipt.began_at).timestamp()
        return [path for path, changed in self.changed.items() if changed > began]


async def _test_files(root: Path, receipts: Iterable[Receipt]) -> _TestFiles | None:
    """Return the test files of the workspace, if a command selects all tests or some by path; None if git has none."""
    if not any(receipt.tests and scope_of(receipt, str(root)) != "part" for receipt in receipts):
        return None
    try:
        listed = await list_files(root)
    except (PanpanError, OSError):
        return None
    found = [path for path in listed.files if decides_tests(path)]
    return _TestFiles(await to_thread.run_sync(_changes, root, found), not listed.repositories)


def _changes(root: Path, paths: Iterable[str]) -> Mapping[str, float]:
    changed: dict[str, float] = {}
    for path in paths:
        with suppress(OSError):
            changed[path] = (root / path).lstat().st_ctime
    return changed
