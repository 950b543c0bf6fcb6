"""/undo restores the changes of a turn, in the terminal."""

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.model_server import ToolCall, call, calls, say, serving
from tests.terminal_emulator import keys


def test_undo_shows_its_changes_and_asks(panpan: Panpan, start: Start) -> None:
    made = panpan.workspace / "made.txt"
    (panpan.workspace / "kept.txt").write_text("old\n")
    with serving([call("Bash", {"command": "echo new > kept.txt; echo x > made.txt"}), say("Done.")]) as server:
        panpan.use(server)
        repl = start("--yes")
        repl.turn("do it", "Done.")
        repl.wait_for("2 files +2 -1")
        repl.submit("/undo")
        repl.wait_for("Undo these changes?")
        assert made.exists()
        repl.answer("Undo these changes?", "1")
        repl.wait_for("undone: 2 files +1 -2")
        repl.wait_for_prompt()

    assert not made.exists()
    assert (panpan.workspace / "kept.txt").read_text() == "old\n"


def test_undo_keeps_what_the_user_changed_during_a_question(panpan: Panpan, start: Start) -> None:
    theirs = panpan.workspace / "theirs.txt"
    theirs.write_text("old\n")
    both = calls(*(ToolCall("Bash", {"command": f"echo x > {name}.txt"}) for name in ("one", "two")))
    with serving([both, say("Done.")]) as server:
        panpan.use(server)
        repl = start(columns=120)
        repl.submit("go")
        repl.answer("one.txt", "y")
        repl.wait_for("two.txt")
        wait_until(lambda: [True for one in panpan.records() if one.get("subtype") == "snapshot" and "after" in one])
        theirs.write_text("user\n")
        repl.answer("two.txt", "y")
        repl.wait_for("2 files +2 -0")
        repl.submit("/undo")
        repl.answer("Undo these changes?", keys.ENTER)
        repl.wait_for("undone: 2 files +0 -2")
        repl.wait_for_prompt()

    assert {path.name: path.read_text() for path in panpan.workspace.iterdir()} == {"theirs.txt": "user\n"}
