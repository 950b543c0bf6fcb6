"""Clients of the SDKs: the import of the part that sends requests, its setup, and the mapping of its errors."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from panpan.errors import AuthenticationError, ProviderError, RetryableError
from panpan.models.model_choice import is_loopback
from panpan.models.network_variables import ProxySetting, blaming_variables, has_proxies, proxy_for
from panpan.models.wire_errors import one_line, provider_error, read_error_body, retry_after_s
from panpan.system.text.redact import Redactor
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from ssl import SSLContext


# Most of an SDK is a class for each kind of request and answer, which panpan neither builds nor reads. So its client is
# loaded without them, under another name (`anthropic` as `_panpan_anthropic`), with placeholders for the two folders
# that contain those classes. Another import of the SDK in the same process gets the whole package. If anything is
# unexpected, while loading or when the errors are tried, panpan falls back to the ordinary import.

log = logging.getLogger(__name__)

Sdk: TypeAlias = Literal["anthropic", "openai"]
"""Name of an SDK's package."""

_PREFIX = "_panpan_"
_LEFT_OUT = ("types", "resources")
"""Subpackages of an SDK that get placeholders: the classes of requests and answers, and the methods for each API."""

_TRIED_STATUSES = (400, 401, 403, 404, 413, 429, 500, 529)


@dataclass(frozen=True, slots=True)
class SdkClasses:
    """The classes of an SDK that panpan uses."""

    client_type: Any
    """The asynchronous client; only its constructor, `post`, `get` and `close` may be used."""
    network_type: Any
    """The network client that it creates for itself if it gets none."""
    error_type: type[Exception]
    """The base class of its errors."""
    is_lean: bool
    """True if the rest of the SDK was left out."""


def load_sdk(sdk: Sdk, *, client_name: str, error_name: str) -> SdkClasses:
    """Import the necessary parts of an SDK. Safe to call from any thread, since the import system does the locking.

    Raises:
        ImportError: It is not installed.
    """
    is_logging = bool(os.environ.get(f"{sdk.upper()}_LOG"))  # makes the whole SDK log, which its `__init__` sets up
    if sdk not in sys.modules and not is_logging:
        try:
            return _lean(sdk, client_name, error_name)
        except Exception:  # another version of the SDK may be built differently
            log.debug("the import of %s cannot be shortened", sdk, exc_info=True)
            _forget(sdk)
    package = import_module(sdk)
    return SdkClasses(
        getattr(package, client_name), package.DefaultAsyncHttpxClient, getattr(package, error_name), is_lean=False
    )


def _lean(sdk: Sdk, client_name: str, error_name: str) -> SdkClasses:
    """Load the client's module under panpan's name for it, and try its errors."""
    if not any(isinstance(finder, _LeanFinder) and finder.sdk == sdk for finder in sys.meta_path):
        sys.meta_path.insert(0, _LeanFinder(sdk))
    client_type = getattr(import_module(f"{_PREFIX}{sdk}._client"), client_name)
    network_type = import_module(f"{_PREFIX}{sdk}._base_client").DefaultAsyncHttpxClient
    errors = import_module(f"{_PREFIX}{sdk}._exceptions")
    classes = SdkClasses(client_type, network_type, getattr(errors, error_name), is_lean=True)
    _try_errors(classes)
    return classes


def _forget(sdk: Sdk) -> None:
    """Remove the modules and the finder of a failed attempt."""
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not (isinstance(finder, _LeanFinder) and finder.sdk == sdk)
    ]
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{_PREFIX}{sdk}.")]:
        del sys.modules[name]


def _try_errors(classes: SdkClasses) -> None:
    """Create an error of each usual status, since a wrong placeholder would otherwise show up too late.

    Raises:
        Exception: The SDK does not create errors as expected.
    """
    import httpx2

    make = classes.client_type._make_status_error
    request = httpx2.Request("POST", "http://localhost/")
    body = {"type": "error", "error": {"type": "some_error", "message": "said", "details": {"error_code": "some_code"}}}
    for status in _TRIED_STATUSES:
        response = httpx2.Response(status, request=request, json=body)
        error: Any = make(None, "said", body=body, response=response)
        is_as_expected = error.status_code == status and error.response is response and error.body is not None
        if not (is_as_expected and isinstance(error, classes.error_type)):
            raise TypeError(f"the error for status {status} is {error!r}")


