"""The text of a document with the addresses of its links in it, from which the paper's repository is known."""

from typing import TYPE_CHECKING

from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_BLOCKS = ("p", "div", "li", "h1", "h2", "h3", "h4", "h5", "h6", "br", "tr", "td", "th", "section", "article", "pre")
_DROPPED = ("script", "style", "template", "noscript")
_TEX_COMMENT = compile_late(r"(?m)(?<!\\)%.*$")
_TEX_ESCAPE = compile_late(r"\\([_%#&~-])")


def html_text(html: str) -> str:
    """Return the text of a page."""
    from panpan.capabilities.web.page_tree import drop, drop_unseen, parse_html

    tree = parse_html(html)
    drop_unseen(tree)
    drop(tree, _DROPPED)
    for element in list(tree.iter("a")):
        _write_link(element)
    for element in tree.iter(*_BLOCKS):
        element.text = f"\n{element.text or ''}"
        element.tail = f"\n{element.tail or ''}"
    return str(tree.text_content())


def latex_text(text: str) -> str:
    """Return the text of a LaTeX file, with addresses as they are meant."""
    return _TEX_ESCAPE.sub(r"\1", _TEX_COMMENT.sub("", text))


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
