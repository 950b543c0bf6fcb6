"""Terminals for tests: a program runs on a real one, and a test reads the screen as text.

    with Terminal(["cat"], columns=80, rows=24) as terminal:
        terminal.send("hello\\r")
        terminal.wait_for("hello\\nhello")

`Terminal` is a pseudo-terminal with an emulator, which sees every byte; `Tmux` is a real terminal program, which
reflows rows when the width changes. Nothing here imports panpan.
"""

from tests.terminal_emulator.controls import Control
from tests.terminal_emulator.processes import left_with, new_mark
from tests.terminal_emulator.screen import Screen
from tests.terminal_emulator.terminal import Terminal
from tests.terminal_emulator.tmux import Tmux

__all__ = ["Control", "Screen", "Terminal", "Tmux", "left_with", "new_mark"]
