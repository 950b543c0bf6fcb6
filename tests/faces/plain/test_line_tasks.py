"""Background tasks where there are only lines."""

from typing import Any

import pytest

from panpan.config.settings import BackgroundSettings
from panpan.faces.plain.line_loop import STOP_OR_KEEP, STOP_OR_STAY, LineTasks
from tests.faces.memory import Memory
from tests.fakes.background import FakeBackground, SessionWith, task
from tests.fakes.settings import settings_with


class Typed:
    """What the user types."""

    def __init__(self, *lines: str) -> None:
        self.left = list(lines)

    def go_on(self) -> None:
        pass

    async def next(self) -> str | None:
        return self.left.pop(0) if self.left else None


def tasks_of(background: FakeBackground | None, *lines: str, at_exit: str = "ask") -> tuple[LineTasks, Memory]:
    settings: Any = BackgroundSettings(at_exit=at_exit)
    session: Any = SessionWith(feature=background, settings=settings_with(background=settings))
    out, typed = Memory(), Typed(*lines)
    line_tasks: Any = LineTasks(session, out, typed)  # type: ignore[arg-type]
    return line_tasks, out


async def test_an_end_is_told_once() -> None:
    background = FakeBackground(task("3fa80001"), task("3fa80002", state="finished"))
    tasks, out = tasks_of(background)
    await tasks.say_what_ended()
    background.end("3fa80001", exit_code=1)
    await tasks.say_what_ended()
    await tasks.say_what_ended()

    assert out.text == "Background task 3fa80001 ended: npm run build (exit code 1)\n"


@pytest.mark.parametrize(("line", "keeps"), [("k", True), ("Keep ", True), ("s", False), ("", False), (None, False)])
async def test_who_leaves_says_what_becomes_of_them(line: str | None, keeps: bool) -> None:
    background = FakeBackground(task())
    tasks, out = tasks_of(background, *([] if line is None else [line]))

    assert await tasks.may_leave()
    assert background.keeps is keeps
    assert out.text.startswith("1 background task runs: npm run build\n")


@pytest.mark.parametrize(("state", "at_exit"), [("finished", "ask"), ("running", "stop")])
async def test_nobody_is_asked_for_nothing(state: str, at_exit: str) -> None:
    tasks, out = tasks_of(FakeBackground(task(state=state)), at_exit=at_exit)

    assert await tasks.may_leave()
    assert out.text == ""


@pytest.mark.parametrize(("line", "leaves"), [("s", True), ("b", False), ("Back", False), (None, True)])
async def test_of_what_cannot_be_kept_he_is_asked_whether_he_wants_to_leave(line: str | None, leaves: bool) -> None:
    background = FakeBackground(task(title="find it", kind="subagent"))
    tasks, out = tasks_of(background, *([] if line is None else [line]))

    assert await tasks.may_leave() is leaves
    assert background.keeps is False
    assert out.text == f"1 background task runs: find it\ncannot be kept running: find it\n{STOP_OR_STAY}"


async def test_who_is_asked_may_stay() -> None:
    background = FakeBackground(task(), task("b", "find it", kind="subagent"))
    tasks, out = tasks_of(background, "b")

    assert not await tasks.may_leave()
    assert out.text.endswith(f"\ncannot be kept running: find it\n{STOP_OR_KEEP}")


async def test_session_without_background_tasks_tells_and_asks_nothing() -> None:
    tasks, out = tasks_of(None)
    await tasks.say_what_ended()

    assert await tasks.may_leave()
    assert out.text == ""
