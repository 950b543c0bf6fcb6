"""Which web addresses a rule such as `WebFetch(domain:docs.python.org)` speaks of.

An allowance takes a host name exactly, or with `*.` all names below it, and only from an address that can be read in
one way; a restriction also holds for every name below it, and for an unclear address that has the name in it. Both read
an address as those do who ask for it.
"""

import re

from panpan.errors import ToolError
from panpan.system.web.url_guard import read_url

_NAME = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\*")


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
    """Return the host of `url` as it is asked for, other letters than ASCII encoded; None where nothing would be."""
    try:
        return read_url(url).host
    except ToolError:
        return None
