"""A session is found by its id, its title or what was said first, and never guessed where several fit."""

import os
from pathlib import Path

import pytest

from panpan.errors import SessionError
from panpan.session.log.record_kinds import TitleRecord
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.session.stored.finding import MOST_NAMED, find_session
from panpan.types.messages import UserMessage


class Home:
    """A panpan home with sessions of two projects."""

    def __init__(self, folder: Path) -> None:
        self.path = folder

    def session(
        self, session_id: str, prompt: str = "hello", *, title: str = "", project: str = "here", away: bool = False
    ) -> Path:
        folder = self.folder(project) / "archive" if away else self.folder(project)
        log = SessionLog(folder / f"{session_id}.jsonl", session_id=session_id, cwd=Path("/w"))
        log.append(record_of(UserMessage.of(prompt)))
        if title:
            log.append(TitleRecord(summary=title).as_json())
        log.close()
        return log.path

    def folder(self, project: str = "here") -> Path:
        return self.path / "projects" / project / "sessions"

    def find(self, wanted: str) -> Path:
        return find_session(self.path, self.folder(), wanted)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_session_is_found_by_the_start_of_its_id_here_first(home: Home) -> None:
    own, other = home.session("01a"), home.session("01b", project="there")

    assert home.find("01") == own
    assert home.find("01b") == other


def test_session_is_found_by_its_whole_id_before_longer_ones(home: Home) -> None:
    short, _ = home.session("01a"), home.session("01ab")

    assert home.find("01a") == short


def test_session_is_found_by_its_title_in_any_case(home: Home) -> None:
    named, _ = home.session("01a", title="Fix the  Parser"), home.session("01b", title="fix the parser again")

    assert home.find("fix the PARSER") == named


def test_session_is_found_by_title_before_prompt(home: Home) -> None:
    home.session("01a", "the parser is slow")
    titled = home.session("01b", title="fix the parser")

    assert home.find("parser") == titled


def test_session_is_found_by_its_first_prompt(home: Home) -> None:
    home.session("01a", "what is this?")
    said = home.session("01b", "\n  why does the Build fail?\nmore")

    assert home.find("the build") == said


def test_session_of_another_project_is_found_last(home: Home) -> None:
    home.session("01a", title="parser", project="there")
    own = home.session("01b", "a parser")

    assert home.find("parser") == own
    own.unlink()
    assert home.find("parser").stem == "01a"


@pytest.mark.parametrize("wanted", ["", "  ", "-p", "../x", ".", "02"])
def test_unknown_session_error_says_where_sessions_are_listed(home: Home, wanted: str) -> None:
    home.session("01a", "see ../x, e.g. -p .")

    if wanted == "../x":
        assert home.find(wanted).stem == "01a"  # it stands in the prompt, and is no path here
        return
    with pytest.raises(SessionError, match="panpan sessions"):
        home.find(wanted)


def test_ambiguous_id_error_names_the_sessions(home: Home) -> None:
    home.session("01a", "one"), home.session("01b", "two")

    with pytest.raises(SessionError) as told:
        home.find("01")

    assert "name one by its id:\n" in str(told.value)
    assert [line.split()[0] for line in str(told.value).splitlines()[1:]] == ["01a", "01b"]
    assert "“two”" in str(told.value)


def test_ambiguous_words_error_names_the_newest_harmlessly(home: Home) -> None:
    for number in range(MOST_NAMED + 2):
        os.utime(home.session(f"0{number}", "the \x1b[2Jbug"), (number, number))

    with pytest.raises(
        SessionError, match=r"(?s)several sessions fit 'the'; .*\n +06 .*\n +02 .*\n +and 2 more"
    ) as told:
        home.find("the")

    assert "\x1b" not in str(told.value)


def test_archived_session_error_says_how_to_restore_it(home: Home) -> None:
    home.session("01a", away=True)

    with pytest.raises(SessionError, match="panpan sessions archive --restore 01a"):
        home.find("01")


def test_shared_id_error_names_the_folders(home: Home) -> None:
    home.session("01a", project="there"), home.session("01a", project="elsewhere")

    with pytest.raises(
        SessionError, match=r"(?s)by its id, and its folder with --cwd:\n.*01a .* in /w\n.*01a .* in /w"
    ):
        home.find("01a")


def test_unreadable_file_does_not_hold_up_the_search(home: Home) -> None:
    own = home.session("01a", "the parser")
    os.mkfifo(home.folder() / "01b.jsonl")

    assert home.find("01") == own
    assert home.find("parser") == own
