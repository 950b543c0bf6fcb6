"""What the robots.txt of sites says, read as RFC 9309 has it; each site is asked for it once."""

import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING

import anyio

from panpan.errors import ToolError
from panpan.system.web.domain_lists import is_same_site
from panpan.system.web.network import GuardedClient
from panpan.system.web.url_guard import Origin, PlainUrl
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse


# Of the lines that match, the longest counts, and where two are as long, the one that allows. Lines that nobody can
# read are passed over.

MAX_BYTES = 512_000
"""Of a robots.txt that are read; RFC 9309, section 2.5, asks for 500 KiB at least."""
MAX_DELAY_S = 30.0
"""Seconds between two requests that a site may want (`Crawl-delay`, which no RFC knows and many sites have). Some want
hours, in which no call would end."""
_PRODUCT = re.compile(r"[A-Za-z_-]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """One line that allows or disallows paths."""

    pattern: str
    """With `*` for anything, and perhaps `$` at its end."""
    allows: bool

    def matches(self, path: str) -> bool:
        """Return True if it speaks of a path, which is in its plain form as the pattern is."""
        is_whole = self.pattern.endswith("$")
        first, *rest = self.pattern.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        if not rest:
            return not is_whole or path == first
        at = len(first)
        for part in rest[:-1]:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return path.endswith(rest[-1]) and len(path) - len(rest[-1]) >= at if is_whole else path.find(rest[-1], at) >= 0


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules that are meant for one program."""

    rules: tuple[RobotsRule, ...] = ()
    delay_s: float = 0.0
    """Seconds that are wanted between two requests, at most `MAX_DELAY_S`."""

    @classmethod
    def read(cls, text: str, product: str) -> "Robots":
        """Return what a robots.txt says to a program, such as `panpan`, whatever the case of its name."""
        own, everybody = _Group(), _Group()
        names_it = False
        for group in _groups(text):
            if product.lower() in group.products:
                own.add(group)
                names_it = True
            elif "*" in group.products:
                everybody.add(group)
        meant = own if names_it else everybody
        return cls(tuple(meant.rules), min(meant.delay_s or 0.0, MAX_DELAY_S))

    def allow(self, path: str) -> bool:
        """Return True if a path may be asked for."""
        path = _plain(path or "/")
        if path == "/robots.txt":
            return True
        matching = [rule for rule in self.rules if rule.matches(path)]
        return max(matching, key=lambda rule: (len(rule.pattern), rule.allows)).allows if matching else True


def product_of(user_agent: str) -> str:
    """Return what a program is called in a robots.txt, by what it tells servers of itself: its first word."""
    found = _PRODUCT.match(user_agent)
    return found[0] if found else user_agent


@dataclass(slots=True)
class _Group:
    products: set[str] = field(default_factory=set)
    rules: list[RobotsRule] = field(default_factory=list)
    delay_s: float | None = None

    @property
    def is_complete(self) -> bool:
        return bool(self.rules) or self.delay_s is not None

    def add(self, other: "_Group") -> None:
        self.rules += other.rules
        self.delay_s = max(filter(None, (self.delay_s, other.delay_s)), default=None)


def _groups(text: str) -> Iterator[_Group]:
    group = _Group()
    for key, value in _lines(text):
        if key == "user-agent":
            if group.is_complete:
                yield group
                group = _Group()
            found = _PRODUCT.match(value)
            group.products.add("*" if value.startswith("*") else found[0].lower() if found else "")
        elif group.products and key in ("allow", "disallow") and value:
            group.rules.append(RobotsRule(_plain(value), key == "allow"))
        elif group.products and key == "disallow":  # an empty one closes nothing, and yet it is a rule
            group.rules.append(RobotsRule("", allows=True))
        elif group.products and key == "crawl-delay" and _SECONDS.fullmatch(value):
            group.delay_s = float(value)
    yield group


def _lines(text: str) -> Sequence[tuple[str, str]]:
    bare = (line.partition("#")[0].partition(":") for line in _LINE_END.split(text.removeprefix("\ufeff")))
    return [(key.strip().lower(), value.strip()) for key, colon, value in bare if colon]


def _plain(path: str) -> str:
    """Return a path as RFC 9309, section 2.2.2, compares it: what needs no encoding without, what needs it with one."""
    encoded = _BEYOND_ASCII.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), path)
    return _ENCODED.sub(_decoded, encoded)


