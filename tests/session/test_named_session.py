"""A session to go on with is found by what was said in it, where it is named by nothing else; and never guessed."""

from pathlib import Path

import pytest

from panpan.config.locations import Locations
from panpan.errors import SessionError
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.session.stored.finding import NoSuchSessionError, named_session
from panpan.types.messages import UserMessage
from tests.fakes.scripted_llm import say


class Project:
    """A project with sessions."""

    def __init__(self, folder: Path, name: str = "project") -> None:
        (folder / name / ".git").mkdir(parents=True)
        self.places = Locations.find(folder / name, {"PANPAN_HOME": str(folder / "home"), "HOME": str(folder)})

    def session(self, session_id: str, prompt: str, answer: str) -> Path:
        path = self.places.sessions_folder / f"{session_id}.jsonl"
        log = SessionLog(path, session_id=session_id, cwd=self.places.project_root)
        log.append(record_of(UserMessage.of(prompt)))
        log.append(record_of(say(answer)))
        log.close()
        return path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_named_session_finds_later_words_and_quotes_them(project: Project) -> None:
    project.session("01a", "hello", "the weather is fine")
    said = project.session("01b", "and now?", "a race \x1b[31mcondition in the parser")

    found = named_session(project.places, "condition parser")

    assert found.log == said
    assert found.note == "01b is the session in which this was said: a race condition in the parser"


def test_named_session_prefers_titles_and_first_words(project: Project) -> None:
    first = project.session("01a", "the parser", "done")
    project.session("01b", "hello", "the parser is slow")

    found = named_session(project.places, "parser")

    assert (found.log, found.note) == (first, "")


def test_named_session_lists_several_matches(project: Project) -> None:
    project.session("01a", "one", "a needle"), project.session("01b", "two", "the needle")

    with pytest.raises(SessionError, match=r"(?s)several sessions fit 'needle'; name one by its id:\n.*01b.*\n.*01a"):
        named_session(project.places, "needle")
    assert named_session(project.places, "needle", but="01b").log.stem == "01a"


@pytest.mark.parametrize("wanted", ["01a204", "01a204a0-5c83-7e1f", "nowhere", "!!!", "x " * 200])
def test_named_session_refuses_unknown_ids_and_words(project: Project, wanted: str) -> None:
    project.session("02b", "hello", "go on with 01a204a0-5c83-7e1f-90a3-646c0f44a97e")

    with pytest.raises(NoSuchSessionError, match="panpan sessions search --all"):
        named_session(project.places, wanted)


def test_named_session_ignores_words_of_other_projects(project: Project, tmp_path: Path) -> None:
    Project(tmp_path, "other").session("01a", "hello", "a needle")
    project.session("01b", "hello", "hay")

    with pytest.raises(NoSuchSessionError):
        named_session(project.places, "needle")


def test_named_session_without_sessions_needs_no_index(project: Project) -> None:
    with pytest.raises(NoSuchSessionError):
        named_session(project.places, "needle")

    assert not project.places.search_index.exists()
