"""Which web addresses a rule such as `WebFetch(domain:docs.python.org)` speaks of.

An allowance takes a host name exactly, or with `*.` all names below it, and only from an address that can be read in
one way; a restriction also holds for every name below it, and for an unclear address that has the name in it.
"""

import re
from urllib.parse import urlsplit

_NAME = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\*")
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9._-]+(?::\d{1,5})?(?:[/?#][^\s\\\x00-\x1f\x7f]*)?", re.ASCII)


class DomainPattern:
    """The host that a rule names.

    Args:
        text: What stands in the parentheses of the rule.

    Raises:
        ValueError: The text is no host name; says why.
    """

    def __init__(self, text: str) -> None:
        prefix, _, name = text.strip().partition(":")
        self._name = name.strip().lower().rstrip(".")
        if prefix != "domain" or not _NAME.fullmatch(self._name):
            raise ValueError("is not a host: write domain:example.org or domain:*.example.org")

    def allows(self, url: str) -> bool:
        """Return whether an allowance for this host opens `url`."""
        host = plain_host(url)
        if host is None:
            return False
        if self._name.startswith("*"):
            return host.endswith(self._name[1:])
        return host == self._name

    def restricts(self, url: str) -> bool:
        """Return whether a restriction of this host holds for `url`."""
        bare = self._name.removeprefix("*").removeprefix(".")
        host = plain_host(url)
        if host is None:
            return bare in url.lower()
        return not bare or host == bare or host.endswith(f".{bare}")


def plain_host(url: str) -> str | None:
    """Return the host of `url` in lower case, or None where the address could be read in more than one way."""
    if not _PLAIN_URL.fullmatch(url):
        return None
    return (urlsplit(url).hostname or "").rstrip(".") or None
