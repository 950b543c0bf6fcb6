"""What a site's robots.txt says, read as RFC 9309 has it.

The rule: of the lines that match, the longest counts, and where two are as long, the one that allows. Lines that nobody
can read are passed over.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from panpan.types.dataclass import dataclass

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
        """Return whether it speaks of a path, which is in its plain form as the pattern is."""
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
        """Return what a robots.txt says to a program.

        Args:
            text: The file.
            product: What the program calls itself, such as `panpan`; compared without regard to case.
        """
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
        """Return whether a path may be asked for.

        Args:
            path: As it stands in the address, with its query.
        """
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
        """Whether a further program would begin another group."""
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
