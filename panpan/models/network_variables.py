"""Environment variables for proxies and certificates, and errors that name the wrong one.

httpx reads the variables itself, as curl does, but its errors do not name them. The rule: a message names the variable
and shows no password.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from panpan.errors import ConfigError
from panpan.models.wire_errors import one_line
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_KINDS = ("http", "https", "all")
"""Schemes that a proxy can be for; the first two win over the last."""

_OF_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_OF_CERTIFICATES = ("ssl_cert_file", "ssl_cert_dir")

_USER_AND_PASSWORD = compile_late(r"//.*@", re.DOTALL)  # even if a password has a slash, which is not allowed


@dataclass(frozen=True, slots=True)
class ProxySetting:
    """A proxy, and the place of its setting."""

    place: str
    """The variable, or words for the settings of the system."""
    address: str
    """Its address as it was written, without user and password."""
    url: str = field(repr=False)
    """Its whole address."""


@contextmanager
def blaming_variables() -> Iterator[None]:
    """Name the wrong variable if a client cannot be opened because of it.

    Most problems are found before, since an SDK's client that fails in its constructor prints warnings.

    Raises:
        ConfigError: A variable names a proxy or certificates that cannot be used.
    """
    if fault := variables_fault():
        raise fault
    try:
        yield
    except Exception as exc:  # either an ssl error, which is an OSError, or a bad address
        suspects = " or ".join(_variables_of(_OF_CERTIFICATES if isinstance(exc, OSError) else _OF_PROXIES))
        if not suspects:
            raise
        problem = one_line(str(exc))
        raise ConfigError(f"{suspects} cannot be used ({problem}); correct or unset it") from exc


def network_variables() -> list[str]:
    """Return the names of those variables for proxies and certificates that are set."""
    return _variables_of((*_OF_PROXIES, *_OF_CERTIFICATES))


def variables_fault() -> ConfigError | None:
    """Return an error about a wrong variable, as far as it shows without a request; the text has no password."""
    return _wrong_proxy() or _wrong_certificates()


def proxy_for(url: str) -> ProxySetting | None:
    """Return the proxy for a request; None if it goes straight to its address."""
    parts = urlsplit(url)
    settings = dict(_proxies())
    return None if _is_exempt(parts.hostname or "") else settings.get(parts.scheme) or settings.get("all")


def has_proxies() -> bool:
    """Return True if any requests go through a proxy."""
    return any(True for _ in _proxies())


def _proxies() -> Iterator[tuple[str, ProxySetting]]:
    """Yield each scheme that has a proxy, with the proxy."""
    from urllib.request import getproxies  # knows the settings of macOS, too

    proxies = getproxies()
    if "*" in map(str.strip, proxies.get("no", "").split(",")):
        return
    for kind in _KINDS:
        if address := proxies.get(kind):
            place = max(_variables_of([f"{kind}_proxy"]), default="the system's settings")  # lower-case names win
            url = address if "://" in address else f"http://{address}"
            yield kind, ProxySetting(place, _shown(address), url)


def _variables_of(kinds: Iterable[str]) -> list[str]:
    return [name for kind in kinds for name, value in os.environ.items() if value and name.lower() == kind]


def _is_exempt(host: str) -> bool:
    """Return True if NO_PROXY names the host itself, a domain above it, or its network."""
    from urllib.request import getproxies

    entries = [entry.strip().lower() for entry in getproxies().get("no", "").split(",")]
    return any(entry and _covers(entry.strip("[]"), host) for entry in entries)


def _covers(entry: str, host: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        domain = entry.partition("://")[2] or entry
        return f".{host}".endswith("." + domain.removeprefix("*").removeprefix("."))


def _wrong_proxy() -> ConfigError | None:
    import httpx2

    for _, setting in _proxies():
        try:
            scheme = httpx2.Proxy(setting.url).url.scheme
            is_usable = bool(urlsplit(setting.url).hostname) and urlsplit(setting.url).port != 0
        except (ValueError, httpx2.InvalidURL):
            is_usable = False
        if not is_usable:
            return ConfigError(
                f"{setting.place} names an unusable proxy: {setting.address}; write it as http://HOST:PORT, or unset it"
            )
        if scheme.startswith("socks") and not _has_socks():
            return ConfigError(
                f"{setting.place} names a SOCKS proxy ({setting.address}), for which the package socksio is missing; "
                "install it beside panpan, name an HTTP proxy, or unset it"
            )
    return None


def _wrong_certificates() -> ConfigError | None:
    file = os.environ.get("SSL_CERT_FILE")
    if not file:
        return None
    path = Path(file)
    try:
        if not path.is_file() and not path.is_dir() and path.exists():
            return None  # a pipe can be read only once
        reason = None if b"-----BEGIN " in path.read_bytes() else "it holds no certificates"
    except OSError as exc:
        reason = exc.strerror
    if reason is None:
        return None
    file = one_line(file)
    return ConfigError(f"SSL_CERT_FILE names {file}, which cannot be used: {reason}; correct or unset it")


def _has_socks() -> bool:
    from importlib.util import find_spec

    return find_spec("socksio") is not None


def _shown(address: str) -> str:
    return one_line(_USER_AND_PASSWORD.sub("//", address if "//" in address else f"//{address}")).removeprefix("//")
