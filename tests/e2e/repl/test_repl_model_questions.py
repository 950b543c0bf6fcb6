"""AskUserQuestion: what answers the model's questions, what declines them, and what never does."""

import time
from threading import Event
from typing import Any

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl, ends_input
from tests.model_server import Hold, ModelServer, Reply, Text, ToolCall, calls, say, serving
from tests.terminal_emulator import keys

FINE = say("Fine.")


def question(text: str, header: str, *labels: str, several: bool = False, detail: str = "") -> dict[str, Any]:
    """Return a question as the model puts it."""
    options = [{"label": label, "description": detail} for label in labels]
    return {"question": text, "header": header, "options": options, "multiSelect": several}


def ask(*questions: dict[str, Any]) -> ToolCall:
    return ToolCall("AskUserQuestion", {"questions": list(questions)})


DATABASE = question("Which database?", "Database", "SQLite", "Postgres")
CHECKS = question("Which checks?", "Checks", "ruff", "mypy", "pytest", several=True)


def ask_later(gate: Event) -> Reply:
    """Return a reply that says something, and asks when the gate opens."""
    return Reply((Text("Thinking."), ask(DATABASE)), chunk_chars=0, faults=(Hold(-3, gate),))


def told(server: ModelServer, number: int = 1) -> str:
    """Return what the model was told in its request of this number."""
    (result,) = [block for block in server.requests[number].messages[-1]["content"] if block["type"] == "tool_result"]
    content = result["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def look(repl: Repl, text: str) -> None:
    """Wait for a question and read it."""
    repl.wait_for(lambda screen: text in "\n".join(screen.visible))
    repl.turn_to_question(text)


ANSWERS = {
    keys.ENTER: "SQLite",
    "2": "Postgres",
    keys.DOWN + keys.ENTER: "Postgres",
    "3DuckDB 日本" + keys.ENTER: '"DuckDB 日本"',
}
"""Keys, and the answer that the model gets."""


def test_question_takes_a_choice_or_own_words(panpan: Panpan, start: Start) -> None:
    asked = [question(f"Which database, {number}?", "Database", "SQLite", "Postgres") for number in range(len(ANSWERS))]
    with serving([*(calls(ask(each)) for each in asked), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        for each, pressed in zip(asked, ANSWERS, strict=True):
            look(repl, f"{each['question']}\n\n❯ 1. SQLite")
            repl.send(pressed)
        repl.wait_for("Fine.")
        repl.wait_for_prompt()

    assert [told(server, number).partition("? ")[2] for number in range(1, 5)] == [*ANSWERS.values()]


def test_question_takes_several_choices_and_own_words(panpan: Panpan, start: Start) -> None:
    with serving([calls(ask(CHECKS)), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        look(repl, "Which checks?")
        repl.send(keys.ENTER)
        repl.wait_for("choose one with space")
        repl.send("1" + keys.DOWN + keys.DOWN + " ")
        repl.wait_for(
            lambda screen: [row[5:8] for row in screen.visible if ". [" in row] == ["[x]", "[ ]", "[x]", "[ ]"]
        )
        repl.send("4and a look")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("and a look"))
        repl.send(keys.ENTER)
        repl.wait_for("Fine.")

    assert told(server) == 'Which checks? ruff, pytest, "and a look"'


def test_shift_tab_returns_to_an_answered_question(panpan: Panpan, start: Start) -> None:
    third = question("Which licence?", "Licence", "MIT", "GPL")
    with serving([calls(ask(DATABASE, CHECKS, third)), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        look(repl, "Which database?")
        repl.send("1")
        repl.wait_for("Which checks?")
        repl.send("2" + keys.SHIFT_TAB)
        repl.wait_for(lambda screen: "Which database?" in "\n".join(screen.visible))
        repl.send("2")
        repl.wait_for(lambda screen: "Which checks?" in "\n".join(screen.visible))
        repl.send(keys.ENTER)
        repl.wait_for("Which licence?")
        repl.send(keys.ENTER)
        repl.wait_for("Fine.")

    assert told(server).split("\n") == ["Which database? Postgres", "Which checks? mypy", "Which licence? MIT"]


def test_escape_leaves_own_words_and_a_second_escape_declines(panpan: Panpan, start: Start) -> None:
    with serving([calls(ask(DATABASE)), FINE, calls(ask(DATABASE)), say("Hello.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        look(repl, "Which database?")
        repl.send("3none of")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("none of"))
        repl.send(keys.ESCAPE)
        repl.wait_for(lambda screen: "❯ 1. SQLite" in "\n".join(screen.visible))
        was_kept = "none of" in repl.visible
        repl.send(keys.ESCAPE)
        repl.wait_for("Fine.")
        repl.wait_for_prompt()
        repl.submit("again")
        look(repl, "Which database?")
        repl.send(keys.ctrl("c"))
        repl.wait_for("Hello.")

    assert was_kept
    assert INTERRUPTED not in repl.text
    assert "did not want to answer" in told(server)
    assert "did not want to answer" in told(server, 3)


def test_draft_is_kept_while_a_question_is_answered(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([ask_later(gate), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking.")
        repl.type("half of it")
        gate.set()
        look(repl, "Which database?")
        repl.send("2")
        repl.wait_for("Fine.")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ half of it")

    assert told(server) == "Which database? Postgres"


def test_keys_pressed_before_the_question_answer_nothing(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([ask_later(gate), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking.")
        repl.type("x")
        gate.set()
        # pressed again and again until the question is there: some of them just before it, some just after
        while "Which database?" not in repl.visible:
            repl.send("2 ")
            time.sleep(0.03)
        repl.send("2 2" + keys.ENTER)
        look(repl, "Which database?")
        asked_before = len(server.requests)
        repl.send("1")
        repl.wait_for("Fine.")

    assert asked_before == 1
    assert told(server) == "Which database? SQLite"


def test_paste_answers_no_question_but_fills_own_words(panpan: Panpan, start: Start) -> None:
    with serving([calls(ask(DATABASE)), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        look(repl, "Which database?")
        repl.paste("2\n1")
        repl.wait_for(ends_input("1"))  # it answers nothing, and nobody writes in the question: so it is in the input
        repl.turn_to_question("Which database?")
        repl.send("3")
        repl.paste("first\nsecond\n")
        repl.wait_for(lambda screen: screen.before_cursor.rstrip().endswith("first second"))
        repl.send(keys.ENTER)
        repl.wait_for("Fine.")

    assert told(server) == 'Which database? "first second"'


def test_questions_of_all_kinds_come_one_after_the_other(panpan: Panpan, start: Start) -> None:
    command = ToolCall("Bash", {"command": "touch made"})
    with serving([calls(ask(DATABASE), ask(CHECKS), command), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        look(repl, "Which database?")
        was_alone = not any(text in repl.visible for text in ("1. [ ] ruff", "1. Yes"))
        repl.send("2" + "2" + keys.ENTER + "y")  # one after the other, in one go: only the first was on the screen
        look(repl, "1. [ ] ruff")
        repl.send("1" + keys.ENTER + "y")
        look(repl, "1. Yes")
        existed_before = (panpan.workspace / "made").exists()
        repl.send("y")
        repl.wait_for("2 rounds")

    results = [str(block) for block in server.requests[1].messages[-1]["content"] if block["type"] == "tool_result"]
    assert was_alone
    assert not existed_before
    assert (panpan.workspace / "made").exists()
    assert "Which database? Postgres" in results[0]
    assert "Which checks? ruff" in results[1]
    assert "mypy" not in results[1]


def test_longest_question_can_be_answered_in_a_small_window(panpan: Panpan, start: Start) -> None:
    text = " ".join(f"word{number:02}" for number in range(60)) + "?"
    long = question(text, "Long header", *(f"choice {letter} " + "x " * 60 for letter in "abcd"), detail="y " * 100)
    with serving([calls(ask(long, long)), FINE]) as server:
        panpan.use(server)
        repl = start(columns=40, rows=12)
        repl.submit("go")
        look(repl, "esc declines")
        repl.send("4")
        repl.wait_for(lambda screen: "✓" in "\n".join(screen.visible))
        repl.send(keys.DOWN)
        repl.wait_for(lambda screen: "❯ 2. choice b" in "\n".join(screen.visible))
        repl.send(keys.ENTER)
        repl.wait_for("Fine.")

    first, second = told(server).split("\n")
    assert first.startswith(f"{text} choice d")
    assert second.startswith(f"{text} choice b")
