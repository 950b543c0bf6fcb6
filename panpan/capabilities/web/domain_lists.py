"""Of which hosts pages and results are taken.

The rule: a name stands for itself and for all below it, and what is blocked is blocked whatever is allowed.
"""

from collections.abc import Sequence

from panpan.errors import ToolError
from panpan.system.web.url_guard import plain_authority
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DomainLists:
    """Hosts that are allowed, and hosts that are blocked. Made by `read`."""

    allowed: tuple[str, ...] = ()
    """Of which alone something is taken; none: of all."""
    blocked: tuple[str, ...] = ()

    @classmethod
    def read(cls, allowed: Sequence[str], blocked: Sequence[str]) -> "DomainLists":
        """Return the lists that these texts write, such as `arxiv.org` or `*.arxiv.org`, which is the same.

        Raises:
            ToolError: One is no host; says which and why.
        """
        return cls(_hosts(allowed), _hosts(blocked))

    def refusal(self, host: str) -> str | None:
        """Return why nothing is taken of a host, such as "x.org is blocked"; None where it is."""
        if _covering(self.blocked, host) is not None:
            return f"{host} is blocked"
        if self.allowed and _covering(self.allowed, host) is None:
            return f"{host} is not among the allowed hosts {', '.join(self.allowed)}"
        return None


def _covering(hosts: Sequence[str], host: str) -> str | None:
    return next((name for name in hosts if host == name or host.endswith(f".{name}")), None)


def _hosts(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_host, texts)))


def _host(text: str) -> str:
    try:
        authority = plain_authority(text.strip().removeprefix("*."))
    except ToolError as exc:
        raise ToolError(f"{text[:80]!r} is no host such as arxiv.org: {exc}") from exc
    if authority.port is not None:
        raise ToolError(f"{text[:80]!r} has a port; write the host alone, such as arxiv.org")
    return authority.host
