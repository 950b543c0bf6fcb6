import json
import logging
import resource
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from panpan.cli.debug_command import debug_log
from panpan.system.text.redact import Redactor

SECRET = 'hunter2-"quoted"-\\-ünter'
LOG = logging.getLogger("panpan.somewhere")


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_debug_log_writes_json_lines_to_a_private_file(tmp_path: Path) -> None:
    with debug_log(tmp_path / "debug", Redactor()) as log:
        LOG.debug("asked %s", "the model", extra={"tokens": 3, "tools": ["a", "b"], "cwd": Path("/x")})
        LOG.info("two\nlines")

    first, second = records(log.path)
    assert first["message"] == "asked the model"
    assert (first["level"], first["logger"]) == ("debug", "panpan.somewhere")
    assert (first["tokens"], first["tools"], first["cwd"]) == (3, ["a", "b"], "/x")
    assert second["message"] == "two\nlines"
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert log.path.parent.stat().st_mode & 0o777 == 0o700


def test_debug_log_holds_no_secret(tmp_path: Path) -> None:
    with debug_log(tmp_path, Redactor([SECRET])) as log:
        LOG.debug("key %s", SECRET)
        LOG.debug("nested", extra={"body": {"deep": [{SECRET: SECRET}]}, "object": Exception(SECRET)})
        try:
            raise RuntimeError(SECRET)
        except RuntimeError:
            LOG.exception("failed")

    text = log.path.read_text()
    assert SECRET not in text
    assert json.dumps(SECRET)[1:-1] not in text
    assert "quoted" not in text
    assert records(log.path)[2]["exception"].endswith("RuntimeError: [redacted]")


def test_debug_log_has_warnings_of_other_loggers_only(tmp_path: Path) -> None:
    with debug_log(tmp_path, Redactor()) as log:
        logging.getLogger("other").warning("mind this")
        logging.getLogger("other").info("chatter")

    assert [record["message"] for record in records(log.path)] == ["mind this"]


def test_debug_log_restores_handlers_and_level(tmp_path: Path) -> None:
    handlers, level = list(logging.getLogger().handlers), logging.getLogger("panpan").level
    LOG.debug("before")
    with debug_log(tmp_path, Redactor()) as log:
        pass
    LOG.debug("after")

    assert records(log.path) == []
    assert logging.getLogger().handlers == handlers
    assert logging.getLogger("panpan").level == level


def test_debug_log_loses_only_a_record_it_cannot_write(tmp_path: Path) -> None:
    class Unshowable:
        def __str__(self) -> str:
            raise ValueError("no")

    with debug_log(tmp_path, Redactor()) as log:
        LOG.debug("bad", extra={"value": Unshowable()})
        log.emit(logging.makeLogRecord({"msg": "too %s many", "args": ("arguments", "here"), "name": "panpan"}))
        log.emit(logging.makeLogRecord({"msg": "good \ud800", "name": "panpan"}))

    found = records(log.path)
    assert [record.get("error", "") for record in found[:2]] == [
        "record not writable: ValueError",
        "record not writable: TypeError",
    ]
    assert found[2]["message"].startswith("good ")


def test_debug_log_cuts_long_texts_and_endless_structures(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)

    with debug_log(tmp_path, Redactor()) as log:
        LOG.debug("x" * 1_000_000, extra={"endless": endless})

    assert log.path.stat().st_size < 50_000
    assert "characters left out" in records(log.path)[0]["message"]


def test_debug_log_keeps_records_of_threads_apart(tmp_path: Path) -> None:
    def write(name: int) -> None:
        for number in range(50):
            LOG.debug("%s", f"{name}-{number}")

    with debug_log(tmp_path, Redactor()) as log:
        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    expected = {f"{name}-{number}" for name in range(4) for number in range(50)}
    assert {record["message"] for record in records(log.path)} == expected


def test_debug_log_counts_records_lost_on_a_full_disk(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with debug_log(tmp_path, Redactor()) as log:
            LOG.debug("first")
            size = log.path.stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
            LOG.debug("torn")
            LOG.debug("lost")
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            LOG.debug("last")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)

    lines = log.path.read_text().splitlines()
    assert [json.loads(line)["message"] for line in (lines[0], lines[-1])] == ["first", "last"]
    assert log.lost == 2


def test_debug_log_raises_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Exception, match="file"), debug_log(tmp_path / "file", Redactor()):
        pass
