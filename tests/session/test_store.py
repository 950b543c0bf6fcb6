"""Sessions are found, whatever else lies in their folders."""

import os
from pathlib import Path

import pytest

from panpan.errors import SessionError
from panpan.session.stored.store import archived_logs, logs_of_all_projects, newest_first, newest_session


def log(folder: Path, name: str, text: str, *, written_at: int) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text(text)
    os.utime(path, (written_at, written_at))
    return path


def test_newest_session_is_the_last_written_log_with_content(tmp_path: Path) -> None:
    log(tmp_path, "a", "{}", written_at=1)
    newest = log(tmp_path, "b", "{}", written_at=2)
    log(tmp_path, "c", "", written_at=3)

    assert newest_session(tmp_path) == newest


def test_newest_session_skips_a_log_that_vanishes(tmp_path: Path) -> None:
    newest = log(tmp_path, "a", "{}", written_at=1)
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "gone")  # a name that is listed, and nothing behind it

    assert newest_session(tmp_path) == newest


def test_newest_session_of_an_empty_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="this folder has no session; "):
        newest_session(tmp_path)


def test_logs_come_newest_first_without_other_files(tmp_path: Path) -> None:
    old = log(tmp_path, "z", "{}", written_at=1)
    new = log(tmp_path, "a", "{}", written_at=2)
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")

    assert newest_first(tmp_path.glob("*.jsonl")) == [new, old]


def test_logs_of_all_projects_omit_archived_ones(tmp_path: Path) -> None:
    here, there = (tmp_path / "projects" / name / "sessions" for name in ("here", "there"))
    (here / "archive").mkdir(parents=True)
    there.mkdir(parents=True)
    own = log(here, "01a", "{}", written_at=1)
    other = log(there, "01b", "{}", written_at=2)
    away = log(here / "archive", "01c", "{}", written_at=3)

    assert set(logs_of_all_projects(tmp_path)) == {own, other}
    assert set(archived_logs(tmp_path)) == {away}


def test_link_is_no_session(tmp_path: Path) -> None:
    real = log(tmp_path, "a", "{}", written_at=1)
    (tmp_path / "b.jsonl").symlink_to(real)

    assert newest_first(tmp_path.glob("*.jsonl")) == [real]
