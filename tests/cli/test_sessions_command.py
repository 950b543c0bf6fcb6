"""`panpan sessions` lists what can be resumed, in lines that fit and cannot drive the terminal."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from panpan.cli.sessions.command import command
from panpan.config.locations import Locations
from panpan.session.log.record_kinds import OpenedRecord, TitleRecord
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.types.messages import UserMessage


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def sessions(home: Path, project: Path, *flags: str, columns: int = 80) -> Result:
    env = {name: None for name in os.environ} | {"PANPAN_HOME": str(home), "COLUMNS": str(columns), "TZ": "UTC"}
    return CliRunner().invoke(command, ["--cwd", str(project), *flags], env=env, standalone_mode=False)


def session(
    home: Path,
    project: Path,
    session_id: str,
    prompt: str,
    *,
    title: str = "",
    written_at: int = 0,
    is_interactive: bool = True,
) -> None:
    folder = Locations.find(project, {"PANPAN_HOME": str(home)}).sessions_folder
    log = SessionLog(folder / f"{session_id}.jsonl", session_id=session_id, cwd=project)
    if not is_interactive:
        log.append(OpenedRecord(interactive=False).as_json())
    log.append(record_of(UserMessage.of(prompt)))
    if title:
        log.append(TitleRecord(summary=title).as_json())
    log.close()
    os.utime(folder / f"{session_id}.jsonl", (written_at, written_at))


def test_newest_session_comes_first_by_its_short_id(home: Path, project: Path) -> None:
    session(home, project, "01a20098-4c1e-7000-8000-000000000001", "old", written_at=86_400)
    session(home, project, "01a20098-4c1d-7000-8000-000000000001", "new", written_at=172_800)

    result = sessions(home, project)

    new, old = result.stdout.splitlines()
    assert new.startswith("01a20098-4c1d  1970-01-0")
    assert new.endswith("  0 rounds  new")
    assert old.startswith("01a20098-4c1e  ")
    assert "panpan -r ID" in result.stderr


def test_session_with_a_title_is_listed_by_it(home: Path, project: Path) -> None:
    session(home, project, "01a", "what is this?", title="the \x1b[31mbug")

    (line,) = sessions(home, project).stdout.splitlines()
    (found,) = json.loads(sessions(home, project, "--json").stdout)["sessions"]

    assert line.endswith("  the \\x1b[31mbug")
    assert (found["title"], found["prompt"]) == ("the \x1b[31mbug", "what is this?")


def test_ids_of_the_same_millisecond_are_shown_whole(home: Path, project: Path) -> None:
    ids = [f"01a20098-4c1e-7000-8000-00000000000{number}" for number in range(2)]
    for session_id in ids:
        session(home, project, session_id, "x")

    assert {line.split()[0] for line in sessions(home, project).stdout.splitlines()} == set(ids)


def test_lines_fit_the_terminal_and_cannot_drive_it(home: Path, project: Path) -> None:
    session(home, project, "01\x1b[2J", "a\x1b[2J\u202e " + "long " * 100)

    (line,) = sessions(home, project, columns=100).stdout.splitlines()

    assert line.isprintable()
    assert len(line) == 100
    assert line.endswith("…")


def test_sessions_all_lists_other_projects_with_folders(home: Path, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    session(home, project, "01a", "here", written_at=2)
    session(home, other, "01b", "there", written_at=1)

    own, every = sessions(home, project), sessions(home, project, "--all")

    assert len(own.stdout.splitlines()) == 1
    assert every.stdout.splitlines()[1::2] == [f"    {project}", f"    {other}"]


def test_sessions_limit_says_how_many_are_older(home: Path, project: Path) -> None:
    for number in range(3):
        session(home, project, f"0{number}", "x", written_at=number)

    result = sessions(home, project, "-n", "2")

    assert [line.split()[0] for line in result.stdout.splitlines()] == ["02", "01"]
    assert "1 older" in result.stderr


def test_list_counts_runs_and_shows_them_where_asked(home: Path, project: Path) -> None:
    session(home, project, "00", "mine", written_at=0)
    for number in range(1, 4):
        session(home, project, f"0{number}", "run", written_at=number, is_interactive=False)
    session(home, project, "04", "mine, too", written_at=4)

    result, every = sessions(home, project, "-n", "2"), sessions(home, project, "--runs", "-n", "4")

    assert [line.split()[0] for line in result.stdout.splitlines()] == ["04", "00"]
    assert "3 runs with -p or a pipe not listed; --runs lists them, too" in result.stderr
    assert "older" not in result.stderr
    assert [line.split()[0] for line in every.stdout.splitlines()] == ["04", "03", "02", "01"]
    assert "1 older" in every.stderr


def test_json_has_what_the_lines_have(home: Path, project: Path) -> None:
    session(home, project, "01a", "what is\nthis")

    (found,) = json.loads(sessions(home, project, "--json").stdout)["sessions"]

    assert (found["id"], found["prompt"], found["rounds"], found["cwd"]) == ("01a", "what is", 0, str(project))
    assert found["written_at"] == "1970-01-01T00:00:00+00:00"
    assert Path(found["path"]).is_file()


@pytest.mark.parametrize("flags", [[], ["--all"]])
def test_empty_list_of_sessions_is_no_error(home: Path, project: Path, flags: list[str]) -> None:
    result = sessions(home, project, *flags)

    assert (result.return_value, result.stdout) == (0, "")
    assert "there are no sessions" in result.stderr
    assert not home.exists()
