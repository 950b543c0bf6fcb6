"""The URL guard: the one way from a written address to the addresses that may be dialled.

The rule: an address that two programs could read in two ways is refused, and so is a host of which any address is not
public. The caller dials what comes out and nothing else, without asking a name server again, and passes each redirect
through here as a new address.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Self, TypeAlias

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns all addresses of a host, for a port."""

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""

MAX_URL_CHARS = 8_000
"""RFC 9110, section 4.1, asks servers to take that much."""
_MAX_ADDRESSES = 256
_MAX_HOST_CHARS = 253
_MAX_SHOWN_SCHEME = 20
"""Characters: a redirect may name any, and its words are no advice of panpan's."""
_DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = compile_late(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_AUTHORITY = compile_late(r"(?:\[(?P<ipv6>[^\]]*)\]|(?P<host>[^:\[\]]*))(?::(?P<port>.*))?", re.DOTALL)
_PORT = compile_late(r"[1-9][0-9]{0,4}")
_LABEL = compile_late(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC_LABEL = compile_late(r"[0-9]+|0x[0-9a-f]*")
_IPV4 = compile_late(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_LOCAL_NAMES = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
)
"""Endings of names that lead into a private network, whatever a name server says: RFC 6761, 6762, 8375, and those that
ICANN keeps out of the public names."""

_LOOPBACK = ("127.0.0.1", "::1")
"""Addresses of localhost, whatever a name server says (RFC 6761, section 6.3)."""

_HOW_TO_OPEN = "panpan fetches only from public hosts and those in the setting web.private_hosts"
"""Names no host to write there: the model reads it, and could have the user open this machine's own addresses."""

_NOT_PUBLIC_V4 = tuple(map(IPv4Network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
)))  # fmt: skip
"""IANA's registry of special-purpose IPv4 addresses, multicast, and the address at which Azure's platform answers."""

_PUBLIC_V6 = IPv6Network("2000::/3")
"""All that IANA has given out as global unicast."""
_NOT_PUBLIC_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")))
"""Networks in there that IANA's registry of special-purpose IPv6 addresses excludes. 2001::/23 holds Teredo and
2002::/16 is 6to4: behind both lies an IPv4 address, as behind NAT64 (64:ff9b::/96), which is not in 2000::/3."""

_CLOSED_PORTS = frozenset({
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
    6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
})  # fmt: skip
"""Ports of services that are no web servers: https://fetch.spec.whatwg.org/#port-blocking"""


@dataclass(frozen=True, slots=True)
class Authority:
    """A host and perhaps a port, as an address names them between the slashes."""

    host: str
    """A name of ASCII letters in lower case without a dot at the end, or an IP address without brackets."""
    address: IPv4Address | IPv6Address | None
    """The host, where it is an IP address."""
    port: int | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port is None else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PlainUrl:
    """An address that can be read in one way only."""

    url: str
    """Address to request: the scheme and the host in lower case, without a default port or a dot at the end."""
    scheme: str
    host: str
    """A name of ASCII letters, or an IP address without brackets."""
    port: int
    address: IPv4Address | IPv6Address | None
    """The host, where it is an IP address."""

    @property
    def origin(self) -> Origin:
        """Scheme, host and port."""
        return self.scheme, self.host, self.port


@dataclass(frozen=True, slots=True)
class PrivateHosts:
    """Hosts and networks that the user has opened, although they are not public. Made by `parse`.

    A name leads into a private network only if it is listed itself or below a listed `*.domain`. A network opens
    addresses that are written as numbers, and no names: a name server of strangers could lead those anywhere.
    """

    names: frozenset[str] = frozenset()
    domains: tuple[str, ...] = ()
    """Each with the dot in front; what ends in one is opened."""
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> Self:
        """Return what `entries` open: `files.lab.example`, `*.lab.example`, `10.2.0.7`, `10.2.0.0/16`, `[fd00::1]`.

        Raises:
            ToolError: One is no host and no network; says which.
        """
        names, domains, networks = set(), [], []
        for entry in entries:
            try:
                networks.append(ip_network(entry.strip("[]")))
                continue
            except ValueError:
                pass
            try:
                authority = plain_authority(entry.removeprefix("*."))
            except ToolError:
                authority = None
            if authority is None or authority.port is not None or authority.address is not None:
                raise ToolError(f"{entry[:80]!r} is not a host or network; write files.lab.example or 10.2.0.0/16")
            if entry.startswith("*."):
                domains.append(f".{authority.host}")
            else:
                names.add(authority.host)
        return cls(frozenset(names), tuple(domains), tuple(networks))

    def opens(self, host: str, address: IPv4Address | IPv6Address | None) -> bool:
        """Return True if the user has opened this host, whose address is given where it is written as one."""
        if address is not None:
            return any(address in network for network in self.networks)
        return host in self.names or host.endswith(self.domains)


NO_PRIVATE_HOSTS = PrivateHosts()


@dataclass(frozen=True, slots=True)
class GuardedUrl:
    """An address that may be asked for, and where."""

    plain: PlainUrl
    addresses: tuple[str, ...]
    """The IP addresses to dial, and no others; all are public."""


async def guard_url(url: str, resolve: Resolve, private: PrivateHosts = NO_PRIVATE_HOSTS) -> GuardedUrl:
    """Return `url`, which anybody may have written, with the IP addresses that may be dialled for it.

    Raises:
        ToolError: It may not be asked for; says why.
    """
    plain = plain_url(url, private)
    own = (plain.origin,) if private.opens(plain.host, plain.address) else ()
    return GuardedUrl(plain, await addresses_to_dial(plain, resolve, own=own))


async def addresses_to_dial(
    plain: PlainUrl, resolve: Resolve, *, own: Collection[Origin] = frozenset()
) -> tuple[str, ...]:
    """Return the IP addresses to dial for `plain`, and no others; `own` is what the user's own settings name.

    Raises:
        ToolError: There are none, or one is not public and not `own`.
    """
    is_own = plain.origin in own
    if plain.address is not None:
        found: Sequence[str] = (str(plain.address),)
    elif is_own and plain.host == "localhost":
        found = _LOOPBACK
    else:
        found = await resolve(plain.host, plain.port)
    if is_own and found:
        return tuple(dict.fromkeys(found))[:_MAX_ADDRESSES]
    return public_addresses(plain.host, found)


def plain_url(url: str, private: PrivateHosts = NO_PRIVATE_HOSTS) -> PlainUrl:
    """Return the parts of `url`.

    Raises:
        ToolError: It is no web address, could be read in more than one way, or names a host or port that is closed, or
            an IP address that is not public.
    """
    plain = read_url(url)
    is_open = private.opens(plain.host, plain.address)
    if plain.address is not None and not is_open:
        public_addresses(plain.host, (str(plain.address),))
    if plain.port in _CLOSED_PORTS:
        raise _refused(f"port {plain.port} belongs to a service that is not a web server; use the port of one")
    if plain.address is None and not is_open and _is_local(plain.host):
        raise _refused(f"{plain.host} is a host in this machine or its network; {_HOW_TO_OPEN}")
    return plain


def read_url(url: str) -> PlainUrl:
    """Return the parts of `url`, which may name any host and port: it says nothing about whether to ask for it.

    Raises:
        ToolError: It is no web address, or could be read in more than one way.
    """
    if len(url) > MAX_URL_CHARS:
        raise _refused(f"it has {len(url):,} characters; shorten it to {MAX_URL_CHARS:,}")
    if not url.isprintable() or " " in url or "\\" in url:
        raise _refused("it holds blanks, backslashes or characters that do not print; write them as %20 and the like")
    found = _URL.fullmatch(url)
    if found is None:
        raise _refused("it is not a complete address; write it like https://example.org/page")
    scheme = found["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise _refused(f"it begins with {scheme[:_MAX_SHOWN_SCHEME]}; only http and https may be asked for")
    authority = plain_authority(found["authority"])
    port = _DEFAULT_PORTS[scheme] if authority.port is None else authority.port
    host = authority.host
    shown = str(Authority(host, authority.address, None if port == _DEFAULT_PORTS[scheme] else port))
    rest = found["rest"] if found["rest"].startswith("/") else f"/{found['rest']}"
    return PlainUrl(f"{scheme}://{shown}{rest}", scheme, host, port, authority.address)


def plain_authority(text: str) -> Authority:
    """Return host and port as they are in an address, `example.org:8080` or `[::1]`.

    It says nothing about whether they may be asked for.

    Raises:
        ToolError: They could be read in more than one way.
    """
    if "@" in text:
        raise _refused("it holds a user name or password; leave them out")
    parts = _AUTHORITY.fullmatch(text)
    if parts is None:
        raise _refused("its host could be read in more than one way; write the name alone, such as example.org")
    port = None if parts["port"] is None else _port(parts["port"])
    if parts["ipv6"] is not None:
        written = _ipv6(parts["ipv6"])
        address = written.ipv4_mapped or written  # lists and rules name the IPv4 address, and apply to both
        return Authority(str(address), address, port)
    host = _host(parts["host"])
    return Authority(host, IPv4Address(host) if _IPV4.fullmatch(host) else None, port)


def public_addresses(
    host: str, found: Sequence[str], *, also: Collection[IPv4Address | IPv6Address] = ()
) -> tuple[str, ...]:
    """Return the addresses of a host, each once; `also` may be dialled although they are not public.

    Raises:
        ToolError: There are none, or one is neither public nor among `also`.
    """
    if not found:
        raise ToolError(f"{host} has no address; check the name")
    if len(found) > _MAX_ADDRESSES:
        raise ToolError(f"{host} has {len(found):,} addresses, which is more than a web server has; check the name")
    addresses: dict[str, None] = {}
    for text in found:
        address = _public(text, also)
        if address is None:
            what = "is" if text == host else f"leads to {text[:80]!r},"
            raise ToolError(f"{host} {what} not a public address; {_HOW_TO_OPEN}")
        addresses[address] = None
    return tuple(addresses)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return True if the address belongs to the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    is_special = address.scope_id is not None or any(address in network for network in _NOT_PUBLIC_V6)
    return address in _PUBLIC_V6 and not is_special


def _public(text: str, also: Collection[IPv4Address | IPv6Address]) -> str | None:
    """Return a resolver's address as it is to be dialled; None if it may not be, or is not in its usual form."""
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) and address.scope_id is None else None
    dialled = mapped or address
    return str(dialled) if is_public(dialled) or dialled in also else None


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > 65_535:
        raise _refused("its port is not a number; write one from 1 to 65535, without zeros in front")
    return int(text)


def _ipv6(text: str) -> IPv6Address:
    if "%" in text:
        raise _refused("its host names an interface of this machine; write the address without %")
    try:
        return IPv6Address(text)
    except ValueError:
        raise _refused("the text in the brackets is no IPv6 address; write one such as [2606:4700::1]") from None


def _host(text: str) -> str:
    """Return the host as a name server or a socket is given it.

    A host whose last label is a number is an IPv4 address or nothing: other programs read `0x7f.1`, `127.1` and
    `017700000001` as addresses (https://url.spec.whatwg.org/#ends-in-a-number-checker).
    """
    if not text.isascii():
        text = _ascii_host(text)
    host = text.lower().removesuffix(".")
    labels = host.split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise _refused("its host is a number that programs read in different ways; write four decimals") from None
    if len(host) > _MAX_HOST_CHARS or not all(map(_LABEL.fullmatch, labels)):
        raise _refused("its host is not a valid name; write one of letters, digits, hyphens and dots")
    if any(label.startswith("xn--") for label in labels):
        _check_encoded(labels)
    return host


def _is_local(host: str) -> bool:
    """True if the name leads into a private network, whatever a name server says."""
    return "." not in host or any(host == name or host.endswith(f".{name}") for name in _LOCAL_NAMES)


def _ascii_host(text: str) -> str:
    """Return a host with other letters as `xn--` labels; one that other programs would first normalise is refused."""
    import idna  # takes 20 ms, and few hosts need it

    try:
        encoded = idna.encode(text, strict=True)
    except (idna.IDNAError, UnicodeError):
        raise _refused("its host has letters that are written for others; write it in its usual letters") from None
    return encoded.decode("ascii")


def _check_encoded(labels: Sequence[str]) -> None:
    import idna

    try:
        for label in labels:
            if label.startswith("xn--"):
                idna.ulabel(label)
    except (idna.IDNAError, UnicodeError):
        raise _refused("its host is an encoded name that cannot be decoded; write it in its usual letters") from None


def _refused(reason: str) -> ToolError:
    return ToolError(f"the address is refused: {reason}")
