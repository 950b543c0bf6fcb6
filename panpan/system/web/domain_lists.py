"""Hosts that pages are taken from: those of the user's lists, and those of one site."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from anyio.abc import ByteStream

from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import PlainUrl, plain_authority
from panpan.types.dataclass import dataclass

# A name covers itself and all names below it. Blocking a host beats allowing it.


@dataclass(frozen=True, slots=True)
class DomainLists:
    """Hosts that are allowed, and hosts that are blocked. Made by `read`."""

    allowed: tuple[str, ...] = ()
    """The only hosts that may be used; empty allows all."""
    blocked: tuple[str, ...] = ()

    @classmethod
    def read(cls, allowed: Sequence[str], blocked: Sequence[str]) -> "DomainLists":
        """Return the lists that these texts write, such as `arxiv.org` or `*.arxiv.org`, which is the same.

        Raises:
            ToolError: One is no host; says which and why.
        """
        return cls(_hosts(allowed), _hosts(blocked))

    def refusal(self, host: str) -> str | None:
        """Return the reason against a host, such as "x.org is blocked"; None if pages may be taken from it."""
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
        raise ToolError(f"{text[:80]!r} is not a host such as arxiv.org: {exc}") from exc
    if authority.port is not None:
        raise ToolError(f"{text[:80]!r} has a port; write the host alone, such as arxiv.org")
    return authority.host


# A closed host has no address, and a closed address is never dialled, whatever leads to it.


def without_closed_hosts(network: WebNetwork, closed_by: Callable[[str], str | None]) -> WebNetwork:
    """Return the outside without some hosts.

    Args:
        network: All of it.
        closed_by: Returns what closes a host or an address, in words; None if nothing does.
    """

    def require_open(host: str) -> None:
        if (why := closed_by(host)) is not None:
            raise ToolError(f"{host} is closed by {why}")

    async def resolve(host: str, port: int) -> Sequence[str]:
        require_open(host)
        return await network.resolve(host, port)

    async def dial(address: str, port: int) -> ByteStream:
        require_open(address)
        return await network.dial(address, port)

    proxy = None if network.proxy is None else replace(network.proxy, require_open=require_open)
    return replace(network, resolve=resolve, dial=dial, proxy=proxy)


# Allowing a host allows no other, whatever it redirects to.

_USUAL_PORTS = {"http": 80, "https": 443}


def is_same_site(allowed: PlainUrl, asked: PlainUrl) -> bool:
    """Return True if `asked` is of the site of `allowed`: the same name and port, or both on the usual ones."""
    is_same_port = allowed.port == asked.port or (_is_usual(allowed) and _is_usual(asked))
    return is_same_port and site_of(allowed.host) == site_of(asked.host)


def _is_usual(plain: PlainUrl) -> bool:
    return plain.port == _USUAL_PORTS[plain.scheme]


def site_of(host: str) -> str:
    """Return the host itself without `www.`.

    Not the domain above it: which of a host's domains are one owner's, `example.co.uk` but not `co.uk`, no name tells.
    """
    bare = host.removeprefix("www.")
    return bare if "." in bare else host
