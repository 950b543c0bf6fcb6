"""What a turn changed comes back with /undo, in the terminal."""

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.model_server import call, say, serving
from tests.terminal_emulator import keys


def test_undo_shows_what_it_does_and_asks(panpan: Panpan, start: Start) -> None:
    made = panpan.workspace / "made.txt"
    (panpan.workspace / "kept.txt").write_text("old\n")
    with serving([call("Bash", {"command": "echo new > kept.txt; echo x > made.txt"}), say("Done.")]) as server:
        panpan.use(server)
        repl = start("--yes")
        repl.turn("do it", "Done.")
        repl.wait_for("2 files +2 -1")
        repl.submit("/undo")
        repl.wait_for("Change these files?")
        assert made.exists()
        repl.answer("Change these files?", keys.ENTER)
        repl.wait_for("undone: 2 files +1 -2")
        repl.wait_for_prompt()

    assert not made.exists()
    assert (panpan.workspace / "kept.txt").read_text() == "old\n"
