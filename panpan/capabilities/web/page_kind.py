"""Whether what came is the page that was asked for, or something that stands in its place.

The rule: what only looks like an obstacle on a page with much text is none; models can read that themselves.
"""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from panpan.capabilities.web.page_tree import PageFacts
from panpan.types.dataclass import dataclass

ObstacleKind: TypeAlias = Literal[
    "challenge", "login", "paywall", "scripts", "forbidden", "missing", "too many", "withheld", "fault", "refused"
]

LITTLE_TEXT_CHARS = 300
"""Visible text of a page that may be but the frame of one that scripts make."""
SHORT_TEXT_CHARS = 2_000
"""Visible text of a page that may be about nothing but its obstacle."""

NOTICE_CHARS = 1_000
"""Visible text of a page that wants a sign of a person, with all that it explains; what is longer speaks of such."""

_CHALLENGE_TITLES = re.compile(
    r"just a moment|attention required|ddos-guard|are you a robot|bot verification|security check|"
    r"making sure you.re not a bot|human verification|pardon our interruption|client challenge",
    re.IGNORECASE,
)
_CHALLENGE_MARKS = re.compile(
    r"_cf_chl_opt|cf-turnstile|challenge-platform|captcha-delivery\.com|px-captcha|_incapsula_resource|"
    r"g-recaptcha|h-captcha|hcaptcha\.com|recaptcha/api|awswafintegration|geo\.captcha|anubis_challenge",
    re.IGNORECASE,
)
"""What Cloudflare, DataDome, HUMAN, Imperva, Google, hCaptcha, AWS and Anubis put into such pages."""
_CHALLENGE_WORDS = re.compile(
    r"(?:verify|confirm|prove|check)\w*\s+(?:that\s+)?you\s*(?:are|.re)\s+(?:a\s+|not\s+a\s+)?(?:human|robot|bot)|"
    r"not a robot|unusual traffic|checking your browser|complete the captcha|solve the captcha|"
    r"enter the characters you see|人机验证|滑动验证|请完成验证|ロボットではありません",
    re.IGNORECASE,
)
_SCRIPT_WORDS = re.compile(
    r"(?:enable|turn on|activate|allow|requires?|needs?)\s+(?:your\s+browser'?s?\s+)?java\s?script|"
    r"java\s?script\s+(?:is|to be|must be|has to be|seems to be|appears to be)?\s*"
    r"(?:disabled|required|enabled|not enabled|not available|turned off)|without java\s?script|"
    r"javascript\s*を有効|启用\s*javascript|開啟\s*javascript|javascript\s*aktivieren|activer\s+(?:le\s+)?javascript",
    re.IGNORECASE,
)
_LOGIN_WORDS = re.compile(
    r"(?:sign|log)[\s-]?in\s+(?:to\s+(?:continue|view|access|see|read|your)|with\s+your|required)|"
    r"(?:please|must|need to|have to)\s+(?:be\s+)?(?:sign|log)(?:ged)?[\s-]?(?:ed\s+)?in\b|"
    r"请先?登录|ログインしてください",
    re.IGNORECASE,
)
_LOGIN_TITLE = re.compile(
    r"\b(?:log|sign)[\s-]?(?:in|on)\b|\bauthenticat|anmelden|connexion|登录|ログイン", re.IGNORECASE
)
_LOGIN_PATH = re.compile(
    r"(?:^|[/._-])(?:log[_-]?in|sign[_-]?in|signin|sso|saml|oauth2?|authenticate)(?:$|[/._?-])", re.IGNORECASE
)
_PAYWALL_WORDS = re.compile(
    r"subscribe (?:now )?to (?:continue|read|keep)|to (?:continue|keep) reading,? (?:please )?(?:subscribe|sign)|"
    r"(?:only|exclusively) (?:available )?(?:for|to) subscribers|already a subscriber|"
    r"purchase (?:this )?(?:article|pdf|access)|"
    r"buy (?:this )?article|access through your institution|get full access to this article",
    re.IGNORECASE,
)
_WAIT = re.compile(r"[0-9]{1,9}|[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT")
"""Seconds or a date (RFC 9110, section 10.2.3); other words of a server are not panpan's to tell."""
_LOGIN = "it is shown only to those who log in; the user can, for the browser, with `panpan web login ADDRESS`"
_STATUS: Mapping[int, tuple[ObstacleKind, str]] = {
    401: ("login", _LOGIN),
    402: ("paywall", "it is to be paid for"),
    403: ("forbidden", "the server does not give it to panpan"),
    404: ("missing", "there is no such page"),
    407: ("login", _LOGIN),
    410: ("missing", "it was there and is no more"),
    429: ("too many", "the server wants fewer requests; wait before you ask this host again"),
    451: ("withheld", "it is withheld for legal reasons"),
}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why what came is not, or not all of, what was asked for."""

    kind: ObstacleKind
    reason: str
    """In words for the model."""
    is_partial: bool = False
    """Whether what came is worth reading all the same, such as an abstract."""

    @property
    def may_yield_to_a_browser(self) -> bool:
        """Whether a browser may see the page itself: it runs scripts, and may have a log-in."""
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
    """Return what stands between the reader and the page; None where nothing is seen to.

    Args:
        status: Of the answer.
        headers: Of the answer.
        facts: What the document shows.
        html: The document.
        asked: The address that was asked for.
        url: The address where the answer came from.
        is_rendered: Whether its scripts have run.
    """
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
    """Return what the status of an answer says against it; None where it says nothing."""
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
    """Return that scripts make the page; only perhaps, where it is short and has some, and does not say so."""
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
