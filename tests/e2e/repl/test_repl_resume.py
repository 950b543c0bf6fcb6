"""A session that goes on: the user sees where they were."""

import fcntl
import json

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.test_repl_keys import is_idle, leave_pager, shows_pager
from tests.model_server import call, say, serving
from tests.terminal_emulator import Screen, keys

GOES_ON = "the session continues unchanged"
SHOWN = ("❯ look around", "● LS", "Nothing here.")


def shows_the_past(screen: Screen) -> bool:
    """True if the conversation stands on the screen, in its order, and above the input."""
    places = [screen.text.find(words) for words in SHOWN]
    return -1 not in places and places == sorted(places)


@pytest.mark.parametrize("how", ["-r", "/resume"])
def test_resume_shows_the_last_turns(panpan: Panpan, start: Start, how: str) -> None:
    with serving([call("LS", {}), say("Nothing here."), say("Going on.")]) as server:
        panpan.use(server)
        panpan.run("-p", "look around")
        id_ = panpan.session_files()[0].stem
        repl = start(*{"-r": ["-r", id_], "/resume": []}[how])
        if how == "/resume":
            repl.submit(f"/resume {id_}")
        repl.wait_for(shows_the_past)
        repl.wait_for_prompt()
        repl.turn("and now?", "Going on.")

    assert repl.text.count("Nothing here.") == 1


def test_pager_shows_turns_before_the_last_ones(panpan: Panpan, start: Start) -> None:
    with serving([say(f"Answer {number}.") for number in range(5)]) as server:
        panpan.use(server)
        turns = [{"type": "user", "message": {"role": "user", "content": f"prompt {number}"}} for number in range(5)]
        told = "\n".join(map(json.dumps, turns))
        assert panpan.run("--input-format", "stream-json", "-f", "stream-json", stdin=told).code == 0
        repl = start("-r", panpan.session_files()[0].stem, rows=40)
        repl.wait_for("earlier messages: Ctrl+O shows them")
        assert "Answer 0." not in repl.text
        assert "Answer 2." in repl.text
        repl.send(keys.ctrl("o"))
        repl.wait_for(shows_pager("❯ prompt 4"))
        repl.send("g")  # to the beginning: it begins with the last turn
        repl.wait_for(shows_pager("❯ prompt 0"))
        repl.wait_for(shows_pager("Answer 0."))
        leave_pager(repl)


def test_resume_of_an_open_session_shows_nothing_twice(panpan: Panpan, start: Start) -> None:
    with serving([say("Elsewhere."), say("Here."), say("Still here.")]) as server:
        panpan.use(server)
        panpan.run("-p", "the other one")
        (other,) = panpan.session_files()
        repl = start()
        repl.turn("this one", "Here.")
        repl.wait_for(is_idle)
        with other.open() as log:
            fcntl.flock(log, fcntl.LOCK_EX)  # as another panpan does that has it open
            repl.submit(f"/resume {other.stem}")
            repl.wait_for(lambda screen: GOES_ON in " ".join(screen.text.split()))  # where a line ends depends on paths
            repl.wait_for_prompt()
            repl.turn("and now?", "Still here.")

    assert repl.text.count("❯ this one") == 1
    assert "cannot be added" not in repl.text
