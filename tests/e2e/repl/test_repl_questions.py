"""Permission questions: what answers them, and what never does."""

import re
import time
from threading import Event

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, LOOK_S, WAITS, ends_input, texts_of
from tests.model_server import Hold, Reply, Text, ToolCall, call, calls, say, serving
from tests.terminal_emulator import keys

TOUCH = call("Bash", {"command": "touch made"})
FINE = say("Fine.")
LONG = call("Bash", {"command": "touch made\n" + "\n".join(f"echo line {number}" for number in range(300))})


def touch_later(gate: Event) -> Reply:
    """Return a reply that says something, and asks for a command when the gate opens."""
    touch = ToolCall("Bash", {"command": "touch made"})
    return Reply((Text("Thinking."), touch), chunk_chars=0, faults=(Hold(-3, gate),))


def test_question_is_answered_by_y_and_n(panpan: Panpan, start: Start) -> None:
    letters = "yYnN"
    turns = [(call("Bash", {"command": f"touch made-{key}"}), say(f"Fine: {key}.")) for key in letters]
    with serving([step for turn in turns for step in turn]) as server:
        panpan.use(server)
        repl = start()
        for key in letters:
            repl.submit("go")
            repl.answer(f"touch made-{key}", key)
            repl.wait_for(f"Fine: {key}.")
            repl.wait_for_prompt()

    assert [(panpan.workspace / f"made-{key}").exists() for key in letters] == [True, True, False, False]


