"""Plan mode on a terminal: enter, look around, write the plan, and only the user's yes goes on."""

import sys
from pathlib import Path
from threading import Event
from typing import Any

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl
from tests.model_server import Hold, ModelServer, Reply, Text, ToolCall, calls, say, serving
from tests.terminal_emulator import keys

PLAN = "# Plan\n\n1. Let `parse` take a list of paths.\n2. Run the tests."
ENTER = ToolCall("EnterPlanMode", {})
LOOK = ToolCall("Read", {"file_path": "a.py"})
CHANGE = ToolCall("Write", {"file_path": "a.py", "content": "changed\n"})
LEAVE = ToolCall("ExitPlanMode", {"plan": PLAN})
FINE = say("Fine.")
QUESTION = "Approve this plan?"

EDITOR = """\
#!{python}
import sys
from pathlib import Path

file = Path(sys.argv[1])
file.write_text(file.read_text().replace("a list of paths", "any iterable of paths"))
"""


def told(server: ModelServer, number: int) -> str:
    """Return the result that the model was told in its request of this number."""
    blocks: list[Any] = [each for each in server.requests[number].messages[-1]["content"] if "tool_use_id" in each]
    return str(blocks[-1]["content"])


def look(repl: Repl, text: str = QUESTION) -> None:
    """Wait for a question and read it."""
    repl.wait_for(lambda screen: text in "\n".join(screen.visible))
    repl.turn_to_question(text)


def wait_for_plan_mode(repl: Repl) -> None:
    """Wait until a prompt can be typed in plan mode."""
    repl.wait_for(lambda screen: screen.before_cursor == "⏸ ")


def plans(panpan: Panpan) -> list[str]:
    return sorted(path.read_text() for path in (panpan.home / "plans").iterdir())


def source(panpan: Panpan) -> Path:
    path = panpan.workspace / "a.py"
    if not path.exists():
        path.write_text("first\n")
    return path


def test_approved_plan_goes_on_in_the_chosen_mode(panpan: Panpan, start: Start) -> None:
    path = source(panpan)
    with serving([calls(ENTER), calls(LOOK), calls(CHANGE), calls(LEAVE), calls(LOOK, CHANGE), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        look(repl)
        before, shown, mark = path.read_text(), repl.visible, "plan mode" in repl.visible
        repl.send("a")
        repl.wait_for("Fine.")
        repl.wait_for_prompt()

    assert (before, path.read_text()) == ("first\n", "changed\n")
    assert "1. Let parse take a list of paths." in shown
    assert mark
    assert "plan mode is on" in told(server, 3)
    assert "the mode is acceptEdits" in told(server, 4)
    assert "approved; mode acceptEdits" in repl.text
    assert plans(panpan) == [f"{PLAN}\n"]


def test_plan_edited_by_the_user_is_shown_again_and_used(panpan: Panpan, start: Start) -> None:
    editor = panpan.home.parent / "editor"
    editor.write_text(EDITOR.format(python=sys.executable))
    editor.chmod(0o700)
    panpan.env["EDITOR"] = str(editor)
    with serving([calls(LEAVE), FINE]) as server:
        panpan.use(server)
        repl = start("--permission-mode", "plan", waits=False)
        wait_for_plan_mode(repl)
        repl.submit("go")
        look(repl, "a list of paths")
        repl.send("e")
        look(repl, "any iterable of paths")
        repl.send("y")
        repl.wait_for("Fine.")
        repl.wait_for_prompt()

    assert "any iterable of paths" in told(server, 1)
    assert "the mode is default" in told(server, 1)
    assert plans(panpan) == [PLAN.replace("a list of paths", "any iterable of paths") + "\n"]


def test_rejection_with_comments_keeps_plan_mode(panpan: Panpan, start: Start) -> None:
    path = source(panpan)
    with serving([calls(LEAVE), calls(CHANGE), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("/plan")
        repl.wait_for("permission mode: plan")
        repl.submit("go")
        look(repl)
        repl.send("t")
        repl.wait_for("What should change?")
        repl.send("keep the old API" + keys.ENTER)
        repl.wait_for("Fine.")
        wait_for_plan_mode(repl)
        kept = repl.text

    assert "not approved: keep the old API" in kept
    assert "1. Let parse take a list of paths." in kept, "which does not vanish with the question"
    assert "They say: keep the old API" in told(server, 1)
    assert "not run" in told(server, 2)
    assert path.read_text() == "first\n"


def test_escape_keeps_planning_and_ends_the_turn(panpan: Panpan, start: Start) -> None:
    with serving([calls(LEAVE), FINE]) as server:
        panpan.use(server)
        repl = start("--permission-mode", "plan", waits=False)
        wait_for_plan_mode(repl)
        repl.submit("go")
        look(repl)
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        wait_for_plan_mode(repl)
        requests, kept = len(server.requests), repl.text
        repl.submit("smaller")
        repl.wait_for("Fine.")
        wait_for_plan_mode(repl)

    assert requests == 1
    assert plans(panpan) == [f"{PLAN}\n"]
    assert "The plan was not approved:" in kept
    assert "1. Let parse take a list of paths." in kept, "which does not vanish with the question"


def test_shift_tab_during_a_reply_counts_for_its_calls(panpan: Panpan, start: Start) -> None:
    path, gate = source(panpan), Event()
    change = Reply((Text("Thinking."), CHANGE), chunk_chars=0, faults=(Hold(-3, gate),))
    with serving([calls(LOOK), change, FINE]) as server:
        panpan.use(server)
        repl = start("--permission-mode", "acceptEdits", "--sandbox", "off")  # so that plan comes next
        repl.submit("go")
        repl.wait_for("Thinking.")
        repl.send(keys.SHIFT_TAB)
        wait_for_plan_mode(repl)
        gate.set()
        repl.wait_for("Fine.")
        wait_for_plan_mode(repl)

    assert path.read_text() == "first\n"
    assert "plan mode is on" in told(server, 2)
    assert "Plan mode is on" in str(server.requests[2].messages[-1])


def test_resumed_session_is_in_plan_mode(panpan: Panpan, start: Start) -> None:
    with serving([calls(ENTER), FINE, calls(LEAVE), FINE]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Fine.")
        wait_for_plan_mode(repl)
        repl.send(keys.ctrl("d"))
        repl.wait()
        again = start("-c", waits=False)
        wait_for_plan_mode(again)
        again.submit("go on")
        look(again)
        again.send("y")
        again.wait_for("approved; mode default")
        again.wait_for_prompt()
        wait_until(lambda: len(server.requests) == 4)

    assert plans(panpan) == [f"{PLAN}\n"]
    assert "the mode is default" in told(server, 3)
