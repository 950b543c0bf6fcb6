"""Receipts for the log of a session, bounded, and what earlier runs of the session have left there.

The files have one past, whatever branches the conversation has, so every record counts, also behind a rewind.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from panpan.capabilities.receipts.records import ReceiptRecord
from panpan.errors import SessionError
from panpan.receipts.receipt import Receipt
from panpan.session.log.agent_log import agent_logs, agents_folder
from panpan.session.log.record_kinds import FileChangesRecord, SystemRecord
from panpan.session.log.session_log import read_records
from panpan.types.dataclass import dataclass

MAX_FILES_IN_RECORD = 200
"""Most files that a record names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Parts of a session's log that are about commands and files."""

    receipts: Sequence[tuple[ReceiptRecord, Receipt]] = ()
    """In their order."""
    unfinished: Sequence[tuple[ReceiptRecord, Receipt]] = ()
    """Commands that went on in the background, and whose end the log does not say."""
    written: Collection[Path] = ()
    """Files that tools were about to write."""


def bounded(receipt: Receipt) -> Receipt:
    """Return a receipt that names at most `MAX_FILES_IN_RECORD` files, inputs first: staleness is judged by them."""
    inputs = receipt.inputs[:MAX_FILES_IN_RECORD]
    outputs = receipt.outputs[: MAX_FILES_IN_RECORD - len(inputs)]
    more_inputs = len(receipt.inputs) - len(inputs)
    more_files = more_inputs + len(receipt.outputs) - len(outputs)
    if not more_files:
        return receipt
    more = {"more_files": receipt.more_files + more_files, "more_inputs": receipt.more_inputs + more_inputs}
    return receipt.model_copy(update={"outputs": outputs, "inputs": inputs, **more})


def as_data(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt for the log."""
    return receipt.model_dump(mode="json", exclude_defaults=True)


_MARKS = (b'"subtype":"receipt"', b'"subtype":"background_command"', b'"subtype":"file_changes"')


def read_kept(log: Path, session_id: str) -> Kept:
    """Return what the log of a session, and those of its subagents, keep; what cannot be read is passed over. Blocks.

    Args:
        log: The log, which need not exist.
        session_id: Id of the session.
    """
    receipts: list[tuple[ReceiptRecord, Receipt]] = []
    begun: dict[str, tuple[ReceiptRecord, Receipt]] = {}
    written: set[Path] = set()
    for record in _records((log, *agent_logs(agents_folder(log.parent, session_id)))):
        match record:
            case FileChangesRecord(files=files):
                written.update(Path(file.path) for file in files if file is not None and file.after is not None)
            case ReceiptRecord() if (receipt := _receipt_in(record)) is not None:
                if record.subtype == "background_command":
                    begun[record.task_id] = record, receipt
                else:
                    receipts.append((record, receipt))
                    begun.pop(record.task_id, None)
            case _:
                pass
    return Kept(receipts, tuple(begun.values()), written)


_KINDS: Mapping[str, type[SystemRecord]] = {
    "receipt": ReceiptRecord,
    "background_command": ReceiptRecord,
    "file_changes": FileChangesRecord,
}


def _records(logs: Iterable[Path]) -> Iterator[SystemRecord | None]:
    for log in logs:
        with suppress(SessionError):
            for record in read_records(log, only=lambda line: any(mark in line for mark in _MARKS)):
                kind = _KINDS.get(str(record.get("subtype")))
                if record.get("type") == "system" and kind is not None:
                    yield kind.read(record)


def _receipt_in(record: ReceiptRecord) -> Receipt | None:
    try:
        return Receipt.model_validate(record.receipt)
    except ValidationError:
        return None
