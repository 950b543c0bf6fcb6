"""What a running tool has printed: the last lines of it, whatever it prints and however much."""

import re
from collections import deque

from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal

MAX_LINES = 100
MAX_LINE_CHARS = 2_000
"""Of one line, the last ones are kept: an endless line moves at its end."""

_CHUNK_CHARS = 500_000
"""Of one chunk, the last ones are read; more lines than are kept fit in them mostly."""
_TAB = 8
_INDENT = "    "
_LINE_END = re.compile(r"\r*\n")
_BEGUN_SEQUENCE = re.compile(r"(?:\x1b|\x9b)[\[\]]?[\x20-\x3f]*\Z")


class LiveOutput:
    """Keeps the last `MAX_LINES` lines; a carriage return begins the line anew, as progress bars want it."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._open = ""
        """The line that has no end yet, since its last carriage return, and that if nothing came after it."""
        self.count = 0
        """Lines so far, the open one included."""

    def feed(self, text: str) -> None:
        """Take what was printed; a chunk may end anywhere."""
        if self._open and text.isprintable() and not self._open.endswith("\r"):
            self._open = (self._open + text)[-MAX_LINE_CHARS:]
            return
        ended = text.count("\n")
        self.count += ended + (0 if self._open else 1)
        parts = _LINE_END.split(self._open + text[-_CHUNK_CHARS:])
        self._open = _last_written(parts.pop())
        if not self._open:
            self.count -= 1
        self._lines.extend(_last_written(part) for part in parts[-MAX_LINES:])

    def lines(self) -> list[str]:
        """Return what is kept, harmless, each line on one."""
        lines = [*self._lines, *([self._open] if self._open else [])][-MAX_LINES:]
        return [_harmless(line) for line in lines]

    def preview(self, count: int, width: int, theme: Theme) -> list[str]:
        """Return the last lines that show something, at most `count` of them, as dim rows of `width` cells."""
        return [theme.paint("dim", cut(_INDENT + line.rstrip(" "), width)) for line in self._last(count)[0]]

    def count_above(self, count: int) -> int:
        """Return how many lines came before those that `preview` shows of `count`."""
        return max(self.count - self._last(count)[1], 0)

    def _last(self, count: int) -> tuple[list[str], int]:
        """Return the last lines that show something, and how many there are from the first of them on."""
        shown: list[str] = []
        passed = 0
        for line in (*([self._open] if self._open else ()), *reversed(self._lines)):
            if len(shown) == count:
                break
            passed += 1
            if (clean := _harmless(line)).strip():
                shown.append(clean)
        return shown[::-1], passed


def _last_written(line: str) -> str:
    """Return what stands in a line after its last carriage return; one at the end is kept for what comes then."""
    start = line.rstrip("\r").rfind("\r") + 1
    ended = "\r" if line.endswith("\r") else ""
    return line[start:].rstrip("\r")[-MAX_LINE_CHARS:] + ended


def _harmless(line: str) -> str:
    clean = clean_for_terminal(_BEGUN_SEQUENCE.sub("", line.rstrip("\r")))
    return clean.replace("\n", " ").expandtabs(_TAB)
