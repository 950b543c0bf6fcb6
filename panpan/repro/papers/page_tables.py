"""Tables of web pages and Markdown, and their text. A stranger wrote them: read in the sandboxed worker."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from panpan.repro.papers.grid import GridCell, named_tables
from panpan.repro.papers.latex_tables import plain_tex
from panpan.repro.papers.paper_table import MAX_CELL_CHARS, PaperTables, cut
from panpan.repro.papers.pdf.lines import caption_name
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_TEXTS = ("p", "figcaption", "div", "li", "pre", "blockquote", "dd", "center")
_BREAKING = ("p", "div", "li", "h1", "h2", "h3", "h4", "h5", "h6", "br", "tr", "td", "th", "section", "article", "pre")
"""Elements that stand on lines of their own."""
_UNREAD = ("script", "style", "template", "noscript")
_DROPPED = (*_UNREAD, "annotation", "annotation-xml")
_MAX_SPAN = 200


def html_tables(html: str) -> PaperTables:
    """Return the tables of a page."""
    from panpan.capabilities.web.page_tree import drop, drop_unseen, parse_html

    tree = parse_html(html)
    title = next((" ".join(each.text_content().split()) for each in tree.iter("h1", "title")), "")
    _write_formulas(tree)
    drop_unseen(tree)
    drop(tree, _DROPPED)
    _write_scripts(tree)
    return PaperTables(title=cut(title, MAX_CELL_CHARS), tables=named_tables(_grids(tree)))


def markdown_tables(text: str) -> PaperTables:
    """Return the tables of a Markdown file, those in HTML included."""
    from markdown_it import MarkdownIt

    return html_tables(f"<body>{MarkdownIt('commonmark', {'html': True}).enable('table').render(text)}</body>")


def _write_formulas(tree: "HtmlElement") -> None:
    """Write formulas whose TeX the page has as text."""
    for element in list(tree.iter("math")):
        tex = element.get("alttext") or "".join(element.xpath(".//*[local-name()='annotation']/text()")[:1])
        if tex and element.getparent() is not None:
            element.tail = f"{plain_tex(tex)}{element.tail or ''}"
            element.drop_tree()


def _write_scripts(tree: "HtmlElement") -> None:
    for element in list(tree.iter("sup", "sub")):
        mark = "^" if element.tag == "sup" else "_"
        text = " ".join(element.text_content().split())
        if element.getparent() is not None:
            element.tail = f"{mark}{{{text}}}{element.tail or ''}" if text else element.tail
            element.drop_tree()


def _grids(tree: "HtmlElement") -> Iterator[tuple[str, str, Sequence[Sequence[GridCell]]]]:
    blocks = list(_blocks(tree))
    ways = {step: _captions_beside(blocks, step) for step in (-1, 1)}
    usual = -1 if len(ways[-1]) >= len(ways[1]) else 1  # captions of a page stand on the same side of their tables
    taken: set[int] = set()
    for index, block in enumerate(blocks):
        if block.table is None:
            continue
        caption = block.text
        for step in (usual, -usual):
            at = ways[step].get(index)
            if not caption and at is not None and at not in taken:
                caption = blocks[at].text
                taken.add(at)
        yield caption_name(caption) or block.heading, caption, list(_lines(block.table))


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of the page: a table with its own caption, or text."""

    text: str
    heading: str
    """The heading above it."""
    table: "HtmlElement | None" = None


def _blocks(tree: "HtmlElement") -> Iterator[_Block]:
    heading = ""
    for element in tree.iter(*_HEADINGS, *_TEXTS, "table"):
        if element.tag == "table":
            if next(element.iterdescendants("table"), None) is None:
                yield _Block(_caption(element), heading, element)
        elif element.tag in _HEADINGS:
            heading = _text(element)
            yield _Block("", heading)
        elif next(element.iterdescendants("table", *_TEXTS), None) is None and not _is_inside_table(element):
            text = _text(element)
            if text:
                yield _Block(text, heading)


def _is_inside_table(element: "HtmlElement") -> bool:
    return next(element.iterancestors("table"), None) is not None


def _captions_beside(blocks: Sequence[_Block], step: int) -> dict[int, int]:
    """Return, by index of a table, that of the caption right before (-1) or behind it (1)."""
    found = {}
    for index, block in enumerate(blocks):
        at = index + step
        is_beside = block.table is not None and 0 <= at < len(blocks) and blocks[at].table is None
        if is_beside and caption_name(blocks[at].text):
            found[index] = at
    return found


def _caption(table: "HtmlElement") -> str:
    """Return the text that the page marks as the table's caption."""
    own = next((_text(each) for each in table.iter("caption")), "")
    if own:
        return own
    figure = next(table.iterancestors("figure"), None)
    return next((_text(each) for each in figure.iter("figcaption")), "") if figure is not None else ""


def _lines(table: "HtmlElement") -> Iterator[Sequence[GridCell]]:
    for row in table.iter("tr"):
        is_in_head = next(row.iterancestors("thead"), None) is not None
        yield [
            GridCell(_text(cell), _span(cell, "colspan"), _span(cell, "rowspan"), is_in_head or cell.tag == "th")
            for cell in row.iterchildren("td", "th")
        ]


def _text(element: "HtmlElement") -> str:
    return " ".join(" ".join(element.itertext()).split()).replace(" ^{", "^{").replace(" _{", "_{")


def _span(cell: "HtmlElement", name: str) -> int:
    text = (cell.get(name) or "1").strip()
    return min(int(text), _MAX_SPAN) if text.isdecimal() and len(text) < 5 else 1


def html_text(html: str) -> str:
    """Return the text of a page, with the addresses of its links in it."""
    from panpan.capabilities.web.page_tree import drop, drop_unseen, parse_html

    tree = parse_html(html)
    drop_unseen(tree)
    drop(tree, _UNREAD)
    for element in list(tree.iter("a")):
        _write_link(element)
    for element in tree.iter(*_BREAKING):
        element.text = f"\n{element.text or ''}"
        element.tail = f"\n{element.tail or ''}"
    return str(tree.text_content())


def _write_link(element: "HtmlElement") -> None:
    """Write the address of a link in place of words that are a part of it, else after them."""
    address = str(element.get("href") or "")
    if not address.startswith(("https://", "http://")):
        return
    if "".join(element.text_content().split()) in address:
        for child in list(element):
            element.remove(child)
        element.text = address
    else:
        element.tail = f" <{address}> {element.tail or ''}"
