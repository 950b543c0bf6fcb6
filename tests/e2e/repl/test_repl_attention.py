"""Calling the user: a bell or a notification where they are needed, and the title of the window."""

import sys
import time
from threading import Event

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import Repl
from tests.model_server import Hold, ToolCall, call, calls, say, serving

CALLS_SOON = (
    "from panpan.faces.terminal.screen import notify; notify.LONG_TURN_S = 1.0; "
    "from panpan.cli.start import main; main()"
)
"""panpan, but that a turn is long after a second."""
QUESTION = {"question": "Which?", "header": "Choice", "options": [{"label": "a"}, {"label": "b"}]}


def asked(repl: Repl) -> tuple[int, list[str]]:
    """Run a turn in which the gate asks, and return the bells and notifications until then."""
    repl.submit("go")
    repl.wait_for("touch made")
    called = repl.read(lambda screen: (screen.bells, list(screen.notices)))
    repl.answer("touch made", "n")
    repl.wait_for("Fine.")
    repl.wait_for_prompt()
    assert repl.read(lambda screen: (screen.bells, list(screen.notices))) == called, "a short turn calls nobody"
    return called


def test_question_notifies_the_user_as_configured(panpan: Panpan, start: Start) -> None:
    panpan.home.mkdir(parents=True)
    (panpan.home / "settings.toml").write_text('[ui]\nnotify = "osc9"\n')
    with serving([call("Bash", {"command": "touch made"}), say("Fine.")]) as server:
        panpan.use(server)

        assert asked(start()) == (0, ["panpan: a question waits"])


def test_end_of_a_long_turn_rings_the_bell_and_resets_the_title(panpan: Panpan, start: Start) -> None:
    gate = Event()
    script = [
        calls(ToolCall("AskUserQuestion", {"questions": [QUESTION]})),
        say("Fine.", chunk_chars=1, faults=(Hold(2, gate),)),
    ]
    with serving(script) as server:
        panpan.use(server)
        repl = start(program=[sys.executable, "-c", CALLS_SOON])
        repl.submit("go")
        repl.wait_for("Which?")
        of_the_question = repl.read(lambda screen: screen.bells)
        repl.answer("Which?", "1")
        repl.wait_for("Choice: a")
        time.sleep(1.1)  # longer than a turn that calls nobody; what the user takes to answer does not count
        gate.set()
        repl.wait_for("Fine.")
        repl.wait_for(lambda screen: screen.bells == 2)
        repl.wait_for_prompt()
        titles = repl.read(lambda screen: list(screen.titles))

    assert of_the_question == 1
    assert titles == ["panpan: workspace", "✳ panpan: workspace", "panpan: workspace"]
