"""The blocks of Markdown that hold no others (paragraphs, headings, tables, rules), from source to rows."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token

from panpan.faces.terminal.rendering.cells import broken, wrapped
from panpan.faces.terminal.rendering.inline import inline_text
from panpan.faces.terminal.rendering.table import Alignment, Columns, body_rows, columns_of, header_rows
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass

Kind: TypeAlias = Literal["text", "heading", "code", "table"]

_TAKEN_APART_BEFORE = ["list", "blockquote", "fence"]
_NEVER_KNOWN = ["reference"]
"""The address of a link may come long after the link was printed; so definitions are shown as they are."""

_MAX_BRACKETS = 300
"""Of one block. Where there are more, none is taken for a link: each may be the begin of one that holds the others."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One block."""

    kind: Kind
    rows: Sequence[str]


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table of which the first rows are printed: how the others are to be read and laid out."""

    head: tuple[str, str]
    """The source of its first two lines."""
    columns: Columns


class LeafBlocks:
    """Renders leaf blocks.

    Args:
        theme: How they look.
    """

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._with_links, self._without_links = _parser(), _parser().disable(["link", "image"])

    def render(self, lines: Sequence[str], width: int, table: OpenTable | None) -> tuple[list[Leaf], OpenTable | None]:
        """Return the blocks in `lines`, and the table that they end with, if they do.

        Args:
            lines: Harmless and without tabs.
            width: Cells of a row.
            table: The one that goes on with these lines.
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
                    leaves.append(Leaf("code", self._literal(token.content, width)))
                case "html_block":
                    leaves.append(Leaf("text", self._literal(token.content, width)))
                case _:
                    pass
        return leaves, last

    def _text(self, token: Token, opening: Token, width: int) -> Leaf:
        children = token.children or []
        if opening.type != "heading_open":
            return Leaf("text", wrapped(inline_text(children, self._theme), width))
        mark = "" if self._theme.has_colour else f"{'#' * int(opening.tag[1:])} "
        return Leaf("heading", wrapped(mark + inline_text(children, self._theme, "heading"), width))

    def _literal(self, content: str, width: int) -> list[str]:
        lines = [line.rstrip(" ") for line in clean_for_terminal(content).rstrip("\n").split("\n")]
        return [self._theme.paint("code", row) for line in lines for row in broken(line, width)]

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