def test_escape_refuses_ends_the_turn_and_keeps_the_draft(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([touch_later(gate), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking.")
        repl.type("half of it")
        gate.set()
        repl.answer("touch made", keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        repl.wait_for(lambda screen: screen.before_cursor == "❯ half of it")
        repl.send(keys.ENTER)
        repl.wait_for("Fine.")

    assert not (panpan.workspace / "made").exists()
    assert texts_of(server.requests[1].messages[-1]).endswith("half of it")


def test_always_shows_its_rule_and_is_not_asked_again(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, say("One."), TOUCH, say("Two.")]) as server:
        panpan.use(server)
        repl = start(columns=200)
        repl.submit("go")
        repl.wait_for("don't ask again for touch made")
        repl.answer("touch made", "a")
        repl.wait_for("enter, or a again, keeps it")
        repl.send(keys.ENTER)
        repl.wait_for("One.")
        repl.wait_for_prompt()
        told = repl.text
        (panpan.workspace / "made").unlink()
        repl.turn("again", "Two.")

    (saved,) = panpan.home.glob("projects/*/settings.toml")
    assert "Bash(touch made)" in saved.read_text()
    assert "kept for this project: Bash(touch made)" in told
    assert (panpan.workspace / "made").exists()


def test_refusal_sends_words_to_the_model(panpan: Panpan, start: Start) -> None:
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


def test_cursor_is_where_words_for_the_model_are_typed(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("touch made", "t")
        repl.type("use another name")


@pytest.mark.parametrize("key", ["y", "a", keys.ENTER], ids=["y", "a", "enter"])
def test_key_pressed_before_the_question_answers_nothing(panpan: Panpan, start: Start, key: str) -> None:
    gate = Event()
    with serving([touch_later(gate), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking.")
        repl.type("x")
        gate.set()
        # pressed again and again until the question is there: some of them just before it, some just after
        while "touch made" not in repl.visible:
            repl.send(key)
            time.sleep(0.03)
        for _ in range(5):
            repl.send(key)
        repl.send("z")
        repl.wait_for(lambda screen: any(re.fullmatch("❯ .*z", row) for row in screen.visible))  # all keys have arrived
        made_before = (panpan.workspace / "made").exists()
        repl.answer("touch made", "n")
        repl.wait_for("Fine.")

    assert not made_before
    assert not (panpan.workspace / "made").exists()


def test_draft_is_kept_after_the_question(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([touch_later(gate), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking.")
        repl.type("half of it")
        gate.set()
        repl.answer("touch made", "y")
        repl.wait_for("Fine.")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ half of it")

    assert (panpan.workspace / "made").exists()


def test_text_begun_at_a_question_answers_nothing(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("touch made")
        time.sleep(LOOK_S)  # not to wait for something: from here on a letter may answer
        for number, letter in enumerate("way", 1):
            repl.send(letter)
            repl.wait_for(ends_input("way"[:number]))
            time.sleep(LOOK_S / 2)
        assert not (panpan.workspace / "made").exists()
        repl.answer("touch made", "n")
        repl.wait_for("Fine.")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ way")


def test_paste_at_a_question_answers_nothing(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, FINE, say("Pasted.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("touch made")
        time.sleep(LOOK_S)
        repl.paste("yes\ny")
        repl.answer("touch made", "n")
        repl.wait_for("Fine.")
        repl.wait_for(ends_input("y"))
        repl.send(keys.ENTER)
        repl.wait_for("Pasted.")

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

    assert "U+001B" in shown
    assert "touch made" in shown


def test_question_of_an_edit_shows_a_diff(panpan: Panpan, start: Start) -> None:
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


def test_long_command_can_be_answered_in_a_small_window(panpan: Panpan, start: Start) -> None:
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

    assert "Run this command?" in shown
    assert not (panpan.workspace / "made").exists()


def test_repeated_yes_allows_nothing_that_was_not_all_shown(panpan: Panpan, start: Start) -> None:
    with serving([LONG, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("more lines", "yyyy")
        repl.wait_for("haven't seen all of it")
        repl.answer("haven't seen all of it", "n")
        repl.wait_for("Fine.")
        repl.wait_for_prompt()

    assert not (panpan.workspace / "made").exists()


def test_yes_after_the_warning_allows(panpan: Panpan, start: Start) -> None:
    with serving([LONG, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("more lines", "y")
        repl.answer("haven't seen all of it", "y")
        repl.wait_for("Fine.")

    assert (panpan.workspace / "made").exists()


def test_long_draft_leaves_room_for_a_question(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([touch_later(gate), FINE]) as server:
        panpan.use(server)
        repl = start(rows=14)
        repl.submit("go")
        repl.wait_for("Thinking.")
        for number in range(12):
            repl.send(f"draft {number}{keys.ctrl('j')}")
        repl.type("the end")
        gate.set()
        repl.answer("touch made", "y")
        repl.wait_for("Fine.")
        repl.wait_for("draft 11\n  the end")

    assert (panpan.workspace / "made").exists()


def test_pause_in_typing_lets_no_letter_answer(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([touch_later(gate), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking.")
        repl.type("please also tr")
        gate.set()
        repl.wait_for("1. Yes")
        time.sleep(LOOK_S)  # not to wait for something: this is the pause
        repl.type("y the tests")
        was_said = WAITS in repl.visible
        repl.answer("touch made", "n")
        repl.wait_for("Fine.")

    assert was_said
    assert not (panpan.workspace / "made").exists()


@pytest.mark.parametrize(("columns", "rows"), [(80, 11), (80, 8), (80, 5), (40, 8)])
def test_short_command_can_be_answered_in_a_tiny_window(panpan: Panpan, start: Start, columns: int, rows: int) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start(columns=columns, rows=rows)
        repl.submit("go")
        repl.wait_for(lambda screen: "touch made" in "\n".join(screen.visible) and "(n)" in "\n".join(screen.visible))
        repl.answer("touch made", "y")
        repl.wait_for("Fine.")

    assert (panpan.workspace / "made").exists()


def test_rule_of_wide_characters_leaves_room_for_the_question(panpan: Panpan, start: Start) -> None:
    with serving([call("Bash", {"command": "touch made " + "漢" * 70}), FINE]) as server:
        panpan.use(server)
        repl = start(columns=40, rows=24)
        repl.submit("go")
        repl.wait_for("? Run this command?")
        repl.answer("? Run this command?", "y")
        repl.wait_for("Fine.")

    assert (panpan.workspace / "made").exists()


def test_question_hidden_by_a_small_window_takes_no_keys(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("touch made")
        time.sleep(LOOK_S)  # not to wait for something: it would take keys now
        for columns, rows in [(80, 2), (5, 24), (1, 24), (3, 8), (2, 1)]:
            repl.resize(columns, rows)
            repl.send("yya")
        repl.resize(80, 2)
        repl.answer("too small", keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        repl.resize(80, 24)
        repl.wait_for(lambda screen: "❯" in screen.before_cursor)

    assert not (panpan.workspace / "made").exists()
    assert not repl.crash_reports()


def test_two_escapes_at_once_refuse(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("touch made", keys.ESCAPE * 2)
        repl.wait_for(INTERRUPTED)
        repl.wait_for_prompt()

    assert not (panpan.workspace / "made").exists()


@pytest.mark.parametrize("columns", [40, 80])
def test_question_of_a_patch_names_every_file_in_full(panpan: Panpan, start: Start, columns: int) -> None:
    names = [f"{'deep/' * 8}{name}" for name in ("a.txt", "b.txt", "c.txt", "run_me.py", "evil.sh")]
    patch = "".join(f"*** Add File: {name}\n+hello\n" for name in names)
    with serving([call("Patch", {"patch": f"*** Begin Patch\n{patch}*** End Patch\n"}), FINE]) as server:
        panpan.use(server)
        repl = start(columns=columns)
        repl.submit("go")
        said = f"5files:{','.join(names)}"  # rows end between words, and blanks there are not seen
        repl.wait_for(lambda screen: said in "".join("".join(screen.visible).split()))
        repl.answer("? Apply this patch", "n")
        repl.wait_for("Fine.")


def test_ctrl_c_withdraws_the_question(panpan: Panpan, start: Start) -> None:
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


def test_saved_rule_is_completed_and_removed(panpan: Panpan, start: Start) -> None:
    with serving([TOUCH, say("One.")]) as server:
        panpan.use(server)
        repl = start(columns=120)
        repl.submit("go")
        repl.answer("touch made", "a")
        repl.wait_for("enter, or a again, keeps it")
        repl.send(keys.ENTER)
        repl.wait_for("One.")
        repl.wait_for_prompt()
        repl.type("/permissions r")
        repl.wait_for(lambda screen: any("❯ remove Bash(touch made)" in row for row in screen.visible))
        repl.send(keys.ENTER)
        repl.wait_for("❯ /permissions remove Bash(touch made)")
        repl.send(keys.ENTER)
        repl.wait_for("Bash(touch made) is removed from")

    (saved,) = panpan.home.glob("projects/*/settings.toml")
    assert "Bash(touch made)" not in saved.read_text()