def _decoded(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if _UNRESERVED.fullmatch(char) else found[0].upper()


# What the sites that a session asks have in their robots.txt; each is asked for it once. A site that cannot say what it
# closes closes everything (RFC 9309, section 2.3.1.4), one that has no rules nothing.

KEPT_S = 86_400.0
"""Seconds after which a robots.txt is read again; RFC 9309, section 2.4, allows a day."""
TRY_AGAIN_S = 30.0
"""Seconds after which a site is asked again that could not say; all who waited for it meanwhile have its answer."""
TIMEOUT_S = 10.0
_MAX_SITES = 500
_SETTING = "the user may set `robots = false` under [web]"


@dataclass(slots=True)
class _Site:
    """One origin."""

    robots: Robots | None = None
    """None: it could not say."""
    why: str = ""
    """Why it could not."""
    unreachable: str = ""
    """Why it could not even be asked."""
    good_until: float = float("-inf")
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class _ElsewhereError(Exception):
    """Ends a request that is sent on to another site."""


class SiteRobots:
    """Says which pages are closed to panpan."""

    def __init__(self, client: GuardedClient, user_agent: str) -> None:
        self._client = client
        self._product = product_of(user_agent)
        self._sites: dict[Origin, _Site] = {}

    async def check(self, plain: PlainUrl) -> float:
        """Return the seconds that the site wants between two requests; its rules are asked for once.

        Raises:
            ToolError: The page is closed to programs, the site cannot say, or it cannot be asked at all.
        """
        site = self._site(plain)
        async with site.lock:
            if anyio.current_time() >= site.good_until:
                await self._look(plain, site)
                site.good_until = anyio.current_time() + (TRY_AGAIN_S if site.robots is None else KEPT_S)
        if site.unreachable:
            raise ToolError(site.unreachable)
        if site.robots is None:
            raise ToolError(
                f"robots.txt of {plain.host} cannot be read ({site.why}), which closes the site; {_SETTING}"
            )
        path = plain.url.partition("://")[2].partition("#")[0].partition("/")[2]
        if not site.robots.allow(f"/{path}"):
            raise ToolError(
                f"robots.txt of {plain.host} closes this page to programs ({self._product}); take another source, or "
                f"ask the user: {_SETTING}"
            )
        return site.robots.delay_s

    def _site(self, plain: PlainUrl) -> _Site:
        if plain.origin not in self._sites and len(self._sites) >= _MAX_SITES:
            del self._sites[next(iter(self._sites))]
        return self._sites.setdefault(plain.origin, _Site())

    async def _look(self, plain: PlainUrl, site: _Site) -> None:
        def allow(hop: PlainUrl) -> None:
            if not is_same_site(plain, hop):
                raise _ElsewhereError

        site.robots, site.unreachable = None, ""
        address = "/".join([*plain.url.split("/")[:3], "robots.txt"])
        try:
            async with self._client.stream("GET", address, timeout_s=TIMEOUT_S, max_redirects=5, allow=allow) as answer:
                if answer.status >= 500 or answer.status == 429:
                    site.why = f"status {answer.status}"
                else:
                    text = await _text_of(answer) if answer.status < 300 else ""
                    site.robots = Robots.read(text, self._product)
        except _ElsewhereError:  # it may be taken for one that is not there: RFC 9309, section 2.3.1.2
            site.robots = Robots()
        except ToolError as error:
            site.unreachable = str(error)


async def _text_of(answer: "GuardedResponse") -> str:
    body = bytearray()
    with anyio.move_on_after(TIMEOUT_S):
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > MAX_BYTES:
                    break
    return bytes(body[:MAX_BYTES]).decode("utf-8", "replace")
