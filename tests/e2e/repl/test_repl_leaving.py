"""The ways out, and what the terminal is like afterwards."""

import os
import signal
import subprocess

import pytest

from tests.e2e.conftest import COMMAND, Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, takes_keys
from tests.model_server import Reply, Stall, Text, call, say, serving
from tests.terminal_emulator import Terminal
from tests.terminal_emulator.keys import ALT_ENTER, ENTER, UP, ctrl
from tests.terminal_emulator.processes import pids_with

STALLED = Reply((Text("Thinking about it"),), faults=(Stall(-1),))


@pytest.mark.parametrize("word", ["/exit", "exit", "quit", "q", "/quit"])
def test_exit_words_end_panpan(panpan: Panpan, start: Start, word: str) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.submit(word)

        assert repl.wait() == 0


def test_ctrl_d_leaves_only_an_empty_input(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.type("not empty")
        repl.send(ctrl("d"))
        repl.type("!")
        repl.send(ctrl("c"))
        repl.wait_for_prompt()
        repl.send(ctrl("d"))

        assert repl.wait() == 0


def test_ctrl_c_clears_then_interrupts_then_leaves(panpan: Panpan, start: Start) -> None:
    with serving([STALLED]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking about it")
        repl.type("half a word")
        repl.send(ctrl("c"))
        repl.wait_for(takes_keys)
        was_interrupted_by_the_first = INTERRUPTED in repl.text
        repl.send(ctrl("c"))
        repl.wait_for(INTERRUPTED)
        repl.wait_for_prompt()
        repl.send(ctrl("c"))
        repl.wait_for(lambda screen: "again" in screen.text)
        was_running = repl.is_running
        repl.send(ctrl("c"))

        assert repl.wait() in (0, 130)
    assert (was_interrupted_by_the_first, was_running) == (False, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
@pytest.mark.parametrize("stage", ["at-the-prompt", "streaming", "tool", "question"])
def test_signal_ends_panpan_and_names_the_session_of_a_turn(
    panpan: Panpan, start: Start, number: signal.Signals, stage: str
) -> None:
    step = {
        "tool": call("Bash", {"command": "cat /dev/zero | sleep 60"}),
        "question": call("Bash", {"command": "touch a"}),
    }
    flags = ["--permission-mode", "bypassPermissions"] if stage == "tool" else []
    with serving([step.get(stage, STALLED)]) as server:
        panpan.use(server)
        repl = start(*flags)
        if stage != "at-the-prompt":
            repl.submit("go")
            match stage:
                case "streaming":
                    repl.wait_for("Thinking about it")
                case "tool":
                    wait_until(lambda: "sleep 60" in repl.children())
                case _:
                    repl.wait_for("touch a")
        repl.signal(number)
        if stage != "at-the-prompt":
            repl.wait_for("resume with: panpan -c")

        assert repl.wait() == 128 + number
        assert ("panpan -r " in repl.text) is (stage != "at-the-prompt")
    # that nothing runs on and the terminal is as before is asserted at the end of each test


def test_stty_is_the_same_before_and_after(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        script = f"stty -a >before; '{COMMAND}'; stty -a >after"
        with Terminal(["sh", "-c", script], env=panpan.environment(), cwd=panpan.workspace) as terminal:
            terminal.wait_for(takes_keys)
            during = subprocess.run(
                ["stty", "-a", "-F", f"/proc/{min(pids_with(terminal.mark))}/fd/0"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            (pid,) = [
                pid
                for pid, command in pids_with(terminal.mark).items()
                if "bin/panpan" in command and "sh -c" not in command
            ]
            os.kill(pid, signal.SIGTERM)
            terminal.wait()

    before, after = ((panpan.workspace / name).read_text() for name in ("before", "after"))
    assert before == after
    assert during != before


@pytest.mark.parametrize("is_in_turn", [False, True], ids=["at-the-prompt", "in-a-turn"])
def test_closed_window_ends_panpan(panpan: Panpan, start: Start, is_in_turn: bool) -> None:
    with serving([STALLED]) as server:
        panpan.use(server)
        repl = start()
        if is_in_turn:
            repl.submit("go")
            repl.wait_for("Thinking about it")
        repl.hang_up()

        assert repl.wait() == 129


def test_leaving_names_a_command_that_continues(panpan: Panpan, start: Start) -> None:
    with serving([say("Hello."), say("Again.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("hi", "Hello.")
        repl.send(ctrl("d"))
        repl.wait_for("panpan -c")
        repl.wait()
        repl = start("-c")
        repl.turn("and again", "Again.")

    assert len(server.requests[1].messages) == 3


def test_leaving_in_mid_turn_ends_the_turn(panpan: Panpan, start: Start) -> None:
    with serving([call("Bash", {"command": "sleep 60"})]) as server:
        panpan.use(server)
        repl = start("--permission-mode", "bypassPermissions")
        repl.submit("go")
        wait_until(lambda: "sleep 60" in repl.children())
        repl.submit("/exit")
        repl.wait()


def test_enter_on_an_empty_input_asks_nobody(panpan: Panpan, start: Start) -> None:
    with serving([say("Fine.")]) as server:
        panpan.use(server)
        repl = start()
        repl.send(ENTER * 3 + "   " + ENTER)
        repl.send(ctrl("u"))
        repl.turn("hello", "Fine.")

    assert len(server.requests) == 1


@pytest.mark.parametrize("way", ["ctrl-d", "term"])
def test_leaving_records_output_and_recalls_unsent_messages(panpan: Panpan, start: Start, way: str) -> None:
    with serving([STALLED]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking about it")
        repl.submit("!echo $((40 + 2)) printed")
        repl.wait_for("└ 42 printed")
        repl.submit("for the next round")
        repl.wait_for("↳ next round: for the next round")
        repl.type("for later")
        repl.send(ALT_ENTER)
        repl.wait_for("↳ after the turn: for later")
        if way == "ctrl-d":
            repl.send(ctrl("d"))
            said = "2 messages were not sent"
        else:
            repl.signal(signal.SIGTERM)
            said = "panpan keeps what you typed"  # an interrupt had given it back
        repl.wait_for(said)
        repl.wait()

        assert "42 printed" in panpan.session_files()[0].read_text()
        again = start("-c")
        again.send(UP)
        again.wait_for(lambda screen: screen.before_cursor.endswith("for later"))
        again.send(ctrl("c"))
        again.wait_for(takes_keys)
