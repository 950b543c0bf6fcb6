import os

import pytest

from tests.needed_programs import need
from tests.terminal_emulator.tmux import Tmux


@pytest.fixture(autouse=True)
def needs_tmux() -> None:
    need("tmux")


def test_program_is_typed_to_and_read() -> None:
    says = "read line; printf '\\033[31msaid %s\\033[0m\\n' \"$line\"; read more; exit 3"
    with Tmux(["sh", "-c", says], env=os.environ) as tmux:
        tmux.type("semicolons; and $words")
        tmux.send("Enter")
        tmux.wait_for("said semicolons; and $words")
        tmux.send("Enter")  # tmux may lose what a program says in the moment in which it ends
        tmux.wait_for(lambda tmux: tmux.has_ended)

        assert tmux.exit_code == 3
        assert "\x1b[31msaid" in tmux.styled()


def test_narrower_window_wraps_and_loses_nothing() -> None:
    words = " ".join(f"w{number:03}" for number in range(200))
    with Tmux(["sh", "-c", f"echo '{words}'; exec sleep 60"], env=os.environ, columns=100, rows=10) as tmux:
        tmux.wait_for("w199")
        tmux.resize(40, 10)
        tmux.wait_for(lambda tmux: max(map(len, tmux.text.splitlines())) <= 40)

        assert "".join(tmux.text.splitlines()).replace(" ", "") == words.replace(" ", "")
