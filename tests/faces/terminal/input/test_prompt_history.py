"""The history of prompts in its file."""

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.input import input_box
from panpan.faces.terminal.input.input_box import PromptHistory, entries, record
from panpan.system.files.file_lock import hold_lock
from panpan.system.text.redact import Redactor


def history_in(folder: Path, warnings: list[str] | None = None, secrets: tuple[str, ...] = ()) -> PromptHistory:
    history = PromptHistory(folder / "project" / "history", (warnings if warnings is not None else []).append)
    history.write_with(Redactor(secrets).redact)
    return history


def recalled(folder: Path) -> list[str]:
    return list(history_in(folder).load_history_strings())


async def test_later_session_recalls_the_newest_first(tmp_path: Path) -> None:
    kept = PromptHistory(tmp_path / "h")
    kept.write_with(Redactor().redact)
    kept.append_string("one")
    kept.append_string("two\n\nlines + more")

    later = PromptHistory(tmp_path / "h")

    assert [entry async for entry in later.load()] == ["two\n\nlines + more", "one"]


def test_history_is_not_written_before_secrets_are_known(tmp_path: Path) -> None:
    file = tmp_path / "h"
    kept = PromptHistory(file)
    kept.append_string("first hunter2hunter2")
    assert not file.exists()

    kept.write_with(Redactor(("hunter2hunter2",)).redact)
    kept.append_string("second hunter2hunter2")

    assert [entry.split()[0] for entry in entries(file.read_bytes())] == ["first", "second"]
    assert b"hunter2hunter2" not in file.read_bytes()


def test_file_and_its_folder_are_private(tmp_path: Path) -> None:
    history_in(tmp_path).append_string("x")

    assert stat.S_IMODE((tmp_path / "project" / "history").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "project").stat().st_mode) == 0o700


def test_secret_like_prompt_is_not_written(tmp_path: Path) -> None:
    kept = history_in(tmp_path, secrets=("hunter2hunter2hunter2hunter2",))
    kept.append_string("use sk-ant-api03-abcdefghijklmnop1234 and hunter2hunter2hunter2hunter2")

    assert recalled(tmp_path) == ["use [redacted] and [redacted]"]
    assert kept.get_strings() == ["use sk-ant-api03-abcdefghijklmnop1234 and hunter2hunter2hunter2hunter2"]


def test_same_prompt_twice_in_a_row_is_kept_once(tmp_path: Path) -> None:
    kept = history_in(tmp_path)
    for prompt in ("go on", "go on", "stop", "go on"):
        kept.append_string(prompt)

    assert recalled(tmp_path) == ["go on", "stop", "go on"]


def test_very_long_prompt_is_not_written(tmp_path: Path) -> None:
    kept = history_in(tmp_path)
    kept.append_string("x" * (input_box.MAX_ENTRY_CHARS + 1))
    kept.append_string("short")

    assert recalled(tmp_path) == ["short"]


def test_long_file_loses_its_older_half_and_stays_private(tmp_path: Path) -> None:
    file = tmp_path / "project" / "history"
    file.parent.mkdir()
    when = datetime(2026, 1, 1, tzinfo=UTC)
    file.write_bytes(b"".join(record(f"prompt number {number} {'x' * 500}", when) for number in range(3_000)))
    file.chmod(0o600)

    prompts = recalled(tmp_path)

    assert prompts[0].startswith("prompt number 2999 ")
    assert [int(prompt.split()[2]) for prompt in prompts] == list(range(2999, 2999 - len(prompts), -1))
    assert 0 < file.stat().st_size <= input_box.MAX_FILE_BYTES // 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert recalled(tmp_path) == prompts


def test_long_history_held_by_another_panpan_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "project" / "history"
    file.parent.mkdir()
    when = datetime(2026, 1, 1, tzinfo=UTC)
    file.write_bytes(b"".join(record(f"{number} {'x' * 1_000}", when) for number in range(1_500)))
    before = file.read_bytes()

    with hold_lock(file.with_name("history.lock"), wait_s=0):
        assert len(recalled(tmp_path)) == 1_500

    assert file.read_bytes() == before


def test_two_panpans_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from panpan.system.text.redact import Redactor\n"
        "from panpan.faces.terminal.input.input_box import PromptHistory\n"
        "kept = PromptHistory(Path(sys.argv[1]), print)\n"
        "kept.write_with(Redactor().redact)\n"
        "for number in range(50): kept.append_string(f'{sys.argv[2]} {number}\\nsecond line')"
    )
    file = tmp_path / "project" / "history"
    running = [subprocess.Popen([sys.executable, "-c", code, str(file), name]) for name in ("a", "b")]

    assert [process.wait() for process in running] == [0, 0]
    wanted = {f"{name} {number}\nsecond line" for name in "ab" for number in range(50)}
    assert len(recalled(tmp_path)) == 100
    assert set(recalled(tmp_path)) == wanted


def test_unwritable_history_is_reported_once_and_typing_goes_on(tmp_path: Path) -> None:
    (tmp_path / "project").write_text("a file where the folder should be")
    warnings: list[str] = []
    kept = history_in(tmp_path, warnings)

    kept.append_string("one")
    kept.append_string("two")

    assert kept.get_strings() == ["one", "two"]
    assert len(warnings) == 1
    assert "cannot save" in warnings[0]


def test_fifo_in_place_of_the_history_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    os.mkfifo(tmp_path / "project" / "history")
    warnings: list[str] = []

    assert list(history_in(tmp_path, warnings).load_history_strings()) == []
    assert len(warnings) == 1


def test_torn_record_costs_itself_only() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    data = record("first", when) + record("torn\nin two", when)[:-5] + record("last", when)

    assert entries(data)[0] == "first"
    assert entries(data)[-1] == "last"


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_history_round_trips_any_prompts(prompts: list[str]) -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)

    assert entries(b"".join(record(prompt, when) for prompt in prompts)) == prompts
