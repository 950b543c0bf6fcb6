"""The keys of vi: modes, motions, and what ESC does when it has two meanings."""

from threading import Event

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl, takes_keys, texts_of
from tests.model_server import Hold, Reply, Stall, Text, say, serving
from tests.terminal_emulator import keys

SEEN = say("Seen.")
STALLED = Reply((Text("Thinking about it"),), faults=(Stall(-1),))


def normal_mode(repl: Repl, text: str) -> None:
    """Leave the insert mode behind `text`: the caret goes one to the left."""
    repl.type(text)
    repl.send(keys.ESCAPE)
    repl.wait_for(lambda screen: screen.before_cursor == f"❯ {text[:-1]}")


@pytest.fixture
def vi(panpan: Panpan, start: Start) -> Start:
    """Start the REPL with the keys of vi by setting."""
    panpan.home.mkdir(parents=True)
    (panpan.home / "settings.toml").write_text("[ui]\nvim = true\n")
    return start


LINE = "alpha beta gamma"
EDITS = {
    "0ione ": "one alpha beta gamma",
    "bbdwi": "alpha gamma",
    "bcwdelta": "alpha beta delta",
    "0fbxA!": "alpha eta gamma!",
    "0xxui": LINE[1:],
    "0~i": "Alpha beta gamma",
    "ddisecond": "second",
}
"""Keys of the normal mode behind `LINE`, and their results; each ends in the insert mode."""


def test_normal_mode_has_motions_and_commands(panpan: Panpan, vi: Start) -> None:
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = vi()
        for pressed, wanted in EDITS.items():
            normal_mode(repl, LINE)
            repl.send(pressed)
            repl.wait_for(lambda screen: screen.row_of_cursor == f"❯ {wanted}")  # noqa: B023
            repl.send(keys.ctrl("c"))
            repl.wait_for(takes_keys)
        repl.turn("second thoughts", "Seen.")

    assert texts_of(server.requests[0].messages[0]) == "second thoughts"


def test_prompt_sent_in_normal_mode_leaves_insert_mode(panpan: Panpan, vi: Start) -> None:
    with serving([SEEN, say("Again.")]) as server:
        panpan.use(server)
        repl = vi()
        normal_mode(repl, "first")
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")
        repl.wait_for_prompt()
        repl.turn("hello x", "Again.")

    assert texts_of(server.requests[1].messages[-1]) == "hello x"


def test_escape_leaves_insert_mode_and_a_second_interrupts(panpan: Panpan, vi: Start) -> None:
    gate = Event()
    held = say("Beginning and end.", chunk_chars=9, faults=(Hold(4, gate),))
    with serving([held, STALLED, SEEN]) as server:
        panpan.use(server)
        repl = vi()
        repl.submit("go")
        repl.wait_for("Beginning")
        normal_mode(repl, "half of it")
        gate.set()
        repl.wait_for("Beginning and end.")
        was_interrupted_by_one = INTERRUPTED in repl.text
        repl.send("Ax")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ half of itx")
        repl.send(keys.ENTER)
        repl.wait_for("Thinking about it")
        normal_mode(repl, "more of it")
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        repl.wait_for(lambda screen: screen.row_of_cursor == "❯ more of it")

    assert not was_interrupted_by_one


def test_escape_in_an_empty_input_interrupts_at_once(panpan: Panpan, vi: Start) -> None:
    with serving([STALLED, SEEN]) as server:
        panpan.use(server)
        repl = vi()
        repl.submit("go")
        repl.wait_for("Thinking about it")
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        repl.wait_for_prompt()
        repl.turn("hello", "Seen.")

    assert texts_of(server.requests[1].messages[-1]) == "hello"


def test_vim_command_switches_vi_keys_on_and_off(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("/vim")
        repl.wait_for("vi keys are on")
        repl.wait_for(takes_keys)
        normal_mode(repl, "alpha beta")
        repl.send("0dwA")
        repl.type("?")
        repl.send(keys.ctrl("c"))
        repl.wait_for(takes_keys)
        repl.submit("/vim")
        repl.wait_for("vi keys are off")
        repl.wait_for(takes_keys)
        repl.type("alpha")
        repl.send(keys.ESCAPE)
        repl.wait_for("Esc again clears")
        repl.type("h")
