"""The todo list on a terminal: seen as soon as it is written, hidden with a key, there again in a resumed session."""

from typing import Any

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import takes_keys, works
from tests.model_server import Reply, Stall, Text, ToolCall, calls, say, serving
from tests.terminal_emulator import Screen, keys


def todos(*statuses: str) -> ToolCall:
    items: list[dict[str, Any]] = [
        {"content": f"Step {number}", "status": status, "activeForm": f"Doing step {number}"}
        for number, status in enumerate(statuses, 1)
    ]
    return ToolCall("TodoWrite", {"todos": items})


def checklist(screen: Screen) -> list[str]:
    """Return the rows of the checklist above the input."""
    rows = [row.rstrip() for row in screen.visible]
    heading = [place for place, row in enumerate(rows) if "ctrl+t hides" in row]
    below = [row.strip() for row in rows[heading[0] :]] if heading else []
    return [row for row in below if row.startswith(("☐", "◐", "☑"))]


def test_todos_are_shown_during_work_and_after_a_resume(panpan: Panpan, start: Start) -> None:
    held = Reply((Text("On with it"),), faults=(Stall(-1),))
    with serving([calls(todos("completed", "in_progress", "pending")), held, say("Cleared.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for(lambda screen: checklist(screen) == ["☑ Step 1", "◐ Doing step 2", "☐ Step 3"])
        repl.wait_for(lambda screen: any("Doing step 2" in row and "esc interrupts" in row for row in screen.visible))
        repl.send(keys.ctrl("t"))
        repl.wait_for(lambda screen: not checklist(screen))
        repl.send(keys.ctrl("t"))
        repl.wait_for(checklist)
        repl.send(keys.ESCAPE)
        repl.wait_for(lambda screen: takes_keys(screen) and not works(screen))
        repl.leave()

        again = start("-c")
        again.wait_for(lambda screen: checklist(screen) == ["☑ Step 1", "◐ Doing step 2", "☐ Step 3"])
        again.submit("/todos clear")
        again.wait_for(lambda screen: not checklist(screen))
        again.turn("and now?", "Cleared.")

    assert "was cleared, by the user" in str(server.requests[-1].messages[-1])
