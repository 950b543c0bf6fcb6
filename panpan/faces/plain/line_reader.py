"""Lines that a person types on a terminal.

The rule: lines that arrive together, as in a paste, are one text. So a paste starts one turn and not several,
and a `y` that begins a paste answers no question.
"""

from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.stdin import StdinReader

PASTE_GAP_S = 0.03
"""Seconds between two lines; if there are fewer, they are a paste: nobody presses Enter 30 times a second."""

_MOST_FLUSHES = 100
"""Most flushes for one paste, which take 3 s; a closed terminal always seems to have more."""


class LineReader:
    """Reads a terminal; the first to ask gets the next text.

    Args:
        stdin: Reads the terminal.
    """

    def __init__(self, stdin: StdinReader) -> None:
        self._stdin = stdin
        self._lines: list[bytes] = []
        """Lines of the arriving text."""

    async def next(self) -> str | None:
        """Return the next text without its last line end, or None at the end of the input (Ctrl+D)."""
        self._lines.clear()
        while (line := await self._stdin.line()) is not None:
            self._lines.append(line)
            if not await self._stdin.has_more(within_s=PASTE_GAP_S) and not self._stdin.take_begun_line():
                break
        lines, self._lines = self._lines, []
        return b"".join(lines).decode(errors="replace").removesuffix("\n") if lines else None

    async def drop_typed_ahead(self) -> bool:
        """Forget everything typed so far, including arriving lines; return True if it was anything."""
        was_typed, flushes = bool(self._lines), 0
        self._lines.clear()
        while flushes < _MOST_FLUSHES and await self._stdin.has_more(within_s=PASTE_GAP_S):
            self._stdin.forget()
            self._stdin.flush_terminal()
            flushes += 1
        was_typed = self._stdin.take_begun_line() or was_typed or flushes > 0
        self._stdin.forget()
        return was_typed

    async def has_more(self) -> bool:
        """Return True if a line is there to be read."""
        return await self._stdin.has_more(within_s=0)

    def go_on(self) -> None:
        """Read on after a Ctrl+D."""
        self._stdin.go_on()

    def forget(self) -> None:
        """Forget lines that were read and not returned; the terminal itself drops its unread input at Ctrl+C."""
        self._lines.clear()
        self._stdin.forget()


class YesOrNo:
    """Asks a question until the answer is yes or no; the end of the input is no answer."""

    def __init__(self, out: StdoutWriter, lines: LineReader) -> None:
        self._out = out
        self._lines = lines

    async def __call__(self, question: str) -> bool | None:
        await self._lines.drop_typed_ahead()
        while True:
            await self._out.write(question)
            match await self._lines.next():
                case None:
                    return None
                case answer if (said := answer.strip().lower()) in ("y", "yes", "n", "no"):
                    return said.startswith("y")
