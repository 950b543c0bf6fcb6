"""Receipts in the log are bounded, and what is damaged there counts for nothing."""

import json
from pathlib import Path

from panpan.capabilities.receipts.kept_receipts import MAX_FILES_IN_RECORD, as_data, bounded, read_kept
from panpan.capabilities.receipts.records import ReceiptRecord
from panpan.receipts.receipt import FileDigest, Receipt
from panpan.session.log.session_log import SessionLog


def receipt(*, inputs: int = 0, outputs: int = 0) -> Receipt:
    return Receipt(
        id="aaaa0001",
        argv=("bash", "-c", "make"),
        cwd=".",
        began_at="",
        ended_at="",
        seconds=1.5,
        exit_code=0,
        box="off",
        inputs=tuple(FileDigest(path=f"in{n:04}.py", sha256="0" * 64) for n in range(inputs)),
        outputs=tuple(FileDigest(path=f"out{n:04}.o", sha256="1" * 64) for n in range(outputs)),
    )


def test_bounded_keeps_a_small_receipt_as_it_is() -> None:
    small = receipt(inputs=MAX_FILES_IN_RECORD - 1, outputs=1)

    assert bounded(small) is small


def test_bounded_names_inputs_before_outputs() -> None:
    kept = bounded(receipt(inputs=150, outputs=70))

    assert (len(kept.inputs), len(kept.outputs)) == (150, MAX_FILES_IN_RECORD - 150)
    assert (kept.more_files, kept.more_inputs) == (20, 0)


def test_bounded_counts_inputs_that_it_leaves_out() -> None:
    kept = bounded(receipt(inputs=500, outputs=2))

    assert (len(kept.inputs), len(kept.outputs)) == (MAX_FILES_IN_RECORD, 0)
    assert (kept.more_files, kept.more_inputs) == (302, 300)


def written(folder: Path, *records: dict[str, object]) -> Path:
    log = SessionLog(folder / "s1.jsonl", session_id="s1", cwd=folder)
    for record in records:
        log.append(record)
    log.close()
    return log.path


def record(**fields: object) -> dict[str, object]:
    data = {"subtype": "receipt", "receipt": as_data(receipt()), "turn": 2, "agent_id": "a1", **fields}
    return ReceiptRecord.model_validate(data).as_json()


def test_read_kept_returns_what_was_written(tmp_path: Path) -> None:
    kept = read_kept(written(tmp_path, record()), "s1")

    ((found, content),) = kept.receipts
    assert content == receipt()
    assert (found.turn, found.agent_id, found.is_of_user) == (2, "a1", False)


def test_read_kept_passes_over_what_is_damaged(tmp_path: Path) -> None:
    log = written(tmp_path, record(receipt={"argv": 3}), {**record(), "receipt": "none"}, record())
    log.write_bytes(log.read_bytes() + b'{"type":"system","subtype":"receipt","uui')

    assert len(read_kept(log, "s1").receipts) == 1


def test_read_kept_of_no_log_is_empty(tmp_path: Path) -> None:
    assert read_kept(tmp_path / "none.jsonl", "none").receipts == []


def test_read_kept_tells_commands_without_an_end(tmp_path: Path) -> None:
    begun = {"subtype": "background_command"}
    log = written(tmp_path, record(task_id="t1", **begun), record(task_id="t2", **begun), record(task_id="t1"))

    kept = read_kept(log, "s1")

    assert [one.task_id for one, _ in kept.unfinished] == ["t2"]
    assert [one.task_id for one, _ in kept.receipts] == ["t1"]


def test_receipt_record_is_small(tmp_path: Path) -> None:
    log = written(tmp_path, record(receipt=as_data(bounded(receipt(inputs=5_000)))))

    assert len(log.read_bytes()) < 40_000
    assert json.loads(log.read_text())["receipt"]["more_files"] == 5_000 - MAX_FILES_IN_RECORD
