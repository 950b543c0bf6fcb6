"""From what an SDK raises before there is an answer to read, to our error tree.

The SDKs differ in their classes and agree in their shape: an error with a `status_code` holds the response; any other
has the network's error, of httpx2, as its cause.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from panpan.errors import ProviderError, RetryableError
from panpan.models.model_choice import is_loopback
from panpan.models.network_variables import ProxySetting, proxy_for
from panpan.models.wire_errors import one_line, provider_error, read_error_body, retry_after_s
from panpan.system.text.redact import Redactor

_REFUSED = re.compile(r"4\d\d ")
"""What a proxy answers that wants a password, or does not serve such addresses."""


def request_error(exc: Exception, *, provider: str, redactor: Redactor, idle_timeout_s: float) -> ProviderError:
    """Return our error for `exc`.

    Args:
        exc: What the SDK or the network raised.
        provider: Name of the provider, for the message.
        redactor: Knows the secrets that must not be shown.
        idle_timeout_s: How long an answer was waited for, for the message.
    """
    import httpx2

    if isinstance(getattr(exc, "status_code", None), int):
        return _status_error(exc, provider, redactor)
    is_bare = isinstance(exc, httpx2.HTTPError) or exc.__cause__ is None  # as while reading the body of an error
    cause = exc if is_bare else exc.__cause__
    detail = one_line(str(cause), redactor) or type(cause).__name__
    if _is_untrusted(cause):
        return ProviderError(
            f"the certificate of {provider} is not trusted; set SSL_CERT_FILE to your certificate authority's file "
            f"if that is right ({detail})",
            provider=provider,
        )
    place = f"{provider}{_address(exc)}"
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError) and (proxy := _proxy(exc)):
        is_final = _REFUSED.match(detail) if isinstance(cause, httpx2.ProxyError) else is_loopback(proxy.url)
        return (ProviderError if is_final else RetryableError)(_of_proxy(proxy, place, detail), provider=provider)
    match cause:
        case httpx2.ConnectTimeout():
            return RetryableError(f"could not connect to {place} in time", provider=provider)
        case httpx2.TimeoutException():
            return RetryableError(f"{provider} did not answer within {idle_timeout_s:g} seconds", provider=provider)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL() | httpx2.LocalProtocolError():
            return ProviderError(f"the request to {provider} cannot be sent: {detail}", provider=provider)
        case httpx2.ConnectError() if _is_here(exc):  # a program that does not run does not start by itself
            return ProviderError(
                f"could not connect to {place}: nothing answers there; is the server running?", provider=provider
            )
        case httpx2.ConnectError():
            return RetryableError(f"could not connect to {place}: {detail}", provider=provider)
        case httpx2.TransportError():
            return RetryableError(f"the connection to {provider} failed: {detail}", provider=provider)
        case _:
            return ProviderError(f"the request to {provider} failed: {detail}", provider=provider)


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request, from the headers of its answer."""
    return headers.get("request-id") or headers.get("x-request-id")


def _status_error(exc: Any, provider: str, redactor: Redactor) -> ProviderError:
    status, headers = exc.status_code, exc.response.headers
    if 300 <= status < 400:
        target = one_line(headers.get("location", "another address"), redactor)
        return ProviderError(
            f"{provider} has moved to {target}; set its base URL to where it is", provider=provider, status=status
        )
    said = read_error_body(exc.body)
    return provider_error(
        replace(
            said,
            message=said.message or str(exc),
            status=status,
            request_id=request_id_of(headers) or said.request_id,
            retry_after_s=retry_after_s(headers),
        ),
        provider=provider,
        redactor=redactor,
    )


def _is_untrusted(exc: BaseException | None) -> bool:
    """Whether a certificate was refused, which no other try heals."""
    import ssl

    while exc is not None:
        if isinstance(exc, ssl.SSLCertVerificationError):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def _is_here(exc: Exception) -> bool:
    """Return whether the request went to this machine."""
    url = getattr(getattr(exc, "request", None), "url", None)
    return url is not None and is_loopback(str(url))


def _proxy(exc: Exception) -> ProxySetting | None:
    """Return the proxy that the request went through."""
    url = getattr(getattr(exc, "request", None), "url", None)
    return None if url is None or is_loopback(str(url)) else proxy_for(str(url))


def _of_proxy(proxy: ProxySetting, place: str, detail: str) -> str:
    """Return what to say of a connection that a proxy did not make."""
    return (
        f"could not connect to {place} through the proxy {proxy.address} that {proxy.place} names: {detail}; correct "
        f"or unset {proxy.place}, or name the server in NO_PROXY"
    )


def _address(exc: Exception) -> str:
    """Return where the request went, so that a wrong address is seen at once; empty where it is not known."""
    import httpx2

    url = getattr(getattr(exc, "request", None), "url", None)
    return f" at {url.scheme}://{url.netloc.decode()}" if isinstance(url, httpx2.URL) else ""
