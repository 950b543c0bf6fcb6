"""Receipts of commands that never ran."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from types import MappingProxyType

from panpan.capabilities.receipts.session_evidence import CommandRun, SessionEvidence, State, Surroundings, newest_runs
from panpan.receipts.receipt import CommandKind, FileDigest, Receipt, TestCounts
from panpan.shell_analysis.parser import ShellParser
from panpan.types.dataclass import dataclass

TOP = "/w"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ran, and if what it shows still holds."""

    receipt: Receipt
    state: State = "fresh"
    changed: Sequence[str] = ()
    is_of_turn: bool = True


def ran(
    line: str,
    *,
    passed: int = 0,
    failed: int = 0,
    skipped: int = 0,
    files: Sequence[str] = ("tests/test_a.py", "tests/test_b.py"),
    passed_in: Mapping[str, int] = MappingProxyType({}),
    framework: str = "pytest",
    exit_code: int | None = 0,
    kind: CommandKind = "run",
    inputs: Sequence[str] = (),
    cwd: str = ".",
    seconds_ago: float = 3,
    timed_out: bool = False,
    state: State = "fresh",
    is_of_turn: bool = True,
    test_options: str = "",
) -> Ran:
    """Return a command whose report has these counts; without any, it wrote no report."""
    has_report = bool(passed + failed + skipped)
    ended = (NOW - timedelta(seconds=seconds_ago)).isoformat()
    counts = TestCounts(
        framework=framework,
        passed=passed,
        failed=failed,
        skipped=skipped,
        files=tuple(files),
        passed_in=dict(passed_in),
    )
    receipt = Receipt(
        id=f"{abs(hash((line, seconds_ago, passed, failed))) % 16**8:08x}",
        argv=("/bin/bash", "-c", line),
        commands=tuple(tuple(part) for part in _commands(line)),
        cwd=cwd,
        began_at=ended,
        ended_at=ended,
        seconds=0.5,
        exit_code=exit_code,
        timed_out=timed_out,
        box="bwrap",
        kind="tests" if passed + failed else kind,
        tests=(counts,) if has_report else (),
        inputs=tuple(FileDigest(path=path) for path in inputs),
        inputs_are="opened",
        test_options=test_options,
    )
    return Ran(receipt, state, ("src/a.py",) if state == "stale" else (), is_of_turn)


def evidence(
    *commands: Ran,
    written: Sequence[str] = (),
    removed: Sequence[str] = (),
    newer: Sequence[str] = (),
    test_files: Sequence[str] | None = None,
) -> SessionEvidence:
    """Return commands, oldest first, as evidence."""
    by_id = {one.receipt.id: one for one in commands}
    runs = [
        CommandRun(
            newest,
            by_id[newest.id].state,
            Surroundings(TOP, test_files, written, newer),
            changed=by_id[newest.id].changed,
            is_of_turn=by_id[newest.id].is_of_turn,
            earlier=earlier,
        )
        for newest, earlier in newest_runs([one.receipt for one in commands])
    ]
    return SessionEvidence(runs, written=written, removed=removed, now=NOW)


@cache
def _parser() -> ShellParser:
    return ShellParser()


def _commands(line: str) -> Sequence[Sequence[str]]:
    return [
        [word.source if word.text is None else word.text for word in command.words]
        for command in _parser().parse(line).commands
        if command.words
    ]
