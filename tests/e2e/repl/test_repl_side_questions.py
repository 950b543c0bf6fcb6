"""/btw while a turn runs: it is answered beside it, and Esc ends the question before the turn."""

from threading import Event

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, was_given_back, works
from tests.model_server import Hold, Stall, say, serving
from tests.terminal_emulator import keys


def test_side_question_is_answered_beside_the_turn(panpan: Panpan, start: Start) -> None:
    go_on = Event()
    turn = say("It took long, and is all done.", faults=(Hold(0, go_on),))
    with serving([turn, say("It is seven."), say("never", faults=(Stall(0),))]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        wait_until(lambda: len(server.requests) == 1)
        repl.submit("/btw which seed?")
        repl.wait_for("btw: It is seven.")
        repl.submit("/btw and now?")
        wait_until(lambda: len(server.requests) == 3)
        repl.send(keys.ESCAPE)
        repl.wait_for(was_given_back("/btw and now?"))
        assert repl.read(lambda screen: works(screen) and INTERRUPTED not in screen.text)
        go_on.set()
        repl.wait_for("is all done.")
        repl.wait_for(lambda screen: not works(screen))
        repl.send(keys.ESCAPE * 2)
        repl.wait_for_prompt()

    assert "which seed?" in str(server.requests[1].body["messages"][-1])
