"""What a page says, as Markdown. Synchronous: a page of 2 MB takes two seconds.

The rule: of two ways to say less, the one is taken that loses nothing of the matter. The article alone, as readability
finds it, is given where it holds the listings, the tables and most of the text; else the page without its navigation.
"""

import codecs
import logging
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Literal, TypeAlias

from panpan.capabilities.web.page_tree import PageFacts, drop_unseen, facts_of, make_links_whole, parsed, write_formulas
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from lxml.html import HtmlElement


Extent: TypeAlias = Literal["article", "main", "all"]
"""How much of a page is given: its article, all but its navigation, or all."""

MAX_ELEMENTS = 60_000
"""Of a page in which an article is looked for, which takes two seconds then."""
_LEAST_SHARE = 0.6
"""Of the text outside of navigation that an article has, or it is not all of the matter."""
_KEPT_WHOLE = ("pre", "code", "table", "math", "aside", "dl", "ol")
"""Elements of the matter that readability takes for less: listings, tables, formulas, notes, terms, references."""
_NAVIGATION = "//nav | //*[@role='navigation' or @role='search' or @role='contentinfo']"
_BESIDE = "//footer | //aside | //dialog | //*[@role='complementary']"
"""What stands beside the matter, unless it stands in it, as footnotes and boxes of some pages do."""
_MATTER = "ancestor::article or ancestor::main or ancestor::*[@role='main']"
_CONTROLS = ("button", "input", "select", "textarea", "option")
_TAG = re.compile(r"<[^<>]*>")
_PROGRAM = re.compile(r"<(script|style)\b", re.IGNORECASE)
_GAP = re.compile(r"\n\s*\n\s*\n+")


@dataclass(frozen=True, slots=True)
class PageText:
    """What a page says."""

    markdown: str
    extent: Extent
    facts: PageFacts


def page_text(html: str, url: str, *, wants_all: bool) -> PageText:
    """Return what a page says, whatever it is; a page that cannot be read at all says nothing.

    Args:
        html: The document.
        url: Where it is from, for its links.
        wants_all: Whether navigation is wanted, too.
    """
    tree = parsed(html)
    facts = facts_of(tree)
    make_links_whole(tree, url)
    write_formulas(tree)
    drop_unseen(tree)
    whole = tree if wants_all else _without_around(tree)
    extent: Extent = "all" if wants_all else "main"
    source = _source(whole)
    is_small = sum(1 for _ in tree.iter()) <= MAX_ELEMENTS
    if not wants_all and is_small and (article := _article(whole)) is not None:
        source, extent = article, "article"
    markdown = _markdown(source) or _without_tags(html)
    return PageText(markdown, extent, facts)


def _without_around(tree: "HtmlElement") -> "HtmlElement":
    bare = deepcopy(tree)
    beside = [element for element in bare.xpath(_BESIDE) if not element.xpath(_MATTER)]
    for element in [*bare.xpath(_NAVIGATION), *beside]:
        if element.getparent() is not None:
            element.drop_tree()
    return bare if bare.text_content().strip() else tree


def _article(main: "HtmlElement") -> str | None:
    """Return the article of a page without navigation, as HTML; None where there is none that holds what matters."""
    from lxml import etree
    from readability import Document
    from readability.readability import Unparseable

    logging.getLogger("readability").setLevel(logging.CRITICAL)  # it would tell of every oddity on stderr
    try:
        html = str(Document(deepcopy(main)).summary(html_partial=True))
        article = parsed(html)
    except (Unparseable, etree.LxmlError, ValueError, RecursionError, TypeError, AttributeError):
        return None  # pages that nobody wrote as they should; the page itself is there
    is_most = len(_bare(article)) >= _LEAST_SHARE * len(_bare(main))
    loses = any(_count(article, tag) < _count(main, tag) for tag in _KEPT_WHOLE)
    return html if is_most and not loses else None


def _markdown(html: str) -> str:
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        extract_metadata=False, preprocessing=PreprocessingOptions(enabled=False), strip_tags=list(_CONTROLS)
    )
    try:
        text = convert(html, options).content or ""
    except Exception as error:  # it has a class for each of its faults and none for all; the text is there without it
        logging.getLogger(__name__).debug("no Markdown", extra={"error": repr(error)})
        return ""
    return text.strip()


def _without_tags(html: str) -> str:
    """Return what is left of a document that is nested too deep for a tree."""
    import html as entities

    parts: list[str] = []
    at = 0
    while found := _PROGRAM.search(html, at):  # not in one expression: that takes for ever where none of them ends
        parts.append(html[at : found.start()])
        end = re.compile(f"</{found[1]}", re.IGNORECASE).search(html, found.end())
        at = end.start() if end else len(html)
    parts.append(html[at:])
    return _GAP.sub("\n\n", entities.unescape(_TAG.sub(" ", "".join(parts)))).strip()


def _source(tree: "HtmlElement") -> str:
    from lxml import html as lxml_html

    return str(lxml_html.tostring(tree, encoding="unicode"))


def _bare(tree: "HtmlElement") -> str:
    return "".join(tree.text_content().split())


def _count(tree: "HtmlElement", tag: str) -> int:
    return sum(1 for _ in tree.iter(tag))


# From the bytes of a page to its text.
#
# The rule: a byte order mark is believed first, then what the server says, then what the page says of itself, as
# browsers do (https://html.spec.whatwg.org/#determining-the-character-encoding); else it is UTF-8, or what was before
# it.

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_DECLARATION = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_OF_THE_WEB = re.compile(r"ascii|utf-(?:8|16|7)|iso8859-|iso2022_jp|cp|koi8|gb|hz|big5|euc_|shift_jis|mac-|tis-620")
_PRESCAN_BYTES = 4_096
"""The standard says 1,024; pages are found that say it later."""
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
    "euc_kr": "cp949", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "utf-16": "utf-16-le", "utf-7": "cp1252",
}  # fmt: skip
"""What a name means on the web (https://encoding.spec.whatwg.org/#names-and-labels), by Python's name for it."""


def decoded(body: bytes, charset: str | None) -> str:
    """Return the text of a page; bytes that stand for nothing become U+FFFD.

    Args:
        body: The page, or the beginning of it.
        charset: What the server says; None: nothing.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    head = body[:_PRESCAN_BYTES]
    said = _codec(charset or "") or _codec_said(head)
    if said is not None:
        return body.decode(said, "replace")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body)  # the last character may be cut
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _codec_said(head: bytes) -> str | None:
    found = _META.search(head) or _DECLARATION.match(head)
    name = _codec(found[1].decode("ascii")) if found else None
    return "utf-8" if name in ("utf-16-le", "utf-16-be") else name  # or nobody could have read it


def _codec(name: str) -> str | None:
    """Return Python's name of an encoding; None where it is none that pages are written in."""
    try:
        found = codecs.lookup(name.strip().strip("\"'")).name
    except (LookupError, ValueError):
        return None
    return _WIDER.get(found, found) if _OF_THE_WEB.match(found) else None
