"""Permission questions: what answers them, and what never does."""

import time

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, LOOK_S, texts_of
from tests.model_server import Reply, Text, ToolCall, call, calls, say, serving
from tests.terminal_emulator import keys

TOUCH = call("Bash", {"command": "touch made"})
FINE = say("Fine.")


@pytest.mark.parametrize(("key", "exists"), [("y", True), ("Y", True), ("n", False), ("N", False)])
def test_a_key_answers(panpan: Panpan, start: Start, key: str, exists: bool) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("touch made", key)
        repl.wait_for("Fine.")
        repl.wait_for_prompt()

    assert (panpan.workspace / "made").exists() is exists


def test_escape_refuses_and_ends_the_turn_and_what_is_half_typed_stays(panpan: Panpan, start: Start) -> None:
    reply = Reply((Text("Slowly, slowly, slowly."), ToolCall("Bash", {"command": "touch made"})), delta_delay_s=0.1)
    with serving([reply, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Slowly")
        repl.type("half of it")
        repl.answer("touch made", keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        repl.wait_for(lambda screen: screen.before_cursor == "❯ half of it")
        repl.send(keys.ENTER)
        repl.wait_for("Fine.")

    assert not (panpan.workspace / "made").exists()
    assert texts_of(server.requests[1].messages[-1]).endswith("half of it")


def test_always_shows_the_rule_and_where_it_is_kept_and_is_not_asked_again(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, say("One."), TOUCH, say("Two.")]) as server:
        panpan.use(server)
        repl = start(columns=200)
        repl.submit("go")
        repl.wait_for("Bash(touch made)")
        shown = repl.visible
        repl.answer("touch made", "a")
        repl.wait_for("One.")
        repl.wait_for_prompt()
        (panpan.workspace / "made").unlink()
        repl.turn("again", "Two.")

    (saved,) = panpan.home.glob("projects/*/settings.toml")
    assert "Bash(touch made)" in saved.read_text()
    assert f"saves Bash(touch made) in ~/{saved.relative_to(panpan.home.parent)}" in " ".join(shown.split())
    assert (panpan.workspace / "made").exists()


def test_no_with_words_for_the_model(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("touch made", "t")
        repl.send("use another name")
        repl.wait_for("use another name")
        repl.send(keys.ENTER)
        repl.wait_for("Fine.")

    assert "use another name" in str(server.requests[1].messages[-1])
    assert not (panpan.workspace / "made").exists()


def test_the_cursor_stands_where_words_for_the_model_are_typed(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("touch made", "t")
        repl.type("use another name")


@pytest.mark.parametrize("key", ["y", "a", keys.ENTER], ids=["y", "a", "enter"])
def test_a_key_that_was_pressed_before_the_question_came_answers_nothing(
    panpan: Panpan, start: Start, key: str
) -> None:
    reply = Reply((Text("Slowly, slowly, slowly."), ToolCall("Bash", {"command": "touch made"})), delta_delay_s=0.1)
    with serving([reply, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Slowly")
        repl.type("x")
        # pressed again and again until the question is there: some of them just before it, some just after
        while "touch made" not in repl.visible:
            repl.send(key)
            time.sleep(0.03)
        for _ in range(5):
            repl.send(key)
        repl.wait_for("touch made")
        made_before = (panpan.workspace / "made").exists()
        repl.answer("touch made", "n")
        repl.wait_for("Fine.")

    assert not made_before
    assert not (panpan.workspace / "made").exists()


def test_what_is_half_typed_is_there_after_the_question(panpan: Panpan, start: Start) -> None:
    reply = Reply((Text("Slowly, slowly, slowly."), ToolCall("Bash", {"command": "touch made"})), delta_delay_s=0.1)
    with serving([reply, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Slowly")
        repl.type("half of it")
        repl.answer("touch made", "y")
        repl.wait_for("Fine.")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ half of it")

    assert (panpan.workspace / "made").exists()


def test_a_paste_answers_nothing(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("touch made")
        time.sleep(LOOK_S)
        repl.paste("yes\ny\n")
        repl.answer("touch made", "n")
        repl.wait_for("Fine.")

    assert not (panpan.workspace / "made").exists()


def test_several_questions_come_one_after_the_other(panpan: Panpan, start: Start) -> None:
    names = ["first", "second", "third"]
    with serving([calls(*(ToolCall("Bash", {"command": f"touch {name}"}) for name in names)), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        for name, key in zip(names, "yny", strict=True):
            repl.answer(f"touch {name}", key)
        repl.wait_for("Fine.")

    assert [(panpan.workspace / name).exists() for name in names] == [True, False, True]


def test_control_characters_are_made_visible(panpan: Panpan, start: Start) -> None:
    command = "touch made \x1b[2K\x1b[1G; echo harmless \u202e"
    with serving([call("Bash", {"command": command}), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("U+001B")
        shown = repl.visible
        repl.answer("U+001B", "n")
        repl.wait_for("Fine.")

    assert "U+202E" in shown
    assert "touch made" in shown


def test_an_edit_is_shown_as_a_diff(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "a.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    edit = {"file_path": "a.py", "old_string": "two = 2", "new_string": "two = 22"}
    with serving([call("Read", {"file_path": "a.py"}), call("Edit", edit), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for(lambda screen: "two = 2" in screen.text and "two = 22" in screen.text)
        repl.answer("two = 22", "y")
        repl.wait_for("Fine.")

    assert (panpan.workspace / "a.py").read_text() == "one = 1\ntwo = 22\nthree = 3\n"


def test_a_long_command_can_be_answered_in_a_small_window(panpan: Panpan, start: Start) -> None:
    command = "touch made\n" + "\n".join(f"echo line {number}" for number in range(300))
    with serving([call("Bash", {"command": command}), FINE]) as server:
        panpan.use(server)
        repl = start(columns=40, rows=12)
        repl.submit("go")
        repl.wait_for("more lines")
        shown = repl.visible
        repl.answer("more lines", "n")
        repl.wait_for("Fine.")
        repl.wait_for_prompt()

    assert "Bash" in shown
    assert not (panpan.workspace / "made").exists()


def test_the_question_is_withdrawn_when_the_turn_is_interrupted_with_ctrl_c(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("touch made", keys.ctrl("c"))
        repl.wait_for(INTERRUPTED)
        repl.wait_for_prompt()
        repl.turn("hello?", "Fine.")

    assert not (panpan.workspace / "made").exists()
    assert texts_of(server.requests[0].messages[-1]) == "go"
