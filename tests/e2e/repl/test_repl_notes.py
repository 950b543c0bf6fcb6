"""A line that begins with # in the REPL: it is kept in a file, and the model hears of it."""

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.test_skills import text_of
from tests.model_server import say, serving


def test_note_is_kept_and_told_with_the_next_message(panpan: Panpan, start: Start) -> None:
    with serving([say("Done.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("# Use uv, not pip.")
        repl.answer("Where should the note go?", "1")
        repl.wait_for("the model hears of it")
        repl.wait_for_prompt()
        repl.submit("go")
        repl.wait_for("Done.")
        repl.leave()

    assert (panpan.workspace / "AGENTS.md").read_text() == "- Use uv, not pip.\n"
    assert "to hold from now on: Use uv, not pip." in text_of(server.requests[0])
