"""Streamed text is on the screen once, whole and in order, whatever else happens there."""

from collections.abc import Callable
from threading import Event

import pytest

from tests.e2e.conftest import COMMAND, Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import Repl, numbered, numbered_words
from tests.model_server import Hold, Reply, Text, Thinking, say, serving
from tests.needed_programs import need
from tests.terminal_emulator import Screen, Tmux
from tests.terminal_emulator.keys import ENTER

CHUNKS = 3000
AHEAD = "typed while the answer came, one key after the other"
FIRST_DELTA = 4
"""The number of its event, from 1; before it: message_start, content_block_start, ping."""


def in_lists(count: int) -> str:
    return "\n".join(f"{number + 1}. w{number:04}" for number in range(count))


def in_code(count: int) -> str:
    return "```python\n" + "\n".join(f"w{number:04} = {number}" for number in range(count)) + "\n```\n"


def has_drawn(text: str) -> Callable[[Screen], bool]:
    """True if all of a text is on the screen and the cursor is back in the input: drawing has ended."""
    last = text.split()[-1]
    return lambda screen: last in screen.text.split() and screen.before_cursor.startswith("❯")


def in_one_paragraph_and_many(count: int) -> str:
    """Return `count` words, half of them in one paragraph."""
    words, half = numbered(count).split(), count // 2
    paragraphs = [words[:half], *(words[at : at + 60] for at in range(half, count, 60))]
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_typing_during_a_stream_loses_neither_keys_nor_chunks(panpan: Panpan, start: Start, columns: int) -> None:
    gates = [Event() for _ in AHEAD]
    step = CHUNKS // (len(AHEAD) + 1)
    holds = [Hold(FIRST_DELTA + step * (number + 1), gate) for number, gate in enumerate(gates)]
    text = in_one_paragraph_and_many(CHUNKS)
    reply = say(text, chunk_chars=6, delta_delay_s=0.0005, faults=tuple(holds))
    with serving([reply, say("And the second answer.")]) as server:
        panpan.use(server)
        repl = start(columns=columns)
        repl.submit("go")
        repl.wait_for("w0000")
        typed = ""
        for gate, char in zip(gates, AHEAD, strict=True):
            repl.send(char)
            typed += char
            gate.set()
        repl.wait_for(lambda screen: f"w{CHUNKS - 1:04}" in screen.text)
        repl.wait_for(lambda screen: AHEAD.split()[-1] in screen.before_cursor)
        repl.send(ENTER)
        repl.wait_for("And the second answer.")
        repl.wait_for_prompt()

    assert numbered_words(repl.text) == [f"w{number:04}" for number in range(CHUNKS)]
    assert server.requests[1].messages[-1]["content"][-1]["text"].startswith(AHEAD)


@pytest.mark.parametrize("text", [in_lists(1200), in_code(1200)], ids=["list", "code"])
def test_block_higher_than_the_screen_is_printed_once(panpan: Panpan, start: Start, text: str) -> None:
    with serving([say(text, chunk_chars=7), say("And the second answer.")]) as server:
        panpan.use(server)
        repl = start(columns=80, rows=24)
        repl.submit("go")
        repl.wait_for("w1199")
        repl.turn("and now?", "And the second answer.")

    assert numbered_words(repl.text) == [f"w{number:04}" for number in range(1200)]


