"""What other blocks of Markdown stand in: items of lists and quotations.

A container says of each line of the source whether it goes on in it, and gives each row of the output its beginning.
"""

import re
from dataclasses import replace

from panpan.faces.terminal.rendering.cells import cell_width
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass

_ITEM = re.compile(r"( {0,3})([-+*]|(\d{1,9})([.)]))( +|$)")
_QUOTE = re.compile(r" {0,3}> ?")
_TASK = re.compile(r"\[([ xX])\] +")


@dataclass(slots=True)
class Container:
    """One item or quotation that is open."""

    first: str
    """What its first row begins with."""
    rest: str
    """What each other row begins with."""
    indent: int = 0
    """Of an item: the column of the source where its content stands."""
    number: int | None = None
    delimiter: str = ""
    """Of an item: what stands behind its number, or its bullet."""
    is_begun: bool = False
    """Whether its first row is printed."""

    @property
    def is_quote(self) -> bool:
        """Whether it is a quotation, and not an item."""
        return not self.indent

    @property
    def source_prefix(self) -> str:
        """What a line of the source begins with that goes on in it."""
        return " " * self.indent or "> "

    @property
    def width(self) -> int:
        """Cells that it takes from a row."""
        return cell_width(self.rest)

    def content(self, line: str, *, is_in_code: bool) -> str | None:
        """Return what a line has in it; None where the line leaves it.

        Args:
            line: Of the source, less what belongs to outer containers.
            is_in_code: Whether a fence is open. A line of code that is not indented as it should be is no new block.
        """
        if self.is_quote:
            match = _QUOTE.match(line)
            return line[match.end() :] if match else None
        blanks = len(line) - len(line.lstrip(" "))
        if blanks >= self.indent or blanks == len(line):
            return line[self.indent :]
        return line[blanks:] if is_in_code else None

    def prefix(self) -> str:
        """Return what the next row begins with."""
        if self.is_begun:
            return self.rest
        self.is_begun = True
        return self.first

    def twin(self) -> "Container":
        """Return one that goes on by itself."""
        return replace(self)


def opened_quote(line: str, theme: Theme) -> tuple[Container, str] | None:
    """Return the quotation that a line begins, and what the line has in it."""
    match = _QUOTE.match(line)
    if match is None:
        return None
    bar = theme.paint("dim", "│") + " " if theme.has_colour else "> "
    return Container(bar, bar), line[match.end() :]


def opened_item(
    line: str, before: Container | None, *, is_in_paragraph: bool, theme: Theme
) -> tuple[Container, str] | None:
    """Return the item that a line begins, and what the line has in it.

    Args:
        line: Of the source.
        before: The item that ended just before, if one did: numbers count on from it.
        is_in_paragraph: Whether a paragraph is open, in which a number at the beginning of a line may be just that.
        theme: How it looks.
    """
    match = _ITEM.match(line)
    if match is None:
        return None
    is_empty = match.end() == len(line) and not line[match.end() :].strip()
    source_number = int(match[3]) if match[3] else None
    if is_in_paragraph and (is_empty or source_number not in (None, 1)):
        return None
    blanks = len(match[5])
    end = match.end(2) + (blanks if 1 <= blanks <= 4 and not is_empty else 1)
    content = line[end:]
    delimiter = match[4] or match[2]
    number = source_number
    if before and before.number is not None and number is not None and before.delimiter == delimiter:
        number = before.number + 1
    mark = "•" if number is None else f"{number}{delimiter}"
    if number is None and (task := _TASK.match(content)):
        mark, content = ("☐" if task[1] == " " else "☑"), content[task.end() :]
    mark = f"{mark} "
    painted = theme.paint("accent", mark.rstrip()) + " "
    return Container(painted, " " * len(mark), end, number, delimiter), content
