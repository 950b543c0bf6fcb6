"""Keys that are pressed while the session is still being opened."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INSTALLED, Repl, texts_of, was_given_back
from tests.model_server import say, serving
from tests.terminal_emulator import Terminal, keys

OPENING = "opening the session"


@pytest.fixture
def opening(panpan: Panpan, start: Start) -> Iterator[Repl]:
    """A REPL that takes keys and has no session yet."""
    with serving([]) as server:
        panpan.use(server)
        repl = start(waits=False, program=INSTALLED)
        repl.wait_for(OPENING)
        yield repl


@pytest.fixture
def gate(panpan: Panpan, tmp_path: Path) -> Path:
    """A pipe; what draws the terminal is imported once somebody has written into it, as on a slow machine."""
    gate, folder = tmp_path / "gate", tmp_path / "slow"
    os.mkfifo(gate)
    folder.mkdir()
    (folder / "prompt_toolkit.py").write_text(
        f"import sys\nopen({str(gate)!r}).read()\nsys.path.remove({str(folder)!r})\n"
        "del sys.modules['prompt_toolkit']\nimport prompt_toolkit\n"
    )
    panpan.env["PYTHONPATH"] = str(folder)
    return gate


def test_prompt_takes_keys_before_the_repl_is_imported(panpan: Panpan, gate: Path) -> None:
    environment = dict(panpan.environment()) | {"ANTHROPIC_API_KEY": "sk-no-matter"}
    with Terminal(INSTALLED, env=environment, cwd=panpan.workspace) as terminal:
        terminal.wait_for(lambda screen: screen.row_of_cursor.startswith("❯"))
        terminal.send("typed early")
        terminal.wait_for(lambda screen: screen.row_of_cursor == "❯ typed early")


def test_enter_before_the_import_sends(panpan: Panpan, start: Start, gate: Path) -> None:
    with serving([say("First answer.")]) as server:
        panpan.use(server)
        repl = start(waits=False, program=INSTALLED)
        repl.wait_for("❯")
        repl.send("typed early" + keys.ENTER)
        repl.wait_for("typed early")
        gate.write_text("")
        repl.wait_for("First answer.")

    assert [texts_of(request.messages[-1]) for request in server.requests] == ["typed early"]


def test_enter_sends_at_every_moment_of_the_start(panpan: Panpan) -> None:
    environment = dict(panpan.environment()) | {"ANTHROPIC_API_KEY": "sk-no-matter"}
    with Terminal(INSTALLED, env=environment, cwd=panpan.workspace) as terminal:
        terminal.wait_for("❯")
        while "? shortcuts" not in terminal.text:
            assert all(terminal.passes_enter for _ in range(500))
        terminal.send(keys.ctrl("d"))

        assert terminal.wait() == 0
        assert terminal.has_settings_of_before


def test_early_messages_are_sent_in_their_order(panpan: Panpan, start: Start) -> None:
    with serving([say("First answer."), say("Second answer.")]) as server:
        panpan.use(server)
        repl = start(waits=False, program=INSTALLED)
        repl.wait_for(OPENING)
        repl.send("one" + keys.ENTER + "two" + keys.ALT_ENTER + "half a thi")
        repl.wait_for("Second answer.")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("half a thi"))
        repl.send("rd")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("half a third"))

    assert [texts_of(request.messages[-1]) for request in server.requests] == ["one", "two"]


def test_mode_chosen_early_counts(panpan: Panpan, opening: Repl) -> None:
    opening.send(keys.SHIFT_TAB)
    opening.wait_for("accept edits")


def test_early_message_can_be_taken_back(panpan: Panpan, opening: Repl) -> None:
    opening.send("not this" + keys.ENTER + keys.ALT_UP)
    opening.wait_for(lambda screen: screen.before_cursor.endswith("❯ not this"))
    opening.wait_for("? shortcuts")

    assert opening.read(lambda screen: screen.before_cursor).endswith("❯ not this")


def test_ctrl_c_clears_the_input_and_then_leaves(panpan: Panpan, opening: Repl) -> None:
    opening.send("text" + keys.ctrl("c") + keys.ctrl("c"))

    assert opening.wait() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_while_opening_sets_the_exit_code(
    panpan: Panpan, opening: Repl, number: signal.Signals, code: int
) -> None:
    opening.signal(number)

    assert opening.wait() == code


def test_early_input_is_recalled_after_a_failed_start(panpan: Panpan, start: Start) -> None:
    repl = start("--model", "nobody/knows-this", waits=False, program=INSTALLED)
    repl.wait_for(OPENING)
    repl.send("sent early" + keys.ENTER + "and typed")

    assert repl.wait() == 2
    assert "there is no provider 'nobody'" in repl.text
    assert "panpan keeps what you typed" in repl.text

    with serving([]) as server:
        panpan.use(server)
        again = start()
        again.send(keys.UP)
        again.wait_for(lambda screen: screen.before_cursor.endswith("❯ and typed"))
        again.send(keys.UP)
        again.wait_for(lambda screen: screen.before_cursor.endswith("❯ sent early"))


def test_early_paste_is_sent_whole(panpan: Panpan, start: Start) -> None:
    lines = "".join(f"line {number}\n" for number in range(100))
    with serving([say("Read.")]) as server:
        panpan.use(server)
        repl = start(waits=False, program=INSTALLED)
        repl.wait_for(OPENING)
        repl.send(f"\x1b[200~{lines}\x1b[201~" + keys.ENTER)
        repl.wait_for("Read.")

    assert texts_of(server.requests[0].messages[-1]) == lines


def test_ctrl_c_gives_back_early_messages(panpan: Panpan, opening: Repl) -> None:
    opening.send(f"one{keys.ENTER}two{keys.ENTER}{keys.ctrl('c')}")
    opening.wait_for(was_given_back("  two"))
    opening.wait_for("? shortcuts")

    assert "❯ one\n  two" in opening.visible


def test_leaving_early_says_how_many_messages_were_not_sent(panpan: Panpan, opening: Repl) -> None:
    opening.send(f"for nobody{keys.ENTER}{keys.ctrl('d')}")

    assert opening.wait() == 0
    assert "1 message was not sent" in opening.text


def test_clear_passes_later_messages_to_the_next_session(panpan: Panpan, start: Start) -> None:
    with serving([say("First."), say("Second.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("one", "First.")
        repl.wait_for("1 round")
        repl.send(f"/clear{keys.ENTER}two{keys.ENTER}half a thi")  # as one write, which outruns the new session
        repl.wait_for("Second.")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("half a thi"))

        assert "\ntwo\n" not in repl.text  # a terminal that is not raw would have echoed it
        assert repl.text.count("half a thi") == 1
    assert [texts_of(message) for message in server.requests[1].messages] == ["two"]
    assert len(panpan.session_files()) == 2
