"""Receipts in words, for lists and for one in full."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from panpan.capabilities.receipts.session_receipts import SessionReceipt
from panpan.receipts.receipt import FileDigest, Receipt, TestCounts
from panpan.receipts.staleness import Freshness
from panpan.system.text.terminal_text import clean_line, spoken_s

_MAX_CHANGED = 3
"""Most changed files that a list names."""
MAX_FILES = 50
"""Most files of one kind that a receipt in full names."""


def command_of(receipt: Receipt) -> str:
    """Return the line that ran, on one line."""
    return clean_line(" ".join(line_of(receipt).split()))


def line_of(receipt: Receipt) -> str:
    """Return the line that ran, as it was written."""
    return receipt.argv[-1] if receipt.argv[:2] == ("bash", "-c") else " ".join(receipt.argv)


def outcome_of(receipt: Receipt) -> str:
    """Return how a command ended: the counts of its tests, and its exit code."""
    return ", ".join([*map(_counts, receipt.tests), _end(receipt)])


def _end(receipt: Receipt) -> str:
    if receipt.timed_out:
        return "timed out"
    return "stopped" if receipt.exit_code is None else f"exit code {receipt.exit_code}"


def _counts(counts: TestCounts) -> str:
    numbers = (("passed", counts.passed), ("failed", counts.failed), ("skipped", counts.skipped))
    told = ", ".join(f"{number:,} {name}" for name, number in numbers if number)
    return f"{told or 'no tests ran'} ({clean_line(counts.framework)})"


def _freshness_in_short(freshness: Freshness) -> str:
    """Return if a receipt still holds, and which files have changed."""
    if freshness.state != "stale":
        return "inputs unchanged" if freshness.state == "fresh" else "not known if inputs changed"
    changed = [clean_line(path) for path in freshness.changed]
    more = f" and {len(changed) - _MAX_CHANGED:,} more" if len(changed) > _MAX_CHANGED else ""
    return f"stale: {', '.join(changed[:_MAX_CHANGED])}{more} changed"


def spoken_age(ended_at: str, now: datetime) -> str:
    """Return how long ago a command ended, such as "3 s ago"; a clock that went back makes it "just now"."""
    try:
        seconds = (now - datetime.fromisoformat(ended_at)).total_seconds()
    except (ValueError, TypeError):
        return "at an unknown time"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago" if seconds >= 1 else "just now"


def _runner_of(one: SessionReceipt) -> str:
    """Return who ran it, if that was not the main agent."""
    if one.is_of_user:
        return "yours"
    return f"subagent {clean_line(one.agent_id)}" if one.agent_id else ""


def short_receipt(one: SessionReceipt, freshness: Freshness | None, now: datetime) -> str:
    """Return a receipt for a list: the command, and below it what came of it."""
    facts = (
        outcome_of(one.receipt),
        spoken_age(one.receipt.ended_at, now),
        "" if freshness is None else _freshness_in_short(freshness),
        _runner_of(one),
    )
    return "\n".join((command_of(one.receipt), " · ".join(filter(None, facts))))


def full_receipt(one: SessionReceipt, freshness: Freshness) -> Iterator[tuple[str, str]]:
    """Yield all facts of a receipt, each with its name."""
    receipt = one.receipt
    environment = receipt.environment
    lock = f"{environment.lock} sha256:{environment.lock_sha256}" if environment.lock else ""
    facts = (
        ("command", line_of(receipt)),
        ("kind", receipt.kind),
        ("outcome", outcome_of(receipt)),
        ("failed", ", ".join(name for counts in receipt.tests for name in counts.names)),
        ("still holds", _freshness_in_short(freshness)),
        ("run by", _runner_of(one) or "the agent"),
        ("turn", f"{one.turn}"),
        ("folder", f"{receipt.cwd} in {one.root}"),
        ("began", receipt.began_at),
        ("took", spoken_s(receipt.seconds)),
        ("sandbox", receipt.box),
        ("network", _network(receipt.network)),
        ("Python", " ".join(filter(None, (environment.version, environment.interpreter)))),
        ("lock file", lock),
        ("seeds", ", ".join(f"{name}={value}" for name, value in receipt.seeds.items())),
        ("read", "\n".join(_files(receipt.inputs))),
        ("wrote", "\n".join(_files(receipt.outputs))),
        ("more files", f"{receipt.more_files:,}" if receipt.more_files else ""),
        ("printed", f"{receipt.output_bytes:,} bytes, sha256:{receipt.output_sha256}" if receipt.output_bytes else ""),
    )
    return ((name, "\n".join(map(clean_line, value.splitlines()))) for name, value in facts if value)


def _network(network: bool | Sequence[str]) -> str:
    if isinstance(network, bool):
        return "yes" if network else "no"
    return ", ".join(network) or "no"


def _files(files: Sequence[FileDigest]) -> Iterable[str]:
    yield from (f"{file.path}  {file.size:,} bytes  {_digest(file)}" for file in files[:MAX_FILES])
    if len(files) > MAX_FILES:
        yield f"and {len(files) - MAX_FILES:,} more"


def _digest(file: FileDigest) -> str:
    match file.how:
        case "whole":
            return f"sha256:{file.sha256[:12]}"
        case "link":
            return "link"
        case "parts":
            return f"digest of parts {file.sha256[:12]}"
        case "left out":
            return "not digested"
        case "gone":
            return "gone by then"
        case "changed":
            return "changed after it was read"
