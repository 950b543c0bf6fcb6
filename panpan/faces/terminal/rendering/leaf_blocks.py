"""Leaf blocks of Markdown (paragraphs, headings, tables, rules, code), from source to rows."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Literal, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Token as CodeToken
from pygments.token import _TokenType

from panpan.faces.terminal.rendering.cells import break_line, wrap_text
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass
from panpan.types.role import Role

GROUP_LINES = 16
"""Lines that are lexed together, since the meaning of a line may depend on the next ones."""
GROUP_CHARS = 2_000
_CONTEXT_CHARS = 3_000
_MOST_LEXED_CHARS = 500
"""Most characters of a line that `spans_of` highlights."""

_ROLES: Mapping[_TokenType, Role] = {
    CodeToken.Comment: "comment",
    CodeToken.Keyword: "keyword",
    CodeToken.Keyword.Constant: "number",
    CodeToken.Operator.Word: "keyword",
    CodeToken.Name.Function: "name",
    CodeToken.Name.Class: "name",
    CodeToken.Name.Decorator: "name",
    CodeToken.Name.Tag: "name",
    CodeToken.Name.Builtin: "name",
    CodeToken.Literal.String: "string",
    CodeToken.Literal.Number: "number",
    CodeToken.Generic.Inserted: "added",
    CodeToken.Generic.Deleted: "removed",
    CodeToken.Generic.Heading: "hunk",
    CodeToken.Generic.Subheading: "hunk",
    CodeToken.Generic.Prompt: "dim",
    CodeToken.Generic.Output: "dim",
}


def lexer_for(language: str) -> Lexer | None:
    """Return the lexer for a language, by any of its usual names; None if the language is unknown."""
    name = language.strip().strip("{}.").lower()
    for _, aliases, _, _ in get_all_lexers(plugins=False):  # searching for plug-ins would look into every package
        if name in aliases:
            return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    return None


@lru_cache(64)
def lexer_for_file(path: str) -> Lexer | None:
    """Return the lexer for a file, by its name; None if the type of the file is unknown."""
    name = path.rpartition("/")[2]
    for _, aliases, patterns, _ in get_all_lexers(plugins=False):
        if aliases and any(fnmatch(name, pattern) for pattern in patterns):
            return get_lexer_by_name(aliases[0], stripnl=False, ensurenl=False)
    return None


def spans_of(line: str, lexer: Lexer | None) -> Sequence[tuple[str, Role | None]]:
    """Return the parts of one line of code with their roles; strings and comments over several lines are not."""
    if lexer is None or len(line) > _MOST_LEXED_CHARS:
        return [(line, None)]
    try:
        tokens = [(value, _role(kind)) for kind, value in lexer.get_tokens(line) if value]
    except Exception:  # some lexers fail on some text, and code without colours is still code
        return [(line, None)]
    if "".join(text for text, _ in tokens) != line:
        return [(line, None)]
    groups = groupby(tokens, key=lambda token: token[1])
    return [("".join(text for text, _ in group), role) for role, group in groups]


@dataclass(slots=True)
class OpenCode:
    """Block of code whose end has not come yet. It takes cleaned lines without tabs, and returns highlighted lines."""

    theme: Theme
    lexer: Lexer | None
    """None: no highlighting."""
    lines: tuple[str, ...] = ()
    """Lines that are not returned yet."""
    context: tuple[str, ...] = ()
    """Returned lines before them, from which the lexer has to start."""

    def add(self, line: str) -> list[str]:
        """Add one line, and return the lines that are finished with it."""
        self.lines += (line.rstrip(" "),)
        if len(self.lines) >= GROUP_LINES or sum(map(len, self.lines)) >= GROUP_CHARS:
            return self.ended()
        return []

    def ended(self) -> list[str]:
        lines, self.lines = self.lines, ()
        if self.lexer is None or not self.theme.has_colour:
            return [self.theme.paint("code", line) for line in lines]
        read = (*self.context, *lines)
        painted, restart = _painted(read, self.lexer, self.theme)
        self.context = read[restart:]
        if sum(map(len, self.context)) > _CONTEXT_CHARS:
            self.lexer, self.context = None, ()
        return painted[len(read) - len(lines) :] if lines else []


_SPANNING = frozenset({CodeToken.Literal.String, CodeToken.Comment.Multiline})


def _painted(lines: Sequence[str], lexer: Lexer, theme: Theme) -> tuple[list[str], int]:
    """Return the highlighted lines, and the index of the line from which the lexer may start the next time."""
    text = "\n".join(lines) + "\n"
    try:
        tokens = [(kind, value) for kind, value in lexer.get_tokens(text) if value]
    except Exception:  # some lexers fail on some text, and code without colours is still code
        tokens = []
    if "".join(value for _, value in tokens) != text:
        tokens = [(CodeToken.Text, text)]
    painted = [""]
    inside: set[int] = set()
    """Indexes of lines that begin within a string or comment."""
    for kind, value in tokens:
        role = _role(kind)
        for index, part in enumerate(value.split("\n")):
            if index:
                painted.append("")
                if not _SPANNING.isdisjoint(kind.split()):
                    inside.add(len(painted) - 1)
            painted[-1] += theme.paint(role, part) if part.strip() else part
    return painted[: len(lines)], _restart(lines, inside)


def _restart(lines: Sequence[str], inside: set[int]) -> int:
    """Return the index of the last of the least indented lines near the end, where a statement probably begins."""
    left = list(accumulate((len(line) + 1 for line in reversed(lines)), initial=0))
    best, best_indent = 0, 1_000
    for index in reversed(range(len(lines))):
        line = lines[index]
        if best_indent < 1_000 and left[len(lines) - index - 1] > _CONTEXT_CHARS:
            break
        indent = len(line) - len(line.lstrip(" "))
        if line.strip() and line.lstrip(" ")[0] not in ")]}" and index not in inside and indent < best_indent:
            best, best_indent = index, indent
    return best


def _role(kind: _TokenType) -> Role | None:
    at: _TokenType | None = kind
    while at is not None and at is not CodeToken:
        if at in _ROLES:
            return _ROLES[at]
        at = at.parent
    return None


_STYLES: dict[str, Role] = {"strong": "strong", "em": "emphasis", "s": "struck", "link": "link"}


def inline_text(tokens: Sequence[Token], theme: Theme, role: Role | None = None) -> str:
    """Return the text of an inline token's children; a hard line break becomes a newline."""
    line = _Line(theme, role)
    for token in tokens:
        line.add(token)
    return "".join(line.pieces)


