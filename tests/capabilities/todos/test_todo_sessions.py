"""The todo list and the reminders of a session, as `open_session` puts them together, over tapes in place of models."""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from panpan.api import open_session
from panpan.capabilities.todos.todos import Todos
from panpan.faces.headless.output_formats import message_line
from panpan.session.session import Session
from panpan.types.content import ChecklistDisplay
from panpan.types.events import Event, PermissionDecided
from panpan.types.messages import SystemReminder, ToolResultMessage, UserMessage

DONE = 'text = "done"'
READ = 'tool_use = [{ name = "Read", input = { file_path = "a.txt" } }]'


def call(*todos: tuple[str, str]) -> str:
    items = ", ".join(f'{{ content = "{content}", status = "{status}" }}' for content, status in todos)
    return f'{{ name = "TodoWrite", input = {{ todos = [{items}] }} }}'


def write(*todos: tuple[str, str]) -> str:
    return f"tool_use = [{call(*todos)}]"


@dataclass
class Place:
    """A workspace and a home, and the warnings of the sessions that were opened there."""

    root: Path
    env: dict[str, str]
    warnings: list[str] = field(default_factory=list)

    def open(
        self, *replies: str, mode: str = "default", settings: dict[str, object] | None = None, **wishes: Any
    ) -> AbstractAsyncContextManager[Session]:
        tape = self.root / "tape.toml"
        tape.write_text("version = 1\n" + "\n".join(f"[[reply]]\n{reply}" for reply in replies or (DONE,)))
        overrides = {"model": f"cassette:{tape}", "permission.mode": mode, **(settings or {})}
        return open_session(
            self.root / "workspace", overrides=overrides, env=self.env, warn=self.warnings.append, **wishes
        )

    def files(self, pattern: str = "*.json") -> list[Path]:
        return sorted((Path(self.env["PANPAN_HOME"]) / "todos").glob(pattern))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("one\n")
    return Place(tmp_path, {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")})


async def turn(session: Session, prompt: str = "go") -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


def contents(session: Session) -> list[str]:
    return [todo.content for todo in session[Todos].todos]


def told(session: Session, category: str) -> Sequence[SystemReminder]:
    messages = session.conversation.messages
    return [one for one in messages if isinstance(one, SystemReminder) and one.category == category]


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk"])
async def test_todo_write_runs_unasked_and_notes_no_change(mode: str, place: Place) -> None:
    async with place.open(write(("read", "in_progress"), ("write", "pending")), DONE, mode=mode) as session:
        events = await turn(session)
        records = [json.loads(line) for line in session.agent.transcript.log.path.read_text().splitlines()]

    assert contents(session) == ["read", "write"]
    assert [event.is_allowed for event in events if isinstance(event, PermissionDecided)] == [True]
    assert [record for record in records if record.get("subtype") in ("call_started", "snapshot")] == []
    (file,) = place.files()
    assert (file.stem, [todo["content"] for todo in json.loads(file.read_text())["todos"]]) == (
        session.info.id,
        ["read", "write"],
    )


async def test_later_of_two_lists_in_a_reply_counts(place: Place) -> None:
    both = f"tool_use = [{call(('first', 'pending'))}, {call(('second', 'pending'))}]"
    async with place.open(both, DONE) as session:
        await turn(session)

    assert contents(session) == ["second"]


async def test_programs_get_the_list_with_the_result(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE) as session:
        events = await turn(session)

    (result,) = [event for event in events if isinstance(event, ToolResultMessage)]
    assert isinstance(result.display, ChecklistDisplay)
    assert message_line(result, "s1")["tool_use_result"] == {
        "type": "todos",
        "todos": [{"content": "read", "active_form": "read", "status": "pending", "id": "1"}],
    }


async def test_resumed_session_has_its_todos_and_a_fork_its_own(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE) as session:
        await turn(session)

    async with place.open(write(("of the fork", "pending")), DONE, continue_latest=True, fork=True) as fork:
        assert contents(fork) == ["read"]
        await turn(fork)
        assert contents(fork) == ["of the fork"]

    async with place.open(resume=session.info.id) as resumed:
        assert contents(resumed) == ["read"]
        assert told(resumed, "todo") == []
    assert len(place.files()) == 2


async def test_fork_has_the_todos_as_the_user_left_them(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE, DONE) as session:
        await turn(session)
        await session[Todos].clear()
        await turn(session)

    async with place.open(DONE, continue_latest=True, fork=True) as fork:
        assert contents(fork) == []
        await turn(fork)
        assert len(told(fork, "todo")) == 1

    async with place.open(resume=fork.info.id) as resumed:
        assert contents(resumed) == []


async def test_fork_has_the_todos_as_another_process_left_them(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE) as session:
        await turn(session)
    (file,) = place.files()
    file.write_text(file.read_text().replace('"read"', '"look"'))

    async with place.open(DONE, continue_latest=True, fork=True) as fork:
        assert contents(fork) == ["look"]


async def test_lost_file_is_replaced_by_the_conversations_list(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE) as session:
        await turn(session)
    (file,) = place.files()
    file.unlink()

    async with place.open(continue_latest=True) as resumed:
        assert contents(resumed) == ["read"]


async def test_rewind_restores_the_list_of_that_point(place: Place) -> None:
    replies = (write(("read", "pending")), DONE, write(("read", "completed"), ("write", "pending")), DONE)
    async with place.open(*replies) as session:
        await turn(session)
        await turn(session, "and then?")
        first, second = [one.uuid for one in session.conversation.messages if isinstance(one, UserMessage)]
        assert contents(session) == ["read", "write"]

        await session.rewind(second)
        assert [(todo.content, todo.status) for todo in session[Todos].todos] == [("read", "pending")]
        await session.rewind(first)
        assert contents(session) == []

    async with place.open(continue_latest=True) as resumed:
        assert contents(resumed) == []


async def test_cleared_list_is_told_to_the_model_once(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE, DONE, DONE) as session:
        await turn(session)
        await session[Todos].clear()
        await turn(session)
        await turn(session)

        (cleared,) = told(session, "todo")
        assert "was cleared" in cleared.text

    async with place.open(DONE, continue_latest=True) as resumed:
        await turn(resumed)
        assert len(told(resumed, "todo")) == 1


async def test_change_by_another_process_is_told_to_the_model(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE) as session:
        await turn(session)
    (file,) = place.files()
    kept = json.loads(file.read_text())
    kept["todos"][0]["content"] = "read all of it"
    file.write_text(json.dumps(kept))

    async with place.open(DONE, continue_latest=True) as resumed:
        assert contents(resumed) == ["read all of it"]
        await turn(resumed)
        (changed,) = told(resumed, "todo")

    assert "- [pending] read all of it" in changed.text


async def test_sessions_of_one_process_never_meet(place: Place) -> None:
    async with place.open(write(("of one", "pending")), DONE) as one:
        await turn(one)
        async with place.open(write(("of two", "pending")), DONE) as two:
            await turn(two)
            assert (contents(one), contents(two)) == (["of one"], ["of two"])


async def test_damaged_list_is_reported_at_opening(place: Place) -> None:
    async with place.open(write(("read", "pending")), DONE) as session:
        await turn(session)
    (file,) = place.files()
    file.write_text("{")

    async with place.open(continue_latest=True) as resumed:
        assert contents(resumed) == ["read"]

    (warning,) = place.warnings
    assert str(file) in warning
    assert file.read_text() == "{"


async def test_changed_file_is_told_unless_reminders_are_off(place: Place) -> None:
    for most, expected in ((20, 1), (0, 0)):
        async with place.open(READ, DONE, DONE, settings={"reminders.max_per_session": most}) as session:
            await turn(session)
            (place.root / "workspace" / "a.txt").write_text(f"changed with {most}\n")
            await turn(session)

        assert len(told(session, "file")) == expected
