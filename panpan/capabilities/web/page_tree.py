"""A page as a tree, and what stands in it for people. Synchronous: a large page takes half a second.

The rule: what a page hides is not read: scripts, styles, and what is marked as not to be seen.
"""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_UNSEEN = (
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "head", "meta", "base",
)  # fmt: skip
_HIDDEN = "//*[@hidden or @aria-hidden='true' and not(.//*) or contains(@style, 'display')]"
_DISPLAY_NONE = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_MAX_NOSCRIPT_CHARS = 2_000
_REFRESH = re.compile(r"\s*\d[\d.]*\s*[;,]\s*url\s*=\s*[\"']?([^\"']+)", re.IGNORECASE)
_BAD_LINKS = re.compile(r"\s*(?:javascript|vbscript|data|blob|about):", re.IGNORECASE)
_MAX_LINK_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What a page shows and wants, as far as its document tells."""

    title: str
    text: str
    """What a person sees without scripts, with single blanks."""
    scripts: int
    noscript: str
    """What it says where there are no scripts."""
    has_password: bool
    """Whether it has a field for one."""
    is_for_subscribers: bool
    """Whether it says of itself that not everybody may read it all."""
    sends_on_to: str = ""
    """The address where browsers go by themselves from it, as it wrote it; mostly empty."""


def parsed(html: str) -> "HtmlElement":
    """Return the tree of a page, whatever it is; an empty one has nothing in it."""
    from lxml import etree  # takes 60 ms, and not every session reads pages
    from lxml import html as lxml_html

    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    data = html.replace("\0", "\ufffd").encode("utf-8", "replace")
    try:
        return lxml_html.document_fromstring(data, parser=parser)
    except (etree.ParserError, ValueError):  # nothing but blanks or comments
        return lxml_html.document_fromstring("<html><body></body></html>")


def facts_of(tree: "HtmlElement") -> PageFacts:
    """Return what a page shows; the tree stays as it is."""
    seen = deepcopy(tree)
    noscript = " ".join(" ".join(_all_text(each).split()) for each in tree.iter("noscript"))
    drop_unseen(seen)
    passwords = tree.xpath("boolean(//input[translate(@type, 'PASWORD', 'pasword')='password'])")
    return PageFacts(
        title=_title(tree),
        text=" ".join(_all_text(seen).split()),
        scripts=sum(1 for _ in tree.iter("script")),
        noscript=noscript[:_MAX_NOSCRIPT_CHARS],
        has_password=bool(passwords),
        is_for_subscribers=any(_says_not_free(each) for each in _linked_data(tree)),
        sends_on_to=_sends_on_to(tree),
    )


def drop_unseen(tree: "HtmlElement") -> None:
    """Take out of a tree what nobody sees."""
    drop(tree, _UNSEEN)
    for element in tree.xpath(_HIDDEN):
        is_hidden = element.get("hidden") is not None or _DISPLAY_NONE.search(element.get("style", ""))
        if is_hidden and element.getparent() is not None:
            element.drop_tree()
    for element in tree.iter("*"):  # lxml and readability look for addresses in it, and take quadratic time for that
        element.attrib.pop("style", None)


def drop(tree: "HtmlElement", tags: tuple[str, ...]) -> None:
    """Take elements out of a tree, with all that is in them."""
    for element in list(tree.iter(*tags)):
        if element.getparent() is not None:
            element.drop_tree()


def make_links_whole(tree: "HtmlElement", url: str) -> None:
    """Write whole addresses in place of relative ones, and take away those that lead nowhere."""
    base = _joined(url, next(iter(tree.xpath("//base/@href")), "")) or url
    for element in list(tree.iter("a", "img")):
        name = "href" if element.tag == "a" else "src"
        if name not in element.attrib:
            continue
        link = element.get(name)
        whole = None if _BAD_LINKS.match(link) else _joined(base, link)
        if whole is not None:
            element.set(name, whole)
            continue
        del element.attrib[name]
        if element.tag == "img" and element.getparent() is not None:
            element.tail = f"{element.get('alt', '')}{element.tail or ''}"
            element.drop_tree()


def _joined(base: str, link: str) -> str | None:
    """Return a whole address; None where it is none, or longer than any that can be asked for."""
    if len(link) > _MAX_LINK_CHARS:
        return None
    try:
        return urljoin(base, link.strip())
    except ValueError:  # brackets that are no address
        return None


def write_formulas(tree: "HtmlElement") -> None:
    """Put the TeX of formulas in their place where the page has it, as arXiv and Wikipedia do."""
    for element in list(tree.iter("math")):
        notes = element.xpath(".//*[local-name()='annotation'][@encoding='application/x-tex']")
        tex = " ".join((element.get("alttext") or (_all_text(notes[0]) if notes else "")).split())
        if tex and element.getparent() is not None:
            element.tail = f"${tex}${element.tail or ''}"
            element.drop_tree()


def _title(tree: "HtmlElement") -> str:
    titles = [_all_text(title) for title in tree.iter("title") if title.getparent() is not None]
    titles += tree.xpath("//meta[@property='og:title' or @name='citation_title']/@content")
    return next((line for title in titles if (line := " ".join(title.split()))), "")[:500]


def _sends_on_to(tree: "HtmlElement") -> str:
    wishes = tree.xpath("//meta[translate(@http-equiv, 'REFSH', 'refsh')='refresh']/@content")
    return next((found[1] for wish in wishes if (found := _REFRESH.match(wish))), "")


def _all_text(element: "HtmlElement") -> str:
    """Return all text below an element; blocks do not run into each other."""
    return " ".join(element.itertext())


def _linked_data(tree: "HtmlElement") -> Iterator[object]:
    for script in tree.xpath("//script[@type='application/ld+json']"):
        try:
            yield json.loads(script.text or "")
        except (ValueError, RecursionError):
            continue


def _says_not_free(node: object, depth: int = 0) -> bool:
    """Return whether https://schema.org/isAccessibleForFree is said to be false at the top of linked data."""
    if isinstance(node, list):
        return depth < 4 and any(_says_not_free(each, depth + 1) for each in node[:50])
    if not isinstance(node, dict):
        return False
    if str(node.get("isAccessibleForFree", "")).lower() == "false":
        return True
    return depth < 4 and _says_not_free(node.get("@graph"), depth + 1)
