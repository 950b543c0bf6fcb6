"""Questions on a terminal that nothing else draws on: pick an option, type a secret.

The rule: keys are read as they come, so that Esc and Ctrl+C are answers, and the terminal is left as it was found.
Keys that were typed before a question could be read answer nothing.
"""

import os
import shutil
import sys
import termios
import textwrap
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

import anyio

from panpan.cli_kit.failures import StdoutWriter, is_dumb
from panpan.session.command import Option
from panpan.system.text.terminal_text import clean_line
from panpan.types.pattern import compile_late

_KEY = compile_late(r"\x1b(?:\[[0-9;?]*[@-~]|O.)|[\s\S]")
_UP, _DOWN = ("\x1b[A", "\x1bOA", "k", "\x10"), ("\x1b[B", "\x1bOB", "j", "\x0e")
_ENTER, _BACKSPACE, _CLEAR = ("\r", "\n"), ("\x7f", "\x08"), ("\x15",)
_LEAVE = ("\x1b", "\x03", "\x04")
"""Esc, Ctrl+C and Ctrl+D."""
_MAX_CHARS = 10_000
_MAX_DIGITS = 3
_MOST_BY_ONE_DIGIT = 9
"""Most options that one digit picks at once. With more options a number needs Enter, as another digit may follow."""
_ROWS_AROUND = 4
"""Rows of the hint and the title, and a blank row after the title and after the options."""


class TerminalQuestions:
    """Asks on the terminal of a process.

    Args:
        stdin: A terminal.
        stdout: The same terminal, or another one.
        is_plain: True if nothing may be redrawn.
    """

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None, *, is_plain: bool = False) -> None:
        self._is_plain = is_plain or is_dumb(os.environ)
        self._fd = (stdin or sys.stdin).fileno()
        self._out = StdoutWriter(stdout or sys.stdout)

    async def tell(self, text: str) -> None:
        """Print lines, wrapped at blanks."""
        await self._out.write(f"{_wrapped(text, shutil.get_terminal_size().columns)}\n")

    async def secret(self, question: str) -> str | None:
        """Return the text that the user types or pastes, without showing it; None if they leave."""
        typed, question = "", _wrapped(question, shutil.get_terminal_size().columns)
        with self._keys():
            await self._out.write(f"{question} ")
            async for key in self._pressed():
                if key in _LEAVE or key in _ENTER:
                    await self._out.write("\n")
                    return None if key in _LEAVE else typed.strip()
                if key in _BACKSPACE:
                    typed = typed[:-1]
                elif key in _CLEAR:
                    typed = ""
                elif key.isprintable() and len(typed) < _MAX_CHARS:
                    typed += key
        return None

    async def choose(self, title: str, options: Sequence[Option]) -> int | None:
        """Return the index of the option that the user picks, by number or with the arrows; None if they leave."""
        size = shutil.get_terminal_size()
        title = _wrapped(title, size.columns)
        around = title.count("\n") + _ROWS_AROUND
        has_room = len(options) + around < size.lines and max(map(len, title.split("\n"))) < size.columns
        is_drawn = has_room and not self._is_plain
        if not is_drawn:
            how = "type a number, then Enter; Esc leaves"
        elif len(options) > _MOST_BY_ONE_DIGIT:
            how = "↑↓ or a number, then Enter; Esc leaves"
        else:
            how = "↑↓ and Enter, or a number; Esc leaves"
        with self._keys():
            await self._out.write(f"{title}\n\n{_rows(options, 0 if is_drawn else None, size.columns)}\n{how}\n")
            picked = await (self._by_arrows(options, size.columns) if is_drawn else self._by_number(options))
        if is_drawn:
            answer = "" if picked is None else f" {clean_line(options[picked].label)}"
            await self._out.write(f"\x1b[{len(options) + around}A\x1b[J{title}{answer}\n")
        return picked

    async def _by_arrows(self, options: Sequence[Option], width: int) -> int | None:
        at, digits = 0, ""
        async for key in self._pressed():
            if key in _LEAVE:
                return None
            if key in _ENTER:
                return at
            if key.isascii() and key.isdigit():
                digits = digits + key if int(digits + key) <= len(options) else key
                if 0 < int(digits) <= len(options):
                    at = int(digits) - 1
                    if len(options) <= _MOST_BY_ONE_DIGIT:
                        return at
            elif key in (*_UP, *_DOWN):
                at, digits = (at + (1 if key in _DOWN else -1)) % len(options), ""
            await self._out.write(f"\x1b[{len(options) + 2}A{_rows(options, at, width)}\x1b[2B\r")
        return None

    async def _by_number(self, options: Sequence[Option]) -> int | None:
        typed = ""
        async for key in self._pressed():
            if key in _LEAVE:
                return None
            if key in _ENTER:
                await self._out.write("\n")
                if typed and 0 < int(typed) <= len(options):
                    return int(typed) - 1
                typed = ""
            elif key.isascii() and key.isdigit() and len(typed) < _MAX_DIGITS:
                typed += key
                await self._out.write(key)
        return None

    @contextmanager
    def _keys(self) -> Iterator[None]:
        """Make the terminal pass on each key at once, without echo, until the block is left."""
        as_it_was = termios.tcgetattr(self._fd)
        raw = [*as_it_was]
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, raw)
        try:
            yield
        finally:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._fd, termios.TCSADRAIN, as_it_was)

    async def _pressed(self) -> AsyncGenerator[str, None]:
        """Yield the keys as they are pressed, until the terminal is gone."""
        while True:
            await anyio.wait_readable(self._fd)
            try:
                text = os.read(self._fd, 1 << 16).decode(errors="replace")
            except OSError:
                return
            if not text:
                return
            for key in _KEY.findall(text):
                yield key


def _wrapped(text: str, width: int) -> str:
    """Return text wrapped between words; a long word, such as an address, is not cut."""
    lines = (
        textwrap.wrap(line, max(width - 1, 1), break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )
    return "\n".join("\n".join(line) for line in lines)


def _rows(options: Sequence[Option], at: int | None, width: int) -> str:
    """Return a row for each option, with the one at `at` marked; each row is cleared to its end."""
    label_width = max(len(option.label) for option in options)
    rows = []
    for number, option in enumerate(options, 1):
        mark = "❯" if number - 1 == at else " "
        row = f"{mark} {number:>2}  {clean_line(option.label):{label_width}}  {clean_line(option.detail)}".rstrip()
        rows.append(f"{row[: width - 1]}{'' if at is None else chr(27) + '[K'}\n")
    return "".join(rows)


async def ask_yes_or_no(question: str) -> bool | None:
    """Return the user's answer on the terminal of this process; None if they leave."""
    picked = await TerminalQuestions().choose(question, [Option("Yes"), Option("No")])
    return None if picked is None else picked == 0