class _LeanFinder(MetaPathFinder, Loader):
    """Finder of the modules of an SDK under panpan's name: its own files, or placeholders for those left out.

    It stays in place, because an SDK also imports inside its functions.
    """

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self._name = f"{_PREFIX}{sdk}"
        self._left_out = tuple(f"{self._name}.{folder}" for folder in _LEFT_OUT)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self._name):
            return None
        if fullname == self._name:
            return self._package_spec()
        if f"{fullname}.".startswith(tuple(f"{folder}." for folder in self._left_out)):
            return ModuleSpec(fullname, self, is_package=True)
        return None  # the usual finder finds the SDK's files by their path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Placeholder(spec.name, self._name)

    def exec_module(self, module: ModuleType) -> None:
        pass

    def _package_spec(self) -> ModuleSpec | None:
        """Return a package with the SDK's files that does not run its `__init__`, which imports them all."""
        installed = find_spec(self.sdk)
        if installed is None:
            return None
        spec = ModuleSpec(self._name, None, is_package=True)
        spec.submodule_search_locations = installed.submodule_search_locations
        return spec


class _Placeholder(ModuleType):
    """Placeholder for a module that is left out: any name in it is an empty class.

    The SDKs define their most special errors (such as one for a file that has expired) in the folder of types. A
    placeholder for such an error is a plain status error of the SDK, so that it can be raised and caught.
    """

    def __init__(self, name: str, package: str) -> None:
        super().__init__(name)
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        bases: tuple[type, ...] = ()
        if name.endswith("Error"):
            bases = (sys.modules[f"{self._package}._exceptions"].APIStatusError,)
        placeholder = type(name, bases, {"__module__": self.__name__})
        setattr(self, name, placeholder)
        return placeholder


_PLATFORMS = {"linux": "Linux", "darwin": "MacOS"}
"""The SDKs' names for platforms; to find one itself, an SDK runs `uname -p` before the first request."""

NO_KEY = "none"
"""Key to send if none is set; local servers ignore it, and an empty one would not be a valid header."""


class PostingClient(Protocol):
    """The methods of an SDK's client that panpan uses."""

    async def post(self, path: str, *, cast_to: Any, content: bytes, options: Any, stream: bool) -> Any:
        """Send a request and return its answer as a `cast_to`."""
        ...

    async def get(self, path: str, *, cast_to: Any, options: Any, stream: bool) -> Any:
        """Send a GET for a path and return its answer as a `cast_to`."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


@dataclass(frozen=True, slots=True)
class SdkClient:
    """An SDK's client, and the base class of its errors."""

    client: PostingClient
    error_type: type[Exception]


def open_anthropic(*, api_key: str, base_url: str | None, headers: Mapping[str, str]) -> SdkClient:
    """Return a client for the Messages API at `base_url`; None for Anthropic's own address.

    Raises:
        AuthenticationError: The key has characters that no key can have.
        ConfigError: A variable names a proxy or certificates that cannot be used.
    """
    _check(api_key)
    address = base_url or "https://api.anthropic.com"
    sdk, network = _loaded("anthropic", "AsyncAnthropic", "AnthropicError", address)
    is_token = headers.get("authorization") == f"Bearer {api_key}"  # the SDK sends it as a bearer token, not as a key
    client = sdk.client_type(
        api_key=api_key or NO_KEY,
        base_url=address,
        max_retries=0,
        open_telemetry=False,
        default_headers={**_headers_of_other_vendors("" if is_token else api_key or NO_KEY, base_url), **headers},
        http_client=network,
    )
    return _bounded(client, sdk.error_type)


def open_openai(*, api_key: str, base_url: str | None, headers: Mapping[str, str]) -> SdkClient:
    """Return a client for the chat completions API at `base_url`; None for OpenAI's own address.

    Raises:
        AuthenticationError: The key has characters that no key can have.
        ConfigError: A variable names a proxy or certificates that cannot be used.
    """
    _check(api_key)
    address = base_url or "https://api.openai.com/v1"
    sdk, network = _loaded("openai", "AsyncOpenAI", "OpenAIError", address)
    client = sdk.client_type(
        api_key=api_key or NO_KEY,
        base_url=address,
        max_retries=0,
        default_headers=dict(headers),
        http_client=network,
    )
    if not _is_host_of(base_url, "openai.com"):
        client.organization = client.project = None  # ids of an OpenAI account, taken from the environment
    return _bounded(client, sdk.error_type)


