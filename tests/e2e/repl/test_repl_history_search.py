"""Ctrl+R: what was sent before is searched for, and never sent by accident."""

from threading import Event

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl, texts_of
from tests.model_server import Hold, say, serving
from tests.terminal_emulator import keys


def search(repl: Repl, text: str, found: str) -> None:
    """Search for a text, and wait until what is found stands in the input."""
    repl.send(keys.ctrl("r") + text)
    repl.wait_for(lambda screen: screen.before_cursor.endswith(f": {text}") and f"❯ {found}" in screen.visible)


def test_enter_takes_the_match_and_a_second_enter_sends_it(panpan: Panpan, start: Start) -> None:
    gate = Event()
    held = say("Beginning and end.", chunk_chars=9, faults=(Hold(4, gate),))
    with serving([say("One."), say("Two."), held, say("Four.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("look for the red fox", "One.")
        repl.turn("look for the blue fox", "Two.")
        search(repl, "fox", "look for the blue fox")
        repl.send(keys.ctrl("r"))
        repl.wait_for(lambda screen: screen.visible.count("❯ look for the red fox") == 2)
        repl.send(keys.ENTER + keys.END)
        repl.type(" again")
        sent_before = len(server.requests)
        repl.send(keys.ENTER)
        repl.wait_for("Beginning")
        search(repl, "blue", "look for the blue fox")  # while a turn runs
        repl.send(keys.ESCAPE)
        repl.wait_for(lambda screen: not any("I-search" in row for row in screen.visible))
        repl.send(keys.END)
        repl.type("!")
        gate.set()
        repl.wait_for("Beginning and end.")
        repl.send(keys.ENTER)
        repl.wait_for("Four.")

    assert sent_before == 2
    assert INTERRUPTED not in repl.text
    assert texts_of(server.requests[2].messages[-1]) == "look for the red fox again"
    assert texts_of(server.requests[3].messages[-1]).endswith("fox!")
