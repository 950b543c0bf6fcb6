"""A second terminal joins a session that is open in another one: same turns, same questions, and each may leave."""

import signal

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl, ends_input, texts_of
from tests.e2e.test_user_hooks import write_hooks
from tests.model_server import Reply, Stall, Step, Text, call, say, serving
from tests.terminal_emulator import keys


def touch(name: str) -> Step:
    """Return a reply that asks for a command which changes a file."""
    return call("Bash", {"command": f"touch {name}", "description": "Make a file"})


def session_id(panpan: Panpan) -> str:
    (path,) = panpan.session_files()
    return path.stem


def test_resumed_session_that_is_open_elsewhere_is_joined(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), say("Two."), say("Three.")]) as server:
        panpan.use(server)
        first = start()
        first.turn("one", "One.")
        second = start("-r", session_id(panpan), waits=False)
        second.wait_for("joined the session")
        second.wait_for("One.")
        first.wait_for("terminal 1 joined this session")
        second.submit("two")
        second.wait_for("Two.")
        first.wait_for("Two.")
        first.turn("three", "Three.")
        second.wait_for("Three.")
        second.send(keys.ctrl("d"))
        assert second.wait() == 0
        first.wait_for("terminal 1 left this session")
        assert first.is_running

    assert [texts_of(message) for message in server.requests[-1].messages if message["role"] == "user"] == [
        "one",
        "two",
        "three",
    ]


def test_session_chosen_from_the_list_is_joined(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), say("Two.")]) as server:
        panpan.use(server)
        first = start()
        first.turn("one", "One.")
        second = start("-r", waits=False)
        second.answer("Resume which session?", keys.ENTER)
        second.wait_for("joined the session")
        second.wait_for_prompt()
        second.submit("two")
        first.wait_for("Two.")
        second.send(keys.ctrl("d"))
        assert second.wait() == 0

    assert [texts_of(message) for message in server.requests[-1].messages if message["role"] == "user"] == [
        "one",
        "two",
    ]


def test_question_is_answered_in_either_terminal(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), touch("a"), say("Made it.")]) as server:
        panpan.use(server)
        first = start("--sandbox", "off")
        first.turn("one", "One.")
        second = start("attach", waits=False)
        second.wait_for("joined the session")
        first.submit("make a")
        first.wait_for("Run this command")
        second.answer("Run this command", "y")
        first.wait_for("answered elsewhere")
        first.wait_for("Made it.")
        second.wait_for("Made it.")

    assert (panpan.workspace / "a").exists()


def test_second_terminal_shows_cost_context_and_warnings(panpan: Panpan, start: Start) -> None:
    write_hooks(panpan, UserPromptSubmit=[{"command": """echo '{"systemMessage": "mind the gap"}'"""}])
    with serving([say("One."), say("Two.")]) as server:
        panpan.use(server)
        first = start()
        first.turn("one", "One.")
        second = start("attach", waits=False)
        second.wait_for("% context · $")
        second.wait_for(f"· joined {session_id(panpan)[:8]}")
        first.turn("two", "Two.")
        first.wait_for("mind the gap")
        second.wait_for("mind the gap")


def test_escape_in_the_second_terminal_stops_the_turn(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), touch("a"), say("Never.")]) as server:
        panpan.use(server)
        first = start("--sandbox", "off")
        first.turn("one", "One.")
        second = start("attach", waits=False)
        second.wait_for("joined the session")
        first.submit("make a")
        second.wait_for("Run this command")
        second.turn_to_question("Run this command")
        second.send(keys.ESCAPE)
        first.wait_for(INTERRUPTED)
        second.wait_for(INTERRUPTED)

    assert not (panpan.workspace / "a").exists()
    assert len(server.requests) == 2


def test_second_terminal_ends_with_the_session(panpan: Panpan, start: Start) -> None:
    with serving([say("One.")]) as server:
        panpan.use(server)
        first = Repl(panpan)  # which nobody expects to leave the terminal as it was
        first.wait_for_prompt()
        first.turn("one", "One.")
        name = session_id(panpan)
        second = start("attach", name[:8], waits=False)
        second.wait_for("joined the session")
        first.signal(signal.SIGKILL)
        first.wait()
        second.wait_for("the session was closed in the other panpan")
        second.wait_for(f"resume with: panpan -r {name}")
        assert second.wait() == 0
        third = start("-r", name)
        third.wait_for("One.")
        first.end()


