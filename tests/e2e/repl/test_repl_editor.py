"""Ctrl+G: the input in the user's own editor, and what becomes of it when panpan has to end meanwhile."""

import signal
import sys
from pathlib import Path
from threading import Event

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, ends_input, texts_of
from tests.model_server import Hold, call, say, serving
from tests.terminal_emulator import keys

SEEN = say("Seen.")

FULL_SCREEN = """\
#!{python}
import os, signal, sys, termios, tty
from pathlib import Path

file = Path(sys.argv[1])
before = termios.tcgetattr(0)

def end(*_):
    os.write(1, b"\\x1b[?1049l\\x1b[?25h")
    termios.tcsetattr(0, termios.TCSANOW, before)
    os._exit(0)

for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, {on_signal})
signal.signal(signal.SIGINT, signal.SIG_IGN)
tty.setraw(0, termios.TCSANOW)
os.write(1, b"\\x1b[?1049h\\x1b[?25l\\x1b[HEDITOR IS OPEN")
while (key := os.read(0, 1)) != b"q":
    file.write_text(file.read_text() + key.decode())
    os.write(1, key if key.isalnum() or key == b"!" else b".")
end()
"""
"""An editor as they are: it has the whole screen, in raw mode, and saves each key."""


@pytest.fixture(params=["end"])
def editor(request: pytest.FixtureRequest, panpan: Panpan) -> Path:
    """Return an editor; its parameter says what it does when a signal ends it."""
    script = panpan.home.parent / "editor"
    script.write_text(FULL_SCREEN.format(python=sys.executable, on_signal=request.param))
    script.chmod(0o700)
    panpan.env["EDITOR"] = str(script)
    return script


def test_editor_gets_all_keys_while_the_turn_goes_on(panpan: Panpan, start: Start, editor: Path) -> None:
    gate = Event()
    with serving([say("Beginning and end.", chunk_chars=9, faults=(Hold(4, gate),)), SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Beginning")
        repl.type("draft")
        repl.send(keys.ctrl("g"))
        repl.wait_for("EDITOR IS OPEN")
        gate.set()
        repl.send(f" y\x1b{keys.ctrl('c')}n")
        repl.wait_for("EDITOR IS OPEN.y..n")
        while_open = repl.text
        repl.send("q")
        repl.wait_for("Beginning and end.")
        repl.wait_for(ends_input("draft yn"))
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    assert "Beginning and end." not in while_open
    assert INTERRUPTED not in repl.text
    assert texts_of(server.requests[1].messages[-1]) == "draft yn"


@pytest.mark.parametrize("editor", ["end", "signal.SIG_IGN"], indirect=True, ids=["good-editor", "deaf-editor"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_editor_ends_with_a_signal_and_restores_the_terminal(
    panpan: Panpan, start: Start, editor: Path, number: signal.Signals
) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.type("draft")
        repl.send(keys.ctrl("g"))
        repl.wait_for("EDITOR IS OPEN")
        repl.signal(number)

        assert repl.wait() == 128 + number
    # that nothing runs on and the terminal is as before is asserted at the end of each test


def test_editor_file_is_named_and_kept_after_a_signal(
    panpan: Panpan, start: Start, editor: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    panpan.env["TMPDIR"] = str(temporary)
    with serving([]) as server:
        panpan.use(server)
        repl = start(columns=200)
        repl.type("draft")
        repl.send(keys.ctrl("g"))
        repl.wait_for("EDITOR IS OPEN")
        repl.send("!")
        repl.wait_for("EDITOR IS OPEN!")
        repl.signal(signal.SIGTERM)
        repl.wait()

    (file,) = temporary.glob("panpan-prompt-*/prompt.md")
    assert file.read_text() == "draft!"
    assert str(file) in repl.text


def test_editor_text_is_recalled_after_the_window_was_closed(panpan: Panpan, start: Start, editor: Path) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.send(keys.ctrl("g"))
        repl.wait_for("EDITOR IS OPEN")
        repl.send("ab")
        repl.wait_for("EDITOR IS OPENab")
        repl.hang_up()

        assert repl.wait() == 129
        again = start()
        again.send(keys.UP)
        again.wait_for(ends_input("ab"))
        again.send(keys.ctrl("c"))
        again.wait_for_prompt()


def test_pager_ends_with_a_signal(panpan: Panpan, start: Start, editor: Path) -> None:
    panpan.env["PAGER"] = panpan.env["EDITOR"]
    with serving([call("Bash", {"command": "echo printed"}), SEEN]) as server:
        panpan.use(server)
        repl = start("--permission-mode", "bypassPermissions")
        repl.turn("go", "Seen.")
        repl.send(keys.ctrl("o"))
        repl.wait_for("EDITOR IS OPEN")
        repl.signal(signal.SIGTERM)

        assert repl.wait() == 143
