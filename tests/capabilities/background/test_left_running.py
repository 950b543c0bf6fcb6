"""Commands that run without their session are found, and nothing else is."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.background.background_tasks import orphaned_commands, surviving_commands
from panpan.config.settings import BackgroundSettings
from panpan.core.background import JobEnd
from tests.capabilities.background.harness import Home, start


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """The tasks of the session called "tasks", whose log is there, too."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "tasks.jsonl").touch()
    return Home(tmp_path.resolve())


def found(home: Home) -> list[tuple[str, str]]:
    return [(session, task.title) for session, task in orphaned_commands(home.folder, home.folder / "sessions")]


async def wait(write: Callable[[str], None]) -> JobEnd:
    await anyio.sleep_forever()
    return JobEnd("", is_error=False)


async def test_kept_command_is_found_until_it_ends(home: Home) -> None:
    async with home.serving(keep=True) as tasks:
        await start(tasks, "sleep 600", title="goes on")
        await tasks.wait((await start(tasks, "exit 0", title="has ended")).id, 20)
    was_found = found(home)
    async with home.serving():
        pass  # which ends it

    assert (was_found, found(home)) == ([("tasks", "goes on")], [])


async def test_command_of_an_open_session_is_not_found(home: Home) -> None:
    async with home.serving() as tasks:
        await start(tasks, "sleep 600")
        fd = os.open(home.folder / "sessions" / "tasks.jsonl", os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            assert found(home) == []
        finally:
            os.close(fd)
        assert len(found(home)) == 1


async def test_keepable_tasks_are_commands(home: Home) -> None:
    async with home.serving() as tasks:
        started = await start(tasks, "sleep 600")
        tasks.start_job(kind="subagent", title="look", tool_use_id="1", agent_id="a", job=wait)

        assert [task.id for task in tasks.keepable] == [started.id]
        assert len(tasks.running) == 2


@pytest.mark.parametrize(("at_exit", "keeps"), [("ask", False), ("stop", False), ("keep", True)])
def test_at_exit_setting_decides_without_a_user(home: Home, at_exit: str, keeps: bool) -> None:
    settings = BackgroundSettings.model_validate({"at_exit": at_exit})

    assert home.opened(settings=settings).keeps is keeps


async def test_new_session_is_told_of_earlier_tasks(home: Home) -> None:
    async with home.serving(keep=True) as tasks:
        await start(tasks, "sleep 600", title="serve\x1b[2J it")

    told = list(surviving_commands(home.folder, home.folder / "sessions", but="new"))
    own = list(surviving_commands(home.folder, home.folder / "sessions", but="tasks"))
    async with home.serving():
        pass  # which ends it

    (sentence,) = told
    assert sentence.startswith("still running here, left by an earlier session: serve")
    assert "\x1b" not in sentence
    assert "`panpan -r tasks`" in sentence
    assert own == []
