"""A page as a tree: its visible content, and whether it is the page that was asked for."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urljoin, urlsplit

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from lxml.html import HtmlElement


# A page as a tree, and its visible content. Synchronous: a large page takes half a second. Skips what a page hides:
# scripts, styles, and elements that are marked as hidden.

_UNSEEN = (
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "head", "meta", "base",
)  # fmt: skip
_HIDDEN = "//*[@hidden or @aria-hidden='true' and not(.//*) or contains(@style, 'display')]"
_DISPLAY_NONE = compile_late(r"display\s*:\s*none", re.IGNORECASE)
_MAX_NOSCRIPT_CHARS = 2_000
_REFRESH = compile_late(r"\s*\d[\d.]*\s*[;,]\s*url\s*=\s*[\"']?([^\"']+)", re.IGNORECASE)
_BAD_LINKS = compile_late(r"\s*(?:javascript|vbscript|data|blob|about):", re.IGNORECASE)
_MAX_LINK_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Facts about a page, as far as its document tells."""

    title: str
    text: str
    """Text that is visible without scripts, with single blanks."""
    scripts: int
    noscript: str
    has_password: bool
    is_for_subscribers: bool
    """True if it says of itself that not everybody may read it all."""
    sends_on_to: str = ""
    """The address where browsers go by themselves from it, as it wrote it; mostly empty."""


def parse_html(html: str) -> "HtmlElement":
    """Return the tree of a page, whatever it is; an empty one has nothing in it."""
    from lxml import etree  # takes 60 ms, and few sessions read pages
    from lxml import html as lxml_html

    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    data = html.replace("\0", "\ufffd").encode("utf-8", "replace")
    try:
        return lxml_html.document_fromstring(data, parser=parser)
    except (etree.ParserError, ValueError):  # nothing but blanks or comments
        return lxml_html.document_fromstring("<html><body></body></html>")


def facts_of(tree: "HtmlElement") -> PageFacts:
    """Return the facts about a page; the tree stays as it is."""
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
    for element in tree.iter("*"):  # lxml and readability would search it for addresses, in quadratic time
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
    except ValueError:  # brackets without an address
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
    """Return True if https://schema.org/isAccessibleForFree is said to be false at the top of linked data."""
    if isinstance(node, list):
        return depth < 4 and any(_says_not_free(each, depth + 1) for each in node[:50])
    if not isinstance(node, dict):
        return False
    if str(node.get("isAccessibleForFree", "")).lower() == "false":
        return True
    return depth < 4 and _says_not_free(node.get("@graph"), depth + 1)


# Tells whether the answer is the requested page or an obstacle in its place. A page with much text is no obstacle;
# models can see that themselves.

ObstacleKind: TypeAlias = Literal[
    "challenge", "login", "paywall", "scripts", "forbidden", "missing", "too many", "withheld", "fault", "refused"
]

LITTLE_TEXT_CHARS = 300
"""Visible text of a page that may be but the frame of one that scripts make."""
SHORT_TEXT_CHARS = 2_000
"""Visible text of a page that may be about nothing but its obstacle."""

NOTICE_CHARS = 1_000
"""Visible text of a page that wants a sign of a person, with all that it explains; what is longer speaks of such."""

