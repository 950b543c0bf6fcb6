"""A line that begins with # in the REPL: it is kept in a file, and the model hears of it."""

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.test_skills import text_of
from tests.model_server import say, serving


def test_note_is_kept_and_told_once(panpan: Panpan, start: Start) -> None:
    with serving([say("Done."), say("Again.")]) as server:
        panpan.use(server)
        repl = start()
        for note, prompt, answer in (("Use uv.", "go", "Done."), ("Run the tests.", "go on", "Again.")):
            repl.submit(f"# {note}")
            repl.answer("Where should the note go?", "1")
            repl.wait_for("the model hears of it")
            repl.wait_for_prompt()
            repl.turn(prompt, answer)
        repl.leave()

    assert (panpan.workspace / "AGENTS.md").read_text() == "- Use uv.\n- Run the tests.\n"
    first, second = map(text_of, server.requests)
    assert first.count("Use uv.") == 1
    assert "to hold from now on" not in first
    assert "to hold from now on: Run the tests." in second
