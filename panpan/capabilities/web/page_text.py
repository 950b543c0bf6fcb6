"""Conversion of pages to Markdown. Synchronous: a page of 2 MB takes two seconds.

The rule: of two ways to say less, the one is taken that loses nothing of the matter. The article alone, as readability
finds it, is given where it holds the listings, the tables and most of the text; else the page without its navigation.
"""

import codecs
import json
import logging
import re
import sys
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias

from panpan.capabilities.web.page_tree import (
    PageFacts,
    drop_unseen,
    facts_of,
    make_links_whole,
    parse_html,
    write_formulas,
)
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from lxml.html import HtmlElement


Extent: TypeAlias = Literal["article", "main", "all"]
"""Part of a page that is returned: its article, all but its navigation, or all."""

MAX_ELEMENTS = 60_000
"""Most elements of a page in which an article is looked for; that takes two seconds then."""
_LEAST_SHARE = 0.6
"""Least share of the text outside of navigation that an article must have, or it is not the whole content."""
_KEPT_WHOLE = ("pre", "code", "table", "math", "aside", "dl", "ol")
"""Elements of the matter that readability takes for less: listings, tables, formulas, notes, terms, references."""
_NAVIGATION = "//nav | //*[@role='navigation' or @role='search' or @role='contentinfo']"
_BESIDE = "//footer | //aside | //dialog | //*[@role='complementary']"
"""Elements beside the main content, unless they are inside it, like footnotes and boxes of some pages."""
_MATTER = "ancestor::article or ancestor::main or ancestor::*[@role='main']"
_CONTROLS = ("button", "input", "select", "textarea", "option")
_TAG = compile_late(r"<[^<>]*>")
_PROGRAM = compile_late(r"<(script|style)\b", re.IGNORECASE)
_GAP = compile_late(r"\n\s*\n\s*\n+")


@dataclass(frozen=True, slots=True)
class PageText:
    """Text and facts of a page."""

    markdown: str
    extent: Extent
    facts: PageFacts


def page_text(html: str, url: str, *, wants_all: bool) -> PageText:
    """Return the text of any page; empty if it cannot be read at all."""
    tree = parse_html(html)
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

    logging.getLogger("readability").setLevel(logging.CRITICAL)  # it logs every oddity to stderr
    try:
        html = str(Document(deepcopy(main)).summary(html_partial=True))
        article = parse_html(html)
    except (Unparseable, etree.LxmlError, ValueError, RecursionError, TypeError, AttributeError):
        return None  # badly written pages; the page itself is still there
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
    except Exception as error:  # it has no common base class of errors; the text is there without it
        logging.getLogger(__name__).debug("no Markdown", extra={"error": repr(error)})
        return ""
    return text.strip()


def _without_tags(html: str) -> str:
    """Return the text of a document that is nested too deep for a tree, its tags removed."""
    import html as entities

    parts: list[str] = []
    at = 0
    while found := _PROGRAM.search(html, at):  # not one expression: it takes for ever if no element ends
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


# The order of trust is that of browsers: a byte order mark, the server's header, the page's own declaration
# (https://html.spec.whatwg.org/#determining-the-character-encoding). Otherwise try UTF-8, then cp1252.

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = compile_late(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_DECLARATION = compile_late(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_OF_THE_WEB = compile_late(r"ascii|utf-(?:8|16|7)|iso8859-|iso2022_jp|cp|koi8|gb|hz|big5|euc_|shift_jis|mac-|tis-620")
_PRESCAN_BYTES = 4_096
"""The standard says 1,024; pages are found that say it later."""
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
    "euc_kr": "cp949", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "utf-16": "utf-16-le", "utf-7": "cp1252",
}  # fmt: skip
"""Encodings that browsers use for a name (https://encoding.spec.whatwg.org/#names-and-labels), by Python's names."""


def decode_page(body: bytes, charset: str | None) -> str:
    """Return the text of a page, or of its beginning; invalid bytes become U+FFFD."""
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
    return "utf-8" if name in ("utf-16-le", "utf-16-be") else name  # a UTF-16 page could not be read this far


def _codec(name: str) -> str | None:
    """Return Python's name of an encoding; None where it is none that pages are written in."""
    try:
        found = codecs.lookup(name.strip().strip("\"'")).name
    except (LookupError, ValueError):
        return None
    return _WIDER.get(found, found) if _OF_THE_WEB.match(found) else None


MAX_CHARS = 5_000_000
"""Most characters of a text. HTML of a few bytes can grow to gigabytes: `rowspan`, lists in lists."""

Job: TypeAlias = Mapping[str, Any]
Parsed: TypeAlias = dict[str, Any]


def main() -> None:
    """Parse the page on the standard input, in a process of its own: what strangers send costs nothing else."""
    sys.stdout.buffer.write(answer(sys.stdin.buffer))


def answer(asked: BinaryIO) -> bytes:
    """Return the parsed page as JSON, or `{"error": why}`, for a line of JSON and the body behind it."""
    job = json.loads(asked.readline())
    try:
        made = _MAKERS[job["kind"]](job, asked.read())
    except ToolError as error:
        words = str(error)  # the library's words behind the colon may quote the content
        made = {"error": words if error.__cause__ is None else words.partition(": ")[0]}
    return json.dumps(made, ensure_ascii=False).encode("utf-8", "replace")


def _of_html(job: Job, body: bytes) -> Parsed:
    from panpan.capabilities.web.page_tree import obstacle_of

    html = decode_page(body, job["charset"])
    text = page_text(html, job["url"], wants_all=job["wants_all"])
    found = obstacle_of(
        job["status"], job["headers"], text.facts, html, asked=job["asked"], url=job["url"],
        is_rendered=job["is_rendered"],
    )  # fmt: skip
    obstacle = found and {"kind": found.kind, "reason": found.reason, "is_partial": found.is_partial}
    about = {"title": text.facts.title, "extent": text.extent, "sends_on_to": text.facts.sends_on_to[:10_000]}
    return _bounded(text.markdown) | about | {"obstacle": obstacle}


def _of_text(job: Job, body: bytes) -> Parsed:
    return _bounded(decode_page(body, job["charset"]))


def _of_pdf(job: Job, body: bytes) -> Parsed:
    from panpan.documents.read_pdf import read_pdf

    pdf = read_pdf(body, job["pages"], "the PDF")
    return _bounded(pdf.text) | {"scans": pdf.scans}


def _of_image(_: Job, body: bytes) -> Parsed:
    from panpan.documents.read_image import prepare_image

    picture = prepare_image(body, "what came")
    return {"what": picture.description, "picture": picture.block.model_dump(mode="json")}


def _bounded(text: str) -> Parsed:
    clean = clean_for_terminal(text[: MAX_CHARS + 1])
    return {"text": clean[:MAX_CHARS], "is_cut": len(clean) > MAX_CHARS}


_MAKERS = {"html": _of_html, "text": _of_text, "pdf": _of_pdf, "image": _of_image}


if __name__ == "__main__":
    main()
