"""Where a redirect leads, and what of the request goes there.

The rule: what was meant for one origin goes to no other: no key, no cookie, no body. And what was asked for over TLS is
never asked for without.
"""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urljoin

from panpan.errors import ToolError
from panpan.system.web.url_guard import PlainUrl
from panpan.types.dataclass import dataclass

_REDIRECTS = (301, 302, 303, 307, 308)
_KEEP_METHOD = (307, 308)
_FOR_ANYBODY = frozenset({"accept", "accept-encoding", "accept-language", "if-range", "range", "user-agent"})
"""Headers that tell another origin nothing that was meant for the first one."""
_OF_BODY = ("content-encoding", "content-language", "content-location", "content-type")


class WebHeaders(Mapping[str, str]):
    """Headers by name, whatever its case; those of one name are one, with commas between (RFC 9110, section 5.3).

    Args:
        pairs: As they came.
    """

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for raw_name, raw_value in pairs:
            name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
            self._values[name] = f"{self._values[name]}, {value}" if name in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class WebRequest:
    """What is asked for."""

    method: str
    plain: PlainUrl
    headers: Mapping[str, str]
    """By name in lower case."""
    content: bytes | None = None
    is_own: bool = False
    """Whether the user's own settings name it, so that it may lead into his network."""


def location_of(request: WebRequest, status: int, headers: WebHeaders) -> str | None:
    """Return the address that an answer sends on to, as it wrote it but whole; None where it does not."""
    if status not in _REDIRECTS or "location" not in headers:
        return None
    written = headers["location"].strip(" \t").encode("latin-1").decode("utf-8", "replace")
    try:
        return urljoin(request.plain.url, written.replace(" ", "%20"))
    except ValueError:  # brackets that are no address
        raise ToolError(f"{request.plain.host} redirects to what is no address") from None


def redirected(request: WebRequest, status: int, target: PlainUrl, *, is_own: bool = False) -> WebRequest:
    """Return what is asked for at `target` (RFC 9110, section 15.4), which the user's own settings may name.

    Raises:
        ToolError: It would be asked for without TLS, or a body would go to another origin.
    """
    host = request.plain.host
    if (request.plain.scheme, target.scheme) == ("https", "http"):
        raise ToolError(f"{host} redirects from https to http, to {target.host}; that is not followed")
    is_get = status not in _KEEP_METHOD and (status == 303 or request.method == "POST") and request.method != "HEAD"
    method, content = ("GET", None) if is_get else (request.method, request.content)
    headers = dict(request.headers)
    if is_get:
        headers = {name: value for name, value in headers.items() if name not in _OF_BODY}
    if target.origin != request.plain.origin:
        if content is not None:
            raise ToolError(f"{host} redirects to {target.host}, where what was sent is not meant to go")
        headers = {name: value for name, value in headers.items() if name in _FOR_ANYBODY}
    return WebRequest(method, target, headers, content, is_own)
