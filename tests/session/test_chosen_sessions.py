"""A session that a script names by a UUID or a name, and runs that nobody watches: which session they get."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

import pytest

from panpan.api import open_session
from panpan.config.locations import Locations
from panpan.errors import ConfigError, SessionError
from panpan.session.log.recorder import fork
from panpan.session.session import Session
from panpan.session.stored.finding import MAX_NAME_CHARS
from panpan.session.stored.store import ARCHIVE, summary_of
from panpan.types.messages import UserMessage

UUID = "0f9d1c3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f"
TAPE = 'version = 1\n[[reply]]\ntext = "yes"\n'


class Place:
    """A workspace, a home, and a model that says yes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {"HOME": str(root), "PANPAN_HOME": str(root / "home")}
        for name in ("here", "there"):
            (root / name / ".git").mkdir(parents=True)
        (root / "yes.toml").write_text(TAPE)

    def open(self, folder: str = "here", **wanted: Any) -> AbstractAsyncContextManager[Session]:
        overrides = {"model": f"cassette:{self.root / 'yes.toml'}"}
        return open_session(self.root / folder, overrides=overrides, env=self.env, **wanted)

    async def say(self, text: str, folder: str = "here", **wanted: Any) -> str:
        """Say something in a session, and return its id."""
        async with self.open(folder, **wanted) as session, aclosing(session.submit(text)) as events:
            async for _ in events:
                pass
            return session.info.id

    async def said(self, **wanted: Any) -> Sequence[str]:
        async with self.open(**wanted) as session:
            return [one.typed for one in session.conversation.messages if isinstance(one, UserMessage)]

    @property
    def folder(self) -> Path:
        return Locations.find(self.root / "here", self.env).sessions_folder

    def is_interactive(self, session_id: str) -> bool:
        summary = summary_of(self.folder / f"{session_id}.jsonl")
        assert summary is not None
        return summary.is_interactive


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_session_of_a_uuid_is_begun_once_and_then_goes_on(place: Place) -> None:
    wanted = UUID

    first, second = [await place.say(text, session=wanted) for text in ("one", "two")]

    assert first == second == wanted
    assert await place.said(session=wanted.upper()) == ["one", "two"]


async def test_session_of_a_uuid_is_found_in_another_project(place: Place) -> None:
    wanted = await place.say("one", folder="there")

    assert await place.said(session=wanted) == ["one"]


async def test_session_of_a_name_is_begun_once_and_has_it_as_its_title(place: Place) -> None:
    first = await place.say("one", session="Nightly  build")
    second = await place.say("two", session="nightly build")
    async with place.open(session="nightly build") as session:
        title = session.title

    assert (first, title) == (second, "Nightly build")
    assert await place.said(resume="nightly build") == ["one", "two"]


async def test_name_is_one_session_in_each_project(place: Place) -> None:
    assert await place.say("one", session="n") != await place.say("one", folder="there", session="n")


async def test_name_that_is_a_title_opens_that_session(place: Place) -> None:
    async with place.open() as session, aclosing(session.submit("one")) as events:
        async for _ in events:
            pass
        session.rename("my work")

    assert await place.said(session="My Work") == ["one"]


async def test_session_keeps_the_name_it_was_begun_under(place: Place) -> None:
    begun = await place.say("one", session="nightly")
    async with place.open(session="nightly") as session:
        session.rename("something else")

    assert await place.say("two", session="nightly") == begun


@pytest.mark.parametrize("wanted", [UUID, "nightly"])
async def test_second_opening_at_once_is_refused_by_the_lock(place: Place, wanted: str) -> None:
    async with place.open(session=wanted):  # nothing is written yet
        with pytest.raises(SessionError, match="is open in another panpan"):
            await place.say("two", session=wanted)
    await place.say("one", session=wanted)

    async with place.open(session=wanted):
        with pytest.raises(SessionError, match="is open in another panpan"):
            await place.say("two", session=wanted)


async def test_copy_of_another_session_gets_the_name_or_uuid(place: Place) -> None:
    origin, wanted = await place.say("one"), UUID

    by_id = await place.say("two", resume=origin, session=wanted, fork=True)
    await place.say("three", resume=origin, session="copy", fork=True)

    assert by_id == wanted
    assert await place.said(resume="copy") == ["one", "three"]
    assert await place.said(resume=origin) == ["one"]


@pytest.mark.parametrize("wanted", [UUID, "copy"])
async def test_copy_never_takes_the_place_of_a_session(place: Place, wanted: str) -> None:
    origin, there = await place.say("one"), await place.say("other", session=wanted)

    with pytest.raises(SessionError, match="exists already"):
        await place.say("two", resume=origin, session=wanted, fork=True)
    with pytest.raises(SessionError, match="exists already"):
        fork(place.folder / f"{origin}.jsonl", place.folder, there)

    assert await place.said(session=wanted) == ["other"]
    assert list(place.folder.glob("*.unfinished")) == []


async def test_fork_of_a_chosen_session_leaves_it_and_needs_one(place: Place) -> None:
    await place.say("one", session="n")

    await place.say("two", session="n", fork=True)

    assert await place.said(session="n") == ["one"]
    with pytest.raises(SessionError, match="there is no session 'other' to copy"):
        await place.say("x", session="other", fork=True)


async def test_archived_session_is_not_begun_again(place: Place) -> None:
    wanted = await place.say("one", session=UUID)
    (place.folder / ARCHIVE).mkdir()
    (place.folder / f"{wanted}.jsonl").rename(place.folder / ARCHIVE / f"{wanted}.jsonl")

    with pytest.raises(SessionError, match="is archived"):
        await place.say("two", session=wanted)


@pytest.mark.parametrize("name", ["", " \t", "x" * (MAX_NAME_CHARS + 1)])
async def test_name_has_a_length(place: Place, name: str) -> None:
    with pytest.raises(ConfigError, match="1 to 200 characters"):
        await place.say("x", session=name)


async def test_session_in_which_nothing_was_said_leaves_no_log(place: Place) -> None:
    async with place.open(session="n"):
        pass

    assert list(place.folder.glob("*")) == []


async def test_terminal_continues_its_own_newest_session_and_a_run_any(place: Place) -> None:
    mine = await place.say("mine", is_interactive=True)
    run = await place.say("run")

    async with place.open(continue_latest=True, is_interactive=True) as on_terminal:
        assert on_terminal.info.id == mine
    async with place.open(continue_latest=True) as unattended:
        assert unattended.info.id == run


async def test_terminal_without_sessions_says_how_to_reach_runs(place: Place) -> None:
    await place.say("run")

    with pytest.raises(SessionError, match="panpan sessions --runs"):
        async with place.open(continue_latest=True, is_interactive=True):
            pass


async def test_run_becomes_a_terminal_session_after_a_prompt_there(place: Place) -> None:
    run = await place.say("run")
    async with place.open(resume=run, is_interactive=True):
        pass
    before = place.is_interactive(run)
    await place.say("hello", resume=run, is_interactive=True)

    assert (before, place.is_interactive(run)) == (False, True)
    await place.say("run again", resume=run)
    assert place.is_interactive(run)


async def test_copy_belongs_to_whoever_made_it(place: Place) -> None:
    mine = await place.say("mine", is_interactive=True)

    of_run = await place.say("x", resume=mine, fork=True)
    of_mine = await place.say("x", resume=of_run, fork=True, is_interactive=True)

    assert [place.is_interactive(one) for one in (mine, of_run, of_mine)] == [True, False, True]
