"""A terminal whose keyboard is the test."""

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO

from panpan.cli_kit.stdin import StdinReader
from panpan.faces.plain.line_reader import LineReader


@dataclass
class Keyboard:
    """Bytes that a person, or a paste, puts into the terminal."""

    file: FileIO

    def type(self, text: str) -> None:
        self.file.write(text.encode())

    def unplug(self) -> None:
        """Close the terminal, as when its window is closed."""
        self.file.close()


@contextmanager
def terminal() -> Iterator[tuple[Keyboard, LineReader]]:
    """A pseudo-terminal in the state that a shell leaves it in: it gives out whole lines."""
    keyboard_fd, screen_fd = pty.openpty()
    with FileIO(keyboard_fd, "w") as keyboard, os.fdopen(screen_fd) as screen:
        yield Keyboard(keyboard), LineReader(StdinReader(screen))