def test_printed_rows_never_change(panpan: Panpan, start: Start) -> None:
    gate = Event()
    reply = say(numbered(900, a_paragraph=30), chunk_chars=6, faults=(Hold(600, gate),))
    with serving([reply]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("w0500")
        before = repl.scrollback
        gate.set()
        repl.wait_for("w0899")
        repl.wait_for_prompt()

    assert repl.scrollback[: len(before)] == before


def test_written_bytes_grow_linearly_with_the_answer(panpan: Panpan, start: Start) -> None:
    # A frame draws no more than the screen, and there are at most ten a second; what is printed is printed once.
    def written(repl: Repl, prompt: str, last: str) -> int:
        before = len(repl.raw)
        repl.turn(prompt, last)
        return len(repl.raw) - before

    short, long = say(numbered(500), chunk_chars=0), say(numbered(5000), chunk_chars=0)
    with serving([short, long]) as server:
        panpan.use(server)
        repl = start()
        little = written(repl, "a little", "w0499")
        much = written(repl, "much", "w4999")

    assert much < 12 * little + 20_000


def test_resize_in_tmux_in_mid_stream_loses_nothing(panpan: Panpan) -> None:
    need("tmux")
    a_paragraph = 45
    gates = [Event(), Event()]
    holds = tuple(Hold(FIRST_DELTA + 300 * (number + 1), gate) for number, gate in enumerate(gates))
    reply = say(numbered(900, a_paragraph=a_paragraph), chunk_chars=6, delta_delay_s=0.0005, faults=holds)
    with serving([reply, say("And the second answer.")]) as server:
        panpan.use(server)
        with Tmux([str(COMMAND)], env=panpan.environment(), cwd=panpan.workspace, columns=80, rows=30) as tmux:
            tmux.wait_for("❯")
            tmux.type("go")
            tmux.send("Enter")
            tmux.wait_for("w0290")
            tmux.resize(40, 20)
            gates[0].set()
            tmux.wait_for("w0590")
            tmux.resize(200, 40)
            gates[1].set()
            tmux.wait_for("w0899")
            tmux.type("and now?")
            tmux.wait_for("❯ and now?")
            tmux.send("Enter")
            tmux.wait_for("And the second answer.")
            words = numbered_words(tmux.text)

    # A narrower window moves what was drawn up by rows that nobody can count who is not told how it wraps: of the
    # paragraph that was unfinished, rows may stand there twice. Nothing is lost, and nothing else there twice.
    last_of_each = list(reversed(dict.fromkeys(reversed(words))))
    assert last_of_each == [f"w{number:04}" for number in range(900)]
    assert len(words) - 900 <= a_paragraph


def test_code_is_copied_from_the_scrollback_as_it_was_written(panpan: Panpan) -> None:
    need("tmux")
    numbers = " + ".join(f"w{number:04}" for number in range(60))
    code = f"def total({numbers.replace(' + ', ', ')}):\n    if w0000:\n        return {numbers}\n\n\nprint(total)"
    reply = say(f"Here it is:\n\n```python\n{code}\n```\n\nThat is all.", chunk_chars=5)
    with serving([reply, say("And the second answer.")]) as server:
        panpan.use(server)
        with Tmux([str(COMMAND)], env=panpan.environment(), cwd=panpan.workspace, columns=60, rows=24) as tmux:
            tmux.wait_for("❯")
            tmux.type("go")
            tmux.send("Enter")
            tmux.wait_for("That is all.")
            for columns in (60, 40, 100):
                tmux.resize(columns, 24)
                assert f"── python {'─' * 30}\n{code}\n{'─' * 40}\n" in tmux.copied
            tmux.type("and now?")
            tmux.send("Enter")
            tmux.wait_for("And the second answer.")

            assert f"\n{code}\n" in tmux.copied


def test_window_that_never_narrows_shows_each_chunk_once(panpan: Panpan, start: Start) -> None:
    sizes = [(40, 40), (80, 30), (80, 12), (200, 24)]
    gates = [Event() for _ in sizes]
    holds = tuple(Hold(FIRST_DELTA + 200 * (number + 1), gate) for number, gate in enumerate(gates))
    text = numbered(1000, a_paragraph=150)
    reply = say(text, chunk_chars=6, delta_delay_s=0.0005, faults=holds)
    with serving([reply, say("And the second answer.")]) as server:
        panpan.use(server)
        repl = start(columns=40, rows=24)
        repl.submit("go")
        for number, (size, gate) in enumerate(zip(sizes, gates, strict=True)):
            repl.wait_for(has_drawn(text[: 6 * (200 * (number + 1) + 1)]))
            repl.resize(*size)
            gate.set()
        repl.wait_for("w0999")
        repl.turn("and now?", "And the second answer.")

    assert numbered_words(repl.text) == [f"w{number:04}" for number in range(1000)]


@pytest.mark.parametrize("size", [(20, 5), (10, 3), (1, 1)], ids=["small", "tiny", "a-cell"])
def test_tiny_window_does_no_harm(panpan: Panpan, start: Start, size: tuple[int, int]) -> None:
    gate = Event()
    with serving([say(numbered(300), chunk_chars=6, faults=(Hold(100, gate),)), say("Fine again.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("w0060")
        repl.resize(*size)
        gate.set()
        repl.send("x")
        repl.resize(80, 24)
        repl.wait_for(lambda screen: "w0299" in "".join(screen.text.split()))  # it may be in rows of the tiny window
        repl.wait_for(lambda screen: screen.before_cursor == "❯ x")
        repl.send(ENTER)
        repl.wait_for("Fine again.")


def test_thinking_is_shown_and_the_answer_after_it(panpan: Panpan, start: Start) -> None:
    reply = Reply((Thinking("Let me think about whales."), Text("It is a mammal.")))
    with serving([reply]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("what is a whale?", "It is a mammal.")