def test_attach_says_what_is_wrong(panpan: Panpan) -> None:
    nothing = panpan.run("attach")
    unknown = panpan.run("attach", "nowhere")

    assert (nothing.code, unknown.code) == (2, 2)
    assert "no session is open in another panpan; begin one with panpan" in nothing.stderr
    assert "nowhere" in unknown.stderr


def test_attach_names_several_with_words_and_folder(panpan: Panpan, start: Start) -> None:
    elsewhere = panpan.workspace.parent / "elsewhere"
    elsewhere.mkdir()
    with serving([say("One."), say("Two.")]) as server:
        panpan.use(server)
        start().turn("the first task", "One.")
        start("--cwd", str(elsewhere)).turn("the second task", "Two.")
        start().wait_for("shift+tab mode")
        several = panpan.run("attach")

    assert several.code == 2
    (first, second, third) = several.stderr.splitlines()[1:]
    assert third.endswith("nothing was said yet")
    assert "“the first task”" in first
    assert first.endswith(f"in {panpan.workspace}")
    assert "“the second task”" in second
    assert second.endswith(f"in {elsewhere}")


def test_joining_in_a_turn_shows_the_open_question_alone(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), touch("a"), touch("b"), say("Made them.")]) as server:
        panpan.use(server)
        first = start("--sandbox", "off")
        first.turn("one", "One.")
        first.submit("make a and b")
        first.answer("touch a", "y")
        first.wait_for("touch b")
        second = start("attach", waits=False)
        second.answer("touch b", "y")
        second.wait_for("Made them.")
        first.wait_for("answered elsewhere")
        assert "answered elsewhere" not in second.text

    assert (panpan.workspace / "b").exists()


def test_mode_has_one_name_in_both_terminals(panpan: Panpan, start: Start) -> None:
    with serving([say("One.")]) as server:
        panpan.use(server)
        first = start()
        first.turn("one", "One.")
        second = start("attach", waits=False)
        second.wait_for("joined the session")
        second.wait_for_prompt()
        second.send(keys.SHIFT_TAB)
        second.wait_for("accept edits ·")
        first.wait_for("accept edits ·")


def test_shell_command_in_the_second_terminal_is_no_prompt(panpan: Panpan, start: Start) -> None:
    with serving([say("One.")]) as server:
        panpan.use(server)
        first = start()
        first.turn("one", "One.")
        second = start("attach", waits=False)
        second.wait_for("joined the session")
        second.wait_for_prompt()
        second.submit("!touch a")
        second.wait_for("only the panpan that has the session takes shell commands and notes")
        second.wait_for(ends_input("!touch a"))

    assert len(server.requests) == 1
    assert not (panpan.workspace / "a").exists()


def test_command_of_the_second_terminal_is_shown_in_both(panpan: Panpan, start: Start) -> None:
    with serving([say("One.")]) as server:
        panpan.use(server)
        first = start()
        first.turn("one", "One.")
        second = start("attach", waits=False)
        second.wait_for("joined the session")
        second.wait_for_prompt()
        second.submit("/rename the night shift")
        second.wait_for("this session is called")
        first.wait_for("this session is called")


def test_prompt_that_no_turn_had_is_kept_when_the_session_closes(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), Reply((Text("long"),), faults=(Stall(at=-1),))]) as server:
        panpan.use(server)
        first = start()
        first.turn("one", "One.")
        second = start("attach", waits=False)
        second.wait_for("joined the session")
        second.wait_for_prompt()
        first.submit("two")
        second.wait_for("long")
        second.submit("do not lose me")
        first.wait_for("do not lose me")
        first.submit("/exit")
        second.wait_for("the session was closed in the other panpan")
        second.wait_for("panpan keeps what you typed")
        assert second.wait() == 0

    third = start("-r", session_id(panpan))
    third.send(keys.UP * 2)  # over /exit
    third.wait_for("do not lose me", timeout_s=5)