class _Line:
    def __init__(self, theme: Theme, role: Role | None) -> None:
        self.pieces: list[str] = []
        self._theme = theme
        self._styles: list[Role] = [role] if role else []
        self._links: list[tuple[str, int]] = []
        """Addresses of open links, each with the number of pieces before it."""

    def add(self, token: Token) -> None:
        match token.type:
            case "softbreak":
                self.pieces.append(" ")
            case "hardbreak":
                self.pieces.append("\n")
            case "code_inline":
                marks = "" if self._theme.has_colour else "`"
                self._paint(f"{marks}{token.content}{marks}", "code")
            case "image":
                self._paint(f"[image: {token.content}]")
                self._address(str(token.attrGet("src") or ""))
            case "link_open":
                self._links.append((str(token.attrGet("href") or ""), len(self.pieces)))
                self._styles.append("link")
            case "link_close":
                self._styles.pop()
                address, before = self._links.pop()
                if not _says(self.pieces[before:], address):
                    self._address(address)
            case kind if kind.removesuffix("_open") in _STYLES:
                self._styles.append(_STYLES[kind.removesuffix("_open")])
            case kind if kind.removesuffix("_close") in _STYLES:
                self._styles.pop()
            case _:
                self._paint(token.content)

    def _address(self, address: str) -> None:
        if address:
            self.pieces.append(" ")
            self.pieces.append(self._theme.paint("dim", f"({_harmless(address)})"))

    def _paint(self, text: str, role: Role | None = None) -> None:
        painted = _harmless(text)
        for style in [*([role] if role else []), *reversed(self._styles)]:
            painted = self._theme.paint(style, painted)
        self.pieces.append(painted)


