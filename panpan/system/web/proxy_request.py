"""What a request to the proxy asks for, and what is sent on of it.

The rule: a request names its host once. One that two programs could read in two ways is refused, not mended.
"""

import re

import h11

from panpan.errors import ToolError
from panpan.system.web.url_guard import Authority, plain_authority
from panpan.types.dataclass import dataclass

HTTP_PORT = 80

_TARGET = re.compile(rb"http://(?P<authority>[^/?#]*)(?P<rest>[^#]*)", re.IGNORECASE)
_VERSIONS = (b"1.0", b"1.1")

_FOR_PROXY = frozenset({
    b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"proxy-authenticate", b"te", b"upgrade",
})  # fmt: skip
"""Headers that are for the proxy and not for the server (RFC 9110, section 7.6.1)."""
_FRAMING = (b"content-length", b"transfer-encoding")

RawHeaders = list[tuple[bytes, bytes]]


class BadRequestError(ToolError):
    """The proxy does not take such a request, whatever its host; says why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for."""

    authority: Authority
    forwarded: h11.Request | None
    """What to send to the server; None where the client wants a tunnel to it."""


def asked_for(request: h11.Request) -> Asked:
    """Return what `request` asks for.

    Raises:
        BadRequestError: It can be read in more than one way, or is nothing for a proxy.
    """
    if request.http_version not in _VERSIONS:
        raise BadRequestError("the proxy speaks HTTP/1.1")
    if len([name for name, _ in request.headers if name in _FRAMING]) > 1:
        raise BadRequestError("the request tells its length twice")
    if request.method == b"CONNECT":
        return _tunnel(request)
    target = _TARGET.fullmatch(request.target)
    if target is None:
        raise BadRequestError("ask the proxy for http://HOST/PATH, or with CONNECT for HOST:PORT")
    authority = _authority(target["authority"])
    for name, value in request.headers:
        if name == b"host" and _place(_authority(value)) != _place(authority):
            raise BadRequestError("the header Host names another host than the request")
    headers = [(b"Host", str(authority).encode("ascii")), *passed_on(request), (b"Connection", b"close")]
    path = target["rest"] if target["rest"].startswith(b"/") else b"/" + target["rest"]
    return Asked(authority, h11.Request(method=request.method, target=path, headers=headers))


def passed_on(event: h11.Request | h11.InformationalResponse | h11.Response) -> RawHeaders:
    """Return the headers that go from one side to the other, as they were written; without `Host`."""
    values = [value.lower().split(b",") for name, value in event.headers if name == b"connection"]
    named = {word.strip() for words in values for word in words}
    dropped = (_FOR_PROXY | named | {b"host"}).difference(_FRAMING)
    return [(name, value) for name, value in event.headers.raw_items() if name.lower() not in dropped]


def _tunnel(request: h11.Request) -> Asked:
    authority = _authority(request.target)
    if authority.port is None:
        raise BadRequestError("CONNECT names no port")
    if any(name in _FRAMING for name, _ in request.headers):
        raise BadRequestError("CONNECT has no body")
    for name, value in request.headers:
        if name == b"host" and _authority(value).host != authority.host:
            raise BadRequestError("the header Host names another host than CONNECT")
    return Asked(authority, None)


def _authority(text: bytes) -> Authority:
    try:
        return plain_authority(text.decode("ascii"))
    except UnicodeDecodeError:
        raise BadRequestError("the host holds bytes that are no ASCII characters") from None
    except ToolError as exc:
        raise BadRequestError(str(exc)) from exc


def _place(authority: Authority) -> tuple[str, int]:
    return authority.host, HTTP_PORT if authority.port is None else authority.port