_CHALLENGE_TITLES = compile_late(
    r"just a moment|attention required|ddos-guard|are you a robot|bot verification|security check|"
    r"making sure you.re not a bot|human verification|pardon our interruption|client challenge",
    re.IGNORECASE,
)
_CHALLENGE_MARKS = compile_late(
    r"_cf_chl_opt|cf-turnstile|challenge-platform|captcha-delivery\.com|px-captcha|_incapsula_resource|"
    r"g-recaptcha|h-captcha|hcaptcha\.com|recaptcha/api|awswafintegration|geo\.captcha|anubis_challenge",
    re.IGNORECASE,
)
"""Marks that Cloudflare, DataDome, HUMAN, Imperva, Google, hCaptcha, AWS and Anubis put into such pages."""
_CHALLENGE_WORDS = compile_late(
    r"(?:verify|confirm|prove|check)\w*\s+(?:that\s+)?you\s*(?:are|.re)\s+(?:a\s+|not\s+a\s+)?(?:human|robot|bot)|"
    r"not a robot|unusual traffic|checking your browser|complete the captcha|solve the captcha|"
    r"enter the characters you see|人机验证|滑动验证|请完成验证|ロボットではありません",
    re.IGNORECASE,
)
_SCRIPT_WORDS = compile_late(
    r"(?:enable|turn on|activate|allow|requires?|needs?)\s+(?:your\s+browser'?s?\s+)?java\s?script|"
    r"java\s?script\s+(?:is|to be|must be|has to be|seems to be|appears to be)?\s*"
    r"(?:disabled|required|enabled|not enabled|not available|turned off)|without java\s?script|"
    r"javascript\s*を有効|启用\s*javascript|開啟\s*javascript|javascript\s*aktivieren|activer\s+(?:le\s+)?javascript",
    re.IGNORECASE,
)
_LOGIN_WORDS = compile_late(
    r"(?:sign|log)[\s-]?in\s+(?:to\s+(?:continue|view|access|see|read|your)|with\s+your|required)|"
    r"(?:please|must|need to|have to)\s+(?:be\s+)?(?:sign|log)(?:ged)?[\s-]?(?:ed\s+)?in\b|"
    r"请先?登录|ログインしてください",
    re.IGNORECASE,
)
_LOGIN_TITLE = compile_late(
    r"\b(?:log|sign)[\s-]?(?:in|on)\b|\bauthenticat|anmelden|connexion|登录|ログイン", re.IGNORECASE
)
_LOGIN_PATH = compile_late(
    r"(?:^|[/._-])(?:log[_-]?in|sign[_-]?in|signin|sso|saml|oauth2?|authenticate)(?:$|[/._?-])", re.IGNORECASE
)
_PAYWALL_WORDS = compile_late(
    r"subscribe (?:now )?to (?:continue|read|keep)|to (?:continue|keep) reading,? (?:please )?(?:subscribe|sign)|"
    r"(?:only|exclusively) (?:available )?(?:for|to) subscribers|already a subscriber|"
    r"purchase (?:this )?(?:article|pdf|access)|"
    r"buy (?:this )?article|access through your institution|get full access to this article",
    re.IGNORECASE,
)
_WAIT = compile_late(r"[0-9]{1,9}|[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT")
"""Seconds or a date (RFC 9110, section 10.2.3); other words of a server are not panpan's to tell."""
_LOGIN = "it is shown only to those who log in; the user can, for the browser, with `panpan web login ADDRESS`"
_STATUS: Mapping[int, tuple[ObstacleKind, str]] = {
    401: ("login", _LOGIN),
    402: ("paywall", "it is to be paid for"),
    403: ("forbidden", "the server does not give it to panpan"),
    404: ("missing", "there is no such page"),
    407: ("login", _LOGIN),
    410: ("missing", "it was removed"),
    429: ("too many", "the server wants fewer requests; wait before you ask this host again"),
    451: ("withheld", "it is withheld for legal reasons"),
}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Reason why the answer is not the page that was asked for, or not all of it."""

    kind: ObstacleKind
    reason: str
    is_partial: bool = False
    """True if what came is still worth reading, such as an abstract."""

    @property
    def may_yield_to_a_browser(self) -> bool:
        """True if a browser may see the page itself: it runs scripts, and may have a log-in."""
        return self.kind in ("scripts", "challenge", "forbidden", "login")


def obstacle_of(
    status: int,
    headers: Mapping[str, str],
    facts: PageFacts,
    html: str,
    *,
    asked: str,
    url: str,
    is_rendered: bool = False,
) -> Obstacle | None:
    """Return the obstacle between the reader and the page; None if none is found."""
    is_short = len(facts.text) <= SHORT_TEXT_CHARS
    words = f"{facts.title} {facts.text}" if is_short else facts.title
    is_notice = len(facts.text) <= NOTICE_CHARS
    if headers.get("cf-mitigated", "") == "challenge" or (is_notice and _is_challenge(facts, words, html)):
        return Obstacle("challenge", "the site asks for a sign that a person is there, such as a CAPTCHA")
    if (found := status_obstacle(status, headers)) is not None:
        return found
    if is_short and _is_login(facts, words, asked, url):
        return Obstacle("login", _LOGIN)
    if not is_rendered and (found := _without_scripts(facts)) is not None:
        return found
    if facts.is_for_subscribers or _PAYWALL_WORDS.search(facts.text[-SHORT_TEXT_CHARS:]):
        return Obstacle("paywall", "it seems to be open in part only; the rest is for those who pay", is_partial=True)
    return None


def status_obstacle(status: int, headers: Mapping[str, str]) -> Obstacle | None:
    """Return the obstacle that the status of an answer means; None if it means none."""
    if status < 400:
        return None
    default: tuple[ObstacleKind, str] = (
        ("fault", "the server has a fault; try again later") if status >= 500 else ("refused", "the server refuses it")
    )
    kind, reason = _STATUS.get(status, default)
    wait = headers.get("retry-after", "").strip()
    is_wait = _WAIT.fullmatch(wait) is not None
    return Obstacle(kind, f"{reason} (it says: after {wait}{' s' if wait.isdigit() else ''})" if is_wait else reason)


def _without_scripts(facts: PageFacts) -> Obstacle | None:
    """Return the obstacle of a page that needs scripts, partial if it only may need them; None if it does not."""
    if len(facts.text) >= LITTLE_TEXT_CHARS:
        return None
    words = f"{facts.text} {facts.noscript if facts.scripts else ''}"
    if _SCRIPT_WORDS.search(words) or (facts.scripts and not facts.text):
        return Obstacle("scripts", "it is made by scripts (JavaScript), which plain HTTP does not run")
    if facts.scripts and len(facts.text) < LITTLE_TEXT_CHARS // 3:
        return Obstacle("scripts", "it has little text and scripts (JavaScript) that may bring more", is_partial=True)
    return None


def _is_challenge(facts: PageFacts, words: str, html: str) -> bool:
    if _CHALLENGE_TITLES.search(facts.title) or _CHALLENGE_WORDS.search(words):
        return True
    return len(facts.text) < LITTLE_TEXT_CHARS and not facts.has_password and bool(_CHALLENGE_MARKS.search(html))


def _is_login(facts: PageFacts, words: str, asked: str, url: str) -> bool:
    was_sent_there = _LOGIN_PATH.search(urlsplit(url).path) and not _LOGIN_PATH.search(urlsplit(asked).path)
    says_so = len(facts.text) < 2 * LITTLE_TEXT_CHARS and _LOGIN_WORDS.search(words)
    is_form = facts.has_password and (len(facts.text) < 2 * LITTLE_TEXT_CHARS or _LOGIN_TITLE.search(facts.title))
    return bool(is_form or was_sent_there or says_so)