def _says(pieces: Sequence[str], address: str) -> bool:
    return len(pieces) == 1 and address.removeprefix("mailto:") in pieces[0]


def _harmless(text: str) -> str:
    """Return the text cleaned again: entities such as `&#x202e;` only become characters in the parser."""
    return clean_for_terminal(text).replace("\n", " ").replace("\t", " ")


Alignment: TypeAlias = Literal["left", "center", "right"]

_GAP = 2
"""Cells between columns."""
_NARROWEST = 4
"""Fewest cells of a column; if a column would have fewer, the table becomes a list."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths and alignments of a table's columns."""

    header: Sequence[str]
    widths: Sequence[int]
    """Widths in cells; empty if the columns do not fit beside each other."""
    alignments: Sequence[Alignment]


def columns_of(
    header: Sequence[str], rows: Sequence[Sequence[str]], alignments: Sequence[Alignment], width: int
) -> Columns:
    """Return columns for a table of painted cells in `width` cells; later rows have to use the same columns."""
    needed = [max(1, *(cell_width(cell) for cell in column)) for column in zip(header, *rows, strict=True)]
    room = width - _GAP * (len(needed) - 1)
    if sum(needed) > room:
        needed = _shrunk(needed, room)
    return Columns(header, needed, alignments)


def header_rows(columns: Columns, theme: Theme) -> list[str]:
    """Return the rows of the header and a rule; empty if the table is shown as a list."""
    if not columns.widths:
        return []
    rule = (" " * _GAP).join("─" * width for width in columns.widths)
    return [*_row(columns.header, columns), theme.paint("dim", rule)]


def body_rows(cells: Sequence[str], columns: Columns, width: int) -> list[str]:
    """Return the terminal rows of one row of the table."""
    if columns.widths:
        return _row(cells, columns)
    pairs = [f"{name}: {cell}" if cell_width(name) else cell for name, cell in zip(columns.header, cells, strict=True)]
    return [row for pair in pairs for row in wrap_text(pair, width)]


def _row(cells: Sequence[str], columns: Columns) -> list[str]:
    wrapped_cells = [wrap_text(cell, width) for cell, width in zip(cells, columns.widths, strict=True)]
    lines = []
    for index in range(max(map(len, wrapped_cells))):
        texts = [
            _aligned(rows[index] if index < len(rows) else "", width, alignment)
            for rows, width, alignment in zip(wrapped_cells, columns.widths, columns.alignments, strict=True)
        ]
        lines.append((" " * _GAP).join(texts).rstrip(" "))
    return lines


