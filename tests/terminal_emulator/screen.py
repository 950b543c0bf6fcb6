"""Screen of a terminal as text: the visible rows, and the scrollback above them.

pyte keeps the cells. Differences of pyte from today's terminals are corrected here: zero-width characters that do not
combine (of emoji), wide characters at the right edge, an endless scrollback, the alternate screen, and answers to
queries of the program.
"""

import copy
import re
from collections.abc import Callable
from typing import Any

import pyte
import pyte.modes
import wcwidth

from tests.terminal_emulator.controls import Control, Splitter

_ALTERNATE = {47, 1047, 1049}
_PARAMETERS = re.compile(r"(?P<private>[<=>?]?)(?P<numbers>[\d;:]*)(?P<between>[ -/]*)(?P<final>[@-~])")
_TAKE_PRIVATE = {"h", "l"}
_BRACKETED_PASTE = 2004


class Screen(pyte.Screen):
    """A screen with a scrollback.

    Args:
        columns: Cells of a row.
        rows: Visible rows.
        answer: Takes the terminal's answer to a query of the program.
        background: Background colour that it reports, as `rgb:RRRR/GGGG/BBBB`.
    """

    def __init__(
        self,
        columns: int,
        rows: int,
        *,
        answer: Callable[[str], None] = lambda _: None,
        background: str = "rgb:1111/1111/1111",
    ) -> None:
        self.scrollback: list[str] = []
        """Rows that went off the top, oldest first."""
        self.controls: list[Control] = []
        """Every control function, in order."""
        self.titles: list[str] = []
        self.clipboard: list[str] = []
        """Texts that were written to it with OSC 52."""
        self.notices: list[str] = []
        """Desktop notifications, sent with OSC 9 or 777."""
        self.bells = 0
        self._answer = answer
        self._background = background
        self._main: tuple[Any, Any] | None = None
        self._splitter = Splitter()
        super().__init__(columns, rows)

    # reading

    @property
    def visible(self) -> list[str]:
        """Rows on the screen, without blanks at their ends."""
        return [_text_of(self.buffer[row]) for row in range(self.lines)]

    @property
    def text(self) -> str:
        """Scrollback and screen, one row a line, without empty rows at the end."""
        return "\n".join([*self.scrollback, *self.visible]).rstrip("\n")

    @property
    def is_alternate(self) -> bool:
        """True if the alternate screen is shown."""
        return self._main is not None

    @property
    def is_cursor_visible(self) -> bool:
        return pyte.modes.DECTCEM in self.mode

    @property
    def has_bracketed_paste(self) -> bool:
        """True if a paste would be marked."""
        return (_BRACKETED_PASTE << 5) in self.mode

    @property
    def row_of_cursor(self) -> str:
        return _text_of(self.buffer[self.cursor.y])

    @property
    def before_cursor(self) -> str:
        """Text of the cursor's row left of the cursor."""
        return "".join(self.buffer[self.cursor.y][column].data for column in range(self.cursor.x))

    # writing

    def feed(self, text: str) -> None:
        """Handle output of the program."""
        for item in self._splitter.feed(text):
            if isinstance(item, str):
                self.draw(item)
            else:
                self.controls.append(item)
                self._obey(item)

    def draw(self, data: str) -> None:
        for char in data:
            self._put(char, wcwidth.wcwidth(char))

    def _put(self, char: str, width: int) -> None:
        if width <= 0:
            column = self.cursor.x - 1
            if column > 0 and self.buffer[self.cursor.y][column].data == "":
                column -= 1  # the second half of a wide character
            if column >= 0:
                cell = self.buffer[self.cursor.y][column]
                self.buffer[self.cursor.y][column] = cell._replace(data=cell.data + char)
            return
        if self.cursor.x + width > self.columns and pyte.modes.DECAWM in self.mode:
            self.carriage_return()
            self.linefeed()
        column = min(self.cursor.x, self.columns - width)
        row = self.buffer[self.cursor.y]
        row[column] = self.cursor.attrs._replace(data=char)
        if width == 2:
            row[column + 1] = self.cursor.attrs._replace(data="")
        self.cursor.x = column + width

    def index(self) -> None:
        bottom = self.lines - 1 if self.margins is None else self.margins.bottom
        top = 0 if self.margins is None else self.margins.top
        if self.cursor.y == bottom and top == 0 and not self.is_alternate:
            self.scrollback.append(_text_of(self.buffer[0]))
        super().index()

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        if how == 3:
            self.scrollback.clear()
        else:
            super().erase_in_display(how)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Change the size as xterm does: rows are not reflowed, and those that no longer fit go off the top."""
        lines, columns = lines or self.lines, columns or self.columns
        over = max(0, self.cursor.y - lines + 1)
        for _ in range(over):
            self.scrollback.append(_text_of(self.buffer[0]))
            for row in range(self.lines - 1):
                self.buffer[row] = self.buffer[row + 1]
            self.buffer.pop(self.lines - 1, None)
        self.cursor.y -= over
        for row in [row for row in self.buffer if row >= lines]:
            del self.buffer[row]
        self.lines, self.columns = lines, columns
        self.margins = None
        self.cursor.x = min(self.cursor.x, columns - 1)

    # obeying

    def _obey(self, control: Control) -> None:
        match control.kind:
            case "C0":
                self._obey_c0(control.text)
            case "CSI":
                self._obey_csi(control.text)
            case "ESC" if control.text in pyte.Stream.escape:
                getattr(self, pyte.Stream.escape[control.text])()
            case "OSC":
                self._obey_osc(*control.text.partition(";")[::2])

    def _obey_c0(self, char: str) -> None:
        if char == "\a":
            self.bells += 1
        elif char in pyte.Stream.basic and char not in "\x0e\x0f":
            getattr(self, pyte.Stream.basic[char])()

    def _obey_csi(self, text: str) -> None:
        match = _PARAMETERS.fullmatch(text)
        if match is None:
            return
        private, final = match["private"], match["between"] + match["final"]
        numbers = (
            [int(number.partition(":")[0] or 0) for number in match["numbers"].split(";")] if match["numbers"] else []
        )
        if (question := private + final) in ("c", ">c", "n", "?$p"):
            self._answer_question(question, numbers)
        elif private == "?" and final in _TAKE_PRIVATE:
            self._switch(numbers, is_on=final == "h")
        elif not private and final in pyte.Stream.csi:
            getattr(self, pyte.Stream.csi[final])(*numbers)

    def _switch(self, modes: list[int], *, is_on: bool) -> None:
        (self.set_mode if is_on else self.reset_mode)(*modes, private=True)
        if not _ALTERNATE & set(modes) or is_on is self.is_alternate:
            return
        if is_on:
            self._main = (copy.deepcopy(dict(self.buffer)), copy.copy(self.cursor))
            self.buffer.clear()
        elif self._main is not None:
            rows, self.cursor = self._main
            self.buffer.clear()
            self.buffer.update(rows)
            self._main = None

    def _answer_question(self, question: str, numbers: list[int]) -> None:
        match question, (numbers or [0])[0]:
            case "c", 0:
                self._answer("\x1b[?62;22c")
            case ">c", 0:
                self._answer("\x1b[>41;390;0c")
            case "n", 5:
                self._answer("\x1b[0n")
            case "n", 6:
                self._answer(f"\x1b[{self.cursor.y + 1};{min(self.cursor.x, self.columns - 1) + 1}R")
            case "?$p", mode:
                self._answer(f"\x1b[?{mode};0$y")

    def _obey_osc(self, number: str, content: str) -> None:
        match number:
            case "0" | "2":
                self.titles.append(content)
            case "52":
                self.clipboard.append(content)
            case "9" | "777":
                self.notices.append(content)
            case "10" | "11" if content == "?":
                colour = self._background if number == "11" else "rgb:eeee/eeee/eeee"
                self._answer(f"\x1b]{number};{colour}\x1b\\")


def _text_of(row: Any) -> str:
    if not row:
        return ""
    return "".join(row[column].data if column in row else " " for column in range(max(row) + 1)).rstrip()