def _loaded(sdk: Sdk, client_name: str, error_name: str, address: str) -> tuple[SdkClasses, Any]:
    """Return an SDK's classes, and the network client that it would create for `address`.

    A thread reads the certificates during the import, without holding the interpreter's lock. It reads them once; the
    SDK would read them again for each proxy.

    Raises:
        ConfigError: A variable names a proxy or certificates that cannot be used.
    """
    import httpcore2  # noqa: F401  (before a second thread would import it)
    import httpx2

    with ThreadPoolExecutor(1, "certificates") as reader:
        trust = reader.submit(_trusting_nobody if urlsplit(address).scheme == "http" else httpx2.create_ssl_context)
        classes = load_sdk(sdk, client_name=client_name, error_name=error_name)
        with blaming_variables():
            return classes, classes.network_type(verify=trust.result(), mounts=_past_proxies(address))


def _trusting_nobody() -> "SSLContext":
    """Return an empty context for plain HTTP, which encrypts nothing, since redirects are not followed."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _past_proxies(address: str) -> dict[str, None]:
    """Return the mounts that send requests to this machine past the proxies.

    No proxy reaches a server that listens only here, and few users who set a proxy think of NO_PROXY.
    """
    if not is_loopback(address) or not has_proxies():
        return {}
    host = urlsplit(address).hostname or ""
    return {f"all://[{host}]" if ":" in host else f"all://{host}": None}


def _bounded(client: Any, error_type: type[Exception]) -> SdkClient:
    """Return the client with limits on the bodies of errors, with joined chunks, and with the name of the platform."""
    from panpan.models.error_body import bound_error_bodies  # the network library is loaded by now
    from panpan.models.joined_chunks import join_chunks

    bound_error_bodies(client._client)
    join_chunks(client._client)
    if sys.platform in _PLATFORMS:
        client._platform = _PLATFORMS[sys.platform]
    return SdkClient(client, error_type)


def _check(api_key: str) -> None:
    """Refuse a key that no header can hold; the error of the SDKs would show it."""
    if not (api_key.isascii() and api_key.isprintable()) or api_key != api_key.strip():
        raise AuthenticationError("the API key holds blanks, line ends or characters that no key has; copy it again")


def _headers_of_other_vendors(api_key: str, base_url: str | None) -> dict[str, str]:
    """Return the headers for servers that copy the Messages API: its stable version, and the key in its own header."""
    if _is_host_of(base_url, "anthropic.com"):
        return {}
    return {"anthropic-version": "2023-06-01"} | ({"x-api-key": api_key} if api_key else {})


def _is_host_of(base_url: str | None, domain: str) -> bool:
    host = (urlsplit(base_url).hostname or "") if base_url else domain
    return host == domain or host.endswith(f".{domain}")


_REFUSED = compile_late(r"4\d\d ")
"""Answer of a proxy that needs a password, or does not serve such addresses."""


def request_error(exc: Exception, *, provider: str, redactor: Redactor, idle_timeout_s: float) -> ProviderError:
    """Return our error for one of the SDK or the network."""
    import httpx2

    if isinstance(getattr(exc, "status_code", None), int):
        return _status_error(exc, provider, redactor)
    is_bare = isinstance(exc, httpx2.HTTPError) or exc.__cause__ is None  # such as an error while reading an error body
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
        case httpx2.ConnectError() if _is_here(exc):  # no retry: a local server will not start by itself
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
    """Return True if a certificate was refused; another try cannot help."""
    import ssl

    while exc is not None:
        if isinstance(exc, ssl.SSLCertVerificationError):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def _url_of(exc: Exception) -> Any:
    """Return the address of the request; None if it is not known."""
    return getattr(getattr(exc, "request", None), "url", None)


def _is_here(exc: Exception) -> bool:
    url = _url_of(exc)
    return url is not None and is_loopback(str(url))


def _proxy(exc: Exception) -> ProxySetting | None:
    url = _url_of(exc)
    return None if url is None or is_loopback(str(url)) else proxy_for(str(url))


def _of_proxy(proxy: ProxySetting, place: str, detail: str) -> str:
    """Return the message for a connection that a proxy did not make."""
    return (
        f"could not connect to {place} through the proxy {proxy.address} that {proxy.place} names: {detail}; correct "
        f"or unset {proxy.place}, or name the server in NO_PROXY"
    )


def _address(exc: Exception) -> str:
    """Return the address of the request, so that a wrong one is obvious; empty if it is not known."""
    import httpx2

    url = _url_of(exc)
    return f" at {url.scheme}://{url.netloc.decode()}" if isinstance(url, httpx2.URL) else ""
