"""The newest session is found, whatever else lies in the folder."""

import os
from pathlib import Path

import pytest

from panpan.errors import SessionError
from panpan.services.sessions.store import newest_session


def log(folder: Path, name: str, text: str, *, written_at: int) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text(text)
    os.utime(path, (written_at, written_at))
    return path


def test_the_log_written_last_is_the_newest_unless_it_is_empty(tmp_path: Path) -> None:
    log(tmp_path, "a", "{}", written_at=1)
    newest = log(tmp_path, "b", "{}", written_at=2)
    log(tmp_path, "c", "", written_at=3)

    assert newest_session(tmp_path) == newest


def test_a_log_that_is_gone_when_it_is_looked_at_is_passed_over(tmp_path: Path) -> None:
    newest = log(tmp_path, "a", "{}", written_at=1)
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "gone")  # a name that is listed, and nothing behind it

    assert newest_session(tmp_path) == newest


def test_a_folder_without_sessions_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="no session to continue"):
        newest_session(tmp_path)