def _aligned(text: str, width: int, alignment: Alignment) -> str:
    blanks = width - cell_width(text)
    before = {"left": 0, "center": blanks // 2, "right": blanks}[alignment]
    return " " * before + text + " " * (blanks - before)


def _shrunk(needed: Sequence[int], room: int) -> list[int]:
    """Return widths that fit in `room`, shrinking the widest columns first; empty if even the narrowest do not fit."""
    if sum(min(width, _NARROWEST) for width in needed) > room:
        return []
    low, high = _NARROWEST, max(needed)
    while low < high:  # binary search for the largest bound on a column with which all fit
        middle = (low + high + 1) // 2
        if sum(min(width, middle) for width in needed) <= room:
            low = middle
        else:
            high = middle - 1
    widths = [min(width, low) for width in needed]
    spare = room - sum(widths)
    for index, width in enumerate(needed):
        if width > low and spare:
            widths[index], spare = widths[index] + 1, spare - 1
    return widths


Kind: TypeAlias = Literal["text", "heading", "code", "table"]

_TAKEN_APART_BEFORE = ["list", "blockquote", "fence"]
_NEVER_KNOWN = ["reference"]
"""Rules of the parser that are off: a link's definition may come long after the link, so it is shown as text."""

_MAX_BRACKETS = 300
"""Most brackets of one block in which links are parsed: each may begin a link that holds the others, which is slow."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A rendered leaf block."""

    kind: Kind
    rows: Sequence[str]
    """Rows of the block; for code its lines, which may be wider than a row."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """Unfinished table whose first rows are printed, with the layout for the others."""

    head: tuple[str, str]
    """Source of its first two lines."""
    columns: Columns


class LeafBlocks:
    """Renders leaf blocks from lines of Markdown."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._with_links, self._without_links = _parser(), _parser().disable(["link", "image"])

    def render(self, lines: Sequence[str], width: int, table: OpenTable | None) -> tuple[list[Leaf], OpenTable | None]:
        """Return the blocks in cleaned `lines` without tabs, and the unfinished table at their end, if any.

        `table` is the unfinished table that these lines continue.
        """
        source = [*table.head, *lines] if table else lines
        text = "\n".join(source)
        markdown = self._without_links if text.count("[") > _MAX_BRACKETS else self._with_links
        tokens = markdown.parse(text)
        leaves: list[Leaf] = []
        last: OpenTable | None = None
        for index, token in enumerate(tokens):
            last = None if token.nesting == 1 and token.level == 0 else last
            match token.type:
                case "table_open":
                    is_rest = table is not None and token.map is not None and token.map[0] == 0
                    leaf, columns = self._table(tokens[index:], width, table.columns if table and is_rest else None)
                    leaves.append(leaf)
                    first = token.map[0] if token.map else 0
                    last = OpenTable((source[first], source[first + 1]), columns)
                case "inline" if token.level == 1:
                    leaves.append(self._text(token, tokens[index - 1], width))
                case "hr":
                    leaves.append(Leaf("text", [self._theme.paint("dim", "─" * width)]))
                case "code_block":
                    leaves.append(Leaf("code", self._literal(token.content)))
                case "html_block":
                    rows = self._literal(token.content)
                    leaves.append(Leaf("text", [part for row in rows for part in break_line(row, width)]))
                case _:
                    pass
        return leaves, last

    def _text(self, token: Token, opening: Token, width: int) -> Leaf:
        children = token.children or []
        if opening.type != "heading_open":
            return Leaf("text", wrap_text(inline_text(children, self._theme), width))
        mark = "" if self._theme.has_colour else f"{'#' * int(opening.tag[1:])} "
        return Leaf("heading", wrap_text(mark + inline_text(children, self._theme, "heading"), width))

    def _literal(self, content: str) -> list[str]:
        lines = clean_for_terminal(content).rstrip("\n").split("\n")
        return [self._theme.paint("code", line.rstrip(" ")) for line in lines]

    def _table(self, tokens: Sequence[Token], width: int, known: Columns | None) -> tuple[Leaf, Columns]:
        header, *rows = _cells(tokens, self._theme)
        columns = known or columns_of(header, rows, _alignments(tokens), width)
        lines = [] if known else header_rows(columns, self._theme)
        for cells in rows:
            lines += body_rows(cells, columns, width)
        return Leaf("table", lines), columns


def _parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return markdown.disable([*_TAKEN_APART_BEFORE, *_NEVER_KNOWN])


def _cells(tokens: Sequence[Token], theme: Theme) -> Iterator[Sequence[str]]:
    """Yield the rows of the table that begins with `tokens`, its header first."""
    cells: list[str] = []
    is_header = False
    for token in tokens:
        match token.type:
            case "table_close":
                return
            case "tr_close":
                yield cells
                cells = []
            case "th_open" | "td_open":
                is_header = token.type == "th_open"
            case "inline":
                cells.append(inline_text(token.children or [], theme, "strong" if is_header else None))
            case _:
                pass


def _alignments(tokens: Sequence[Token]) -> list[Alignment]:
    found: list[Alignment] = []
    for token in tokens:
        if token.type == "thead_close":
            break
        if token.type == "th_open":
            style = str(token.attrGet("style") or "")
            found.append("right" if "right" in style else "center" if "center" in style else "left")
    return found
