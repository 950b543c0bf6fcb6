"""Ctrl+Z and other stops under a shell: it has its terminal meanwhile, and `fg` gives panpan all of it back."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from threading import Event

import pytest

from tests.e2e.conftest import COMMAND, Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import ends_input, takes_keys, texts_of
from tests.model_server import Hold, say, serving
from tests.terminal_emulator import Screen, Terminal
from tests.terminal_emulator.keys import ENTER, ctrl
from tests.terminal_emulator.processes import pids_with

PROMPT = "shell> "
BACK = "panpan -c"
"""Part of what is said when panpan is left."""


@pytest.fixture
def shell(panpan: Panpan) -> Iterator[Terminal]:
    env = dict(panpan.environment()) | {"PS1": PROMPT}
    with Terminal(["bash", "--norc", "-i"], env=env, cwd=panpan.workspace, columns=120) as terminal:
        terminal.wait_for(at_shell)
        yield terminal


def at_shell(screen: Screen) -> bool:
    return screen.before_cursor.rstrip() == PROMPT.rstrip()


def begin(panpan: Panpan, shell: Terminal) -> None:
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "PANPAN_SESSIONS_TITLE")
    shell.send("".join(f"export {name}={panpan.environment()[name]}{ENTER}" for name in names))
    shell.send(f"clear; {COMMAND}{ENTER}")
    shell.wait_for(takes_keys)


def suspend(shell: Terminal) -> None:
    """Press Ctrl+Z, and see that the shell has a terminal as it should be."""
    shell.send(ctrl("z"))
    shell.wait_for("Stopped")
    shell.wait_for(at_shell)
    shell.send(f"echo $((40 + 2)) is typed as ever{ENTER}")
    shell.wait_for("42 is typed as ever")
    shell.wait_for(at_shell)
    assert "echo $((40 + 2)) is typed as ever" in shell.text  # it was echoed


def go_on(shell: Terminal) -> None:
    """Type `fg`; bash may throw away keys that come while it takes the terminal back."""
    for _ in range(5):
        shell.send(f"{ctrl('u')}fg")
        with suppress(AssertionError):
            shell.wait_for(lambda screen: screen.before_cursor == f"{PROMPT}fg", timeout_s=6)
            break
    shell.send(ENTER)


def leave(shell: Terminal) -> None:
    shell.wait_for(takes_keys)
    shell.send(ctrl("d"))
    shell.wait_for(BACK)
    shell.wait_for(at_shell)


def pid_of_panpan(shell: Terminal) -> int:
    (pid,) = [pid for pid, command in pids_with(shell.mark).items() if "bin/panpan" in command]
    return pid


def test_suspend_keeps_the_input_until_fg(panpan: Panpan, shell: Terminal) -> None:
    with serving([say("An answer.")]) as server:
        panpan.use(server)
        begin(panpan, shell)
        shell.send("half a")
        shell.wait_for(ends_input("half a"))
        suspend(shell)
        go_on(shell)
        shell.wait_for(ends_input("half a"))
        shell.send(f" thought{ENTER}")
        shell.wait_for("An answer.")
        leave(shell)

    assert texts_of(server.requests[0].messages[-1]) == "half a thought"


def test_turn_goes_on_after_fg(panpan: Panpan, shell: Terminal) -> None:
    gate = Event()
    with serving([say("Beginning and end.", chunk_chars=9, faults=(Hold(4, gate),))]) as server:
        panpan.use(server)
        begin(panpan, shell)
        shell.send(f"go{ENTER}")
        shell.wait_for("Beginning")
        suspend(shell)
        gate.set()
        go_on(shell)
        shell.wait_for("Beginning and end.")
        leave(shell)

    assert len(server.requests) == 1


def test_sigstop_keeps_the_input_and_the_raw_terminal(panpan: Panpan, shell: Terminal) -> None:
    with serving([say("An answer.")]) as server:
        panpan.use(server)
        begin(panpan, shell)
        shell.send("half a")
        shell.wait_for(ends_input("half a"))
        os.kill(pid_of_panpan(shell), signal.SIGSTOP)
        shell.wait_for("Stopped")
        shell.wait_for(at_shell)
        go_on(shell)
        shell.wait_for(ends_input("half a"))
        shell.send(f" thought{ENTER}")  # where the terminal was not raw, this would be a line feed in the input
        shell.wait_for("An answer.")
        leave(shell)

    assert texts_of(server.requests[0].messages[-1]) == "half a thought"


def test_another_program_keeps_the_terminal_when_panpan_goes_on(panpan: Panpan, shell: Terminal) -> None:
    editor = panpan.home.parent / "editor"
    editor.write_text("#!/bin/sh\necho EDITOR IS OPEN\nread line\necho edited: $line > $1\n")
    editor.chmod(0o700)
    with serving([]) as server:
        panpan.use(server)
        shell.send(f"export EDITOR={editor}{ENTER}")
        begin(panpan, shell)
        shell.send(ctrl("g"))
        shell.wait_for("EDITOR IS OPEN")
        shell.send(ctrl("z"))
        shell.wait_for("Stopped")
        shell.wait_for(at_shell)
        go_on(shell)
        shell.wait_for(lambda screen: screen.before_cursor == "" and screen.text.rstrip().endswith("/panpan"))
        shell.send(f"a line{ENTER}")
        shell.wait_for(ends_input("edited: a line"))
        shell.send(ctrl("c"))
        shell.wait_for(takes_keys)
        shell.send(ctrl("d"))
        shell.wait_for(at_shell)


def test_suspend_without_a_shell_is_refused(panpan: Panpan, start: Start) -> None:
    with serving([say("An answer.")]) as server:
        panpan.use(server)
        repl = start()
        repl.send(ctrl("z"))
        repl.wait_for("no shell")
        repl.turn("still there?", "An answer.")
