"""Questions reach the screen that shows them, and nobody answers where there is none."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.dialogs.question_dialogs import QuestionDialogs
from panpan.faces.terminal.screen.external_program import EditorFailed
from panpan.faces.turn_text import WaitingTime
from panpan.types.content import DiffDisplay, FileDiff
from panpan.types.permission import (
    Choice,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanApproved,
    PlanEdited,
    PlanProposal,
    UserQuestion,
)
from tests.faces.terminal.dialogs.drawn import Clock, DialogScreen, rows_of

BASH = PermissionQuestion("1", "Bash", {"command": "make"}, "make", "it runs a command")
WHICH = UserQuestion("Which", "Which one?", (Choice("this"), Choice("that")))


def home_shown(path: Path) -> str:
    return f"~/{path.name}"


class Screen(DialogScreen):
    """Shows questions at a width, and notes that they wait."""

    def __init__(self, width: int = 80, room: int = 20) -> None:
        super().__init__(DialogQueue(lambda: None, lambda: 0.0), width=width, room=room)
        self.waited = 0
        self.edits: list[str | EditorFailed] = []
        """Texts that the user saves in their editor, one time after the other."""
        self.kept: list[str] = []
        """Plans that were shown for good."""
        self.view = SimpleNamespace(is_of_turn=lambda question: True, keep_plan=self.kept.append)

    def question_waits(self) -> None:
        self.waited += 1

    async def edited(self, text: str) -> str | EditorFailed:
        return self.edits.pop(0)

    def rows(self, width: int = 80) -> list[str]:
        """Return the rows of the dialog that is shown."""
        assert self.dialogs.current is not None
        return rows_of(self.dialogs.current, width)


def dialogs_on(screen: Screen, clock: Callable[[], float] = lambda: 0.0) -> tuple[QuestionDialogs, Screen]:
    return QuestionDialogs(cast(Any, screen), WaitingTime(clock), home_shown), screen


async def answered(
    asking: QuestionDialogs, screen: Screen, question: PermissionQuestion, look: Callable[[], None]
) -> None:
    """Put a question, look at it, and answer no."""

    async def ask() -> None:
        assert await asking.answer_to(question) == PermissionAnswer(is_allowed=False)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        while screen.dialogs.current is None:  # it is laid out in a thread
            await anyio.lowlevel.checkpoint()
        look()
        screen.dialogs.press("n")


async def test_questions_go_to_the_screen_which_is_told_that_one_waits() -> None:
    asking, screen = dialogs_on(Screen())

    await answered(asking, screen, BASH, lambda: None)

    assert screen.waited == 1


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("title", ["sub/new.py", "/home/me/project/sub/new.py"])
async def test_path_of_a_new_file_is_shown_once(title: str, width: int) -> None:
    file = FileDiff(path="sub/new.py", diff="@@ -0,0 +1 @@\n+x", added=1, removed=0, is_new=True)
    asking, screen = dialogs_on(Screen(width))
    question = PermissionQuestion("1", "Write", {}, title, "it writes", preview=DiffDisplay(files=(file,)))

    def look() -> None:
        assert [row for row in screen.rows(width) if "new.py" in row] == ["  sub/new.py (new) +1 -0"]

    await answered(asking, screen, question, look)


async def test_diff_that_is_cut_stands_above_the_whole_call() -> None:
    file = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=900, removed=900, replaced_of=900, is_cut=True)
    asking, screen = dialogs_on(Screen(80))
    arguments = {"file_path": "a.py", "content": "b\nlast"}
    question = PermissionQuestion("1", "Write", arguments, "a.py", "it writes", preview=DiffDisplay(files=(file,)))

    def look() -> None:
        rows = [row.rstrip() for row in screen.rows(80)]
        begin = rows.index("  a.py +900 -900 (replaces all of 900 lines)")
        assert rows[begin + 1 : begin + 8] == [
            "  1 - a",
            "  1 + b",
            "  The whole call:",
            "  file_path: a.py",
            "  content:",
            "  │ b",
            "  │ last",
        ]

    await answered(asking, screen, question, look)


async def test_title_that_says_more_than_the_path_stays() -> None:
    files = tuple(FileDiff(path=path, diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1) for path in ("a.py", "b.py"))
    asking, screen = dialogs_on(Screen())
    question = PermissionQuestion(
        "1", "Rename", {}, "a.py, b.py (a to b)", "it writes", preview=DiffDisplay(files=files)
    )

    await answered(asking, screen, question, lambda: _has(screen, "  a.py, b.py (a to b)"))


async def test_long_path_is_shown_to_its_end() -> None:
    path = "folder/" * 12 + "new.py"
    file = FileDiff(path=path, diff="@@ -0,0 +1 @@\n+x", added=1, removed=0, is_new=True)
    asking, screen = dialogs_on(Screen(40))
    question = PermissionQuestion("1", "Write", {}, path, "it writes", preview=DiffDisplay(files=(file,)))

    def look() -> None:
        assert f"{path} (new) +1 -0" in "".join(row.removeprefix("  ") for row in screen.rows(40))

    await answered(asking, screen, question, look)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("tool_name", ["Patch", "Rename"])
async def test_written_files_are_named_in_full_before_the_diffs(tool_name: str, width: int) -> None:
    paths = ["deep/" * 30 + name for name in ("a.txt", "b.txt", "c.txt", "run_me.py", "evil.sh")]
    files = tuple(FileDiff(path=path, diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1) for path in paths)
    title = f"{', '.join(paths[:3])} and 2 more{' (a to b)' if tool_name == 'Rename' else ''}"
    question = PermissionQuestion("1", tool_name, {}, title, "it writes", preview=DiffDisplay(files=files))
    asking, screen = dialogs_on(Screen(width, room=200))

    def look() -> None:
        assert screen.dialogs.current is not None
        screen.rows(width)
        screen.dialogs.press("c-o")
        text = "".join(row.removeprefix("  ") for row in screen.rows(width))
        assert f"5 files: {', '.join(paths)}" in text
        assert all(f"{path} +1 -1" in text for path in paths)
        assert ("(a to b)" in text) is (tool_name == "Rename")
        assert (" and 2 more" in text) is (tool_name == "Rename")

    await answered(asking, screen, question, look)


@pytest.mark.parametrize("width", [0, 1, 2, 3, 5])
async def test_diff_can_be_asked_about_in_a_too_narrow_terminal(width: int) -> None:
    file = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1)
    asking, screen = dialogs_on(Screen(width))
    question = PermissionQuestion("1", "Edit", {}, "a.py", "it writes", preview=DiffDisplay(files=(file,)))

    await answered(asking, screen, question, lambda: None)


def _has(screen: Screen, row: str) -> None:
    assert row in screen.rows()


PLAN = PlanProposal("Change parse, then run the tests.", Path("/plans/a.md"), ("default", "acceptEdits"))


async def judged(screen: Screen, *pressed: str) -> PlanAnswer:
    """Put a plan, press a key whenever a dialog waits, and return the answer."""
    asking, answers = dialogs_on(screen)[0], list[Any]()

    async def ask() -> None:
        answers.append(await asking.answer_to(PLAN))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        for key in pressed:
            # laid out in a thread, so that it comes when it comes
            while screen.dialogs.current is None or screen.dialogs.current.answer is not None:
                await anyio.lowlevel.checkpoint()
            screen.rows()
            screen.dialogs.current.was_drawn()
            screen.dialogs.press(key)
    return answers[0]


async def test_plan_goes_to_the_screen() -> None:
    screen = Screen()

    assert await judged(screen, "a") == PlanApproved("acceptEdits")
    assert screen.waited == 1


async def test_plan_is_edited_in_the_users_editor() -> None:
    screen = Screen()
    screen.edits = ["Change it all."]

    assert await judged(screen, "e") == PlanEdited("Change it all.")


@pytest.mark.parametrize("edit", ["", " \n", EditorFailed("there is no editor")])
async def test_plan_lost_by_the_editor_is_asked_about_again(edit: str | EditorFailed) -> None:
    screen = Screen()
    screen.edits = [edit]

    assert await judged(screen, "e", "y") == PlanApproved("default")


async def shown(screen: Screen) -> None:
    while screen.dialogs.current is None:  # laid out in a thread, so that it comes when it comes
        await anyio.lowlevel.checkpoint()


async def test_plan_is_shown_with_the_path_that_people_know() -> None:
    asking, screen = dialogs_on(Screen())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asking.answer_to, PLAN)
        await shown(screen)
        assert any("~/a.md" in row for row in screen.rows())
        tasks.cancel_scope.cancel()


async def test_time_in_which_something_is_asked_is_counted() -> None:
    clock = Clock()
    asking, screen = dialogs_on(Screen(), clock)

    def look() -> None:
        clock.now_s += 7

    await answered(asking, screen, BASH, look)
    clock.now_s += 100
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asking.answer_to, [WHICH])
        await shown(screen)
        clock.now_s += 2
        tasks.cancel_scope.cancel()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asking.answer_to, PLAN)
        await shown(screen)
        clock.now_s += 1
        tasks.cancel_scope.cancel()
    assert asking._waiting.seconds == 10


async def test_agents_wait_for_their_turn_to_ask() -> None:
    asking, screen = dialogs_on(Screen())
    answers: dict[str, PermissionAnswer] = {}
    scopes = {name: anyio.CancelScope() for name in "abc"}

    async def ask(name: str) -> None:
        with scopes[name]:
            answers[name] = await asking.answer_to(replace(BASH, tool_use_id=name, agent=f"explore: {name}"))

    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(ask, name)
        while len(screen.dialogs.all) < 3:
            await anyio.lowlevel.checkpoint()
        heads = [screen.rows()[0]]
        asked_first = heads[0].removeprefix("? explore: ")[0]
        others = sorted(set("abc") - {asked_first})
        scopes[others[0]].cancel("it ended")
        await anyio.wait_all_tasks_blocked()
        assert (screen.rows()[0], len(screen.dialogs.all)) == (heads[0], 2)
        screen.dialogs.press("escape")
        await anyio.wait_all_tasks_blocked()
        heads.append(screen.rows()[0])
        screen.rows()
        screen.dialogs.was_drawn(True)
        screen.dialogs.press("y")

    assert heads == [f"? explore: {asked_first} asks:", f"? explore: {others[1]} asks:"]
    assert {name: answer.is_allowed for name, answer in answers.items()} == {asked_first: False, others[1]: True}
