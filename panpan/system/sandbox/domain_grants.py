"""Which hosts the user has opened to commands, and where exactly each may be dialled.

The rule: a host is granted as it is written or not at all, and its addresses are public or granted themselves. So a
name server can lead nobody into this machine or its network. Hosts of the user's own setup may be in their network, but
their names lead neither to this machine nor to what only it can reach.
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Self

from panpan.errors import ToolError
from panpan.system.web.proxy_connection import NotReachableError, Route
from panpan.system.web.url_guard import Authority, Resolve, plain_authority, public_addresses
from panpan.types.dataclass import dataclass
from panpan.types.permission import network_flag

WEB_PORTS = (80, 443)
"""What a grant without a port is for."""

SETTING = "sandbox.domains"

_MOST_NAMED = 3
"""Addresses of a name that a refusal tells."""

_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
"""Where localhost leads, whatever a name server says (RFC 6761, section 6.3)."""


class NotGrantedError(NotReachableError):
    """A host may not be reached; says why, and what in the settings would grant it where something would."""


@dataclass(frozen=True, slots=True)
class DomainGrant:
    """One host that may be reached, or all below a domain. Made by `parse`."""

    host: str
    address: IPv4Address | IPv6Address | None
    port: int | None
    """None for `WEB_PORTS`."""
    is_for_subdomains: bool
    """Whether it is for all hosts below `host`, and then not for `host`."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the grant that `text` writes: `pypi.org`, `*.pythonhosted.org`, `example.org:8080`, `[::1]:8000`.

        Raises:
            ToolError: It writes none; says why.
        """
        if not text.isprintable() or any(char in text for char in " /\\?#"):
            raise ToolError("write the host alone, such as pypi.org or *.pythonhosted.org")
        name = text.removeprefix("*.")
        authority = plain_authority(name)
        is_for_subdomains = name != text
        if is_for_subdomains and (authority.address is not None or "." not in authority.host):
            raise ToolError("`*.` stands before a domain of at least two parts, such as *.pythonhosted.org")
        return cls(authority.host, authority.address, authority.port, is_for_subdomains)

    def covers(self, asked: Authority, port: int) -> bool:
        """Return whether the grant is for this host at this port."""
        if not self._is_for_port(port):
            return False
        if self.is_for_subdomains:
            return asked.address is None and asked.host.endswith(f".{self.host}")
        return (asked.host, asked.address) == (self.host, self.address)

    def addresses(self, port: int) -> Sequence[IPv4Address | IPv6Address]:
        """Return which addresses it lets be dialled at this port although they are not public."""
        if not self._is_for_port(port) or self.is_for_subdomains:
            return ()
        if self.address is not None:
            return (self.address,)
        return _LOOPBACK if self.host == "localhost" else ()

    def _is_for_port(self, port: int) -> bool:
        return port in WEB_PORTS if self.port is None else port == self.port


class DomainGrants:
    """All that is granted.

    Args:
        domains: As they stand in the settings.
        own_hosts: Further ones, which may lead into the user's own network.

    Raises:
        ToolError: One cannot be read; says which and why.
    """

    def __init__(self, domains: Sequence[str], own_hosts: Sequence[str] = ()) -> None:
        self.domains = tuple(dict.fromkeys((*domains, *own_hosts)))
        self._grants = [_parsed(text) for text in self.domains]
        self._own = [_parsed(text) for text in own_hosts]
        self.hosts = frozenset(grant.host for grant in self._grants if not grant.is_for_subdomains)

    def covers(self, asked: Authority, port: int) -> bool:
        """Return whether this host may be asked for at this port; its addresses are another matter."""
        return any(grant.covers(asked, port) for grant in self._grants)

    async def route(self, asked: Authority, default_port: int, resolve: Resolve) -> Route:
        """Return where to dial for `asked`.

        Args:
            asked: The host that somebody asked for, with or without a port.
            default_port: What counts where it has none.
            resolve: Finds the addresses of a name; not called for what is not granted.

        Raises:
            NotGrantedError: It is not granted, or leads to where nothing is.
            ToolError: It has no address.
        """
        port = default_port if asked.port is None else asked.port
        grant = _written(asked.host, asked.address, port)
        if not self.covers(asked, port):
            how = f'"{grant}" in {SETTING} would grant it, or {network_flag([grant])}'
            raise NotGrantedError(f"{grant} is not among the granted domains; {how}")
        also = [address for grant in self._grants for address in grant.addresses(port)]
        is_own = any(grant.covers(asked, port) for grant in self._own)
        if asked.address is not None:
            found: Sequence[str] = [str(asked.address)]
        elif asked.host == "localhost":
            found = [str(address) for address in _LOOPBACK]
        else:
            found = await resolve(asked.host, port)
            also += _of_network(found) if is_own else ()
        if not found:
            raise ToolError(f"{asked.host} has no address; look whether the name is right")
        try:
            return Route(asked.host, port, public_addresses(asked.host, found, also=also))
        except ToolError as exc:
            raise NotGrantedError(_not_public(grant, found[:_MOST_NAMED], port)) from exc


def _not_public(grant: str, found: Sequence[str], port: int) -> str:
    """Return why a granted host is not dialled, and what opens it; nobody is led to this machine's own addresses."""
    addresses = [_written(str(address), address, port) for text in found if (address := _address(text)) is not None]
    where = "" if addresses == [grant] else f" leads to {', '.join(addresses) or 'what'}, which"
    is_elsewhere = len(list(_of_network(found))) == len(found)
    flag = f"; add {network_flag(addresses)}" if is_elsewhere and addresses else ""
    return f"{grant}{where} is no public address; {SETTING} has to name that address itself{flag}"


def _of_network(found: Sequence[str]) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the addresses that another machine may have: not this one's own, nor those of its link alone."""
    for text in found:
        if (address := _address(text)) is None:
            continue
        is_here = address.is_loopback or address.is_link_local or address.is_unspecified
        is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
        if not (is_here or is_mapped or address.is_multicast or address.is_reserved):
            yield address


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _written(host: str, address: IPv4Address | IPv6Address | None, port: int) -> str:
    """Return how a grant of a host and port is written."""
    return str(Authority(host, address, None if port in WEB_PORTS else port))


def _parsed(text: str) -> DomainGrant:
    try:
        return DomainGrant.parse(text)
    except ToolError as exc:
        raise ToolError(f"{SETTING} holds {text[:80]!r}, which is no domain: {exc}") from exc
