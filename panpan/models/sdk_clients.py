"""Opening the SDKs' clients: the one place that imports them, and only when a request is about to be sent.

The SDKs know how to address, sign and send a request and how to find proxies and certificates (the usual variables,
such as HTTPS_PROXY and SSL_CERT_FILE); their retries are off, because the client above shows and can interrupt each
pause.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from panpan.errors import AuthenticationError
from panpan.models.lean_sdk import Sdk, SdkClasses, load_sdk
from panpan.models.model_choice import is_loopback
from panpan.models.network_variables import blaming_variables, has_proxies
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from ssl import SSLContext

NO_KEY = "none"
"""Sent where no key is set; local servers ignore it, and an empty one would not make a valid header."""


class PostingClient(Protocol):
    """What is used of an SDK's client."""

    async def post(self, path: str, *, cast_to: Any, content: bytes, options: Any, stream: bool) -> Any:
        """Send a request and return what `cast_to` names."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


@dataclass(frozen=True, slots=True)
class SdkClient:
    """An SDK's client, and the root of the errors that it raises."""

    client: PostingClient
    error_type: type[Exception]


def open_anthropic(*, api_key: str, base_url: str | None, headers: Mapping[str, str]) -> SdkClient:
    """Return a client for the Messages API at `base_url`; None is Anthropic's own address.

    Raises:
        AuthenticationError: The key cannot be a key.
        ConfigError: A variable names a proxy or certificates that cannot be used.
    """
    _check(api_key)
    address = base_url or "https://api.anthropic.com"
    sdk, network = _loaded("anthropic", "AsyncAnthropic", "AnthropicError", address)
    is_token = headers.get("authorization") == f"Bearer {api_key}"  # the SDK sends it as such; it is no key besides
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
    """Return a client for the chat completions API at `base_url`; None is OpenAI's own address.

    Raises:
        AuthenticationError: The key cannot be a key.
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
    """Return an SDK's classes, and the network client that it would make for `address`.

    The certificates are read beside the import, in a thread that leaves the interpreter free; and once, while the SDK
    would read them again for each proxy.

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
    """Return what there has to be for plain HTTP, where nothing is encrypted since redirects are not followed."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _past_proxies(address: str) -> dict[str, None]:
    """Return what sends requests to this machine past the proxies.

    No proxy reaches a server that listens here only, and few users who set a proxy think of NO_PROXY.
    """
    if not is_loopback(address) or not has_proxies():
        return {}
    host = urlsplit(address).hostname or ""
    return {f"all://[{host}]" if ":" in host else f"all://{host}": None}


def _bounded(client: Any, error_type: type[Exception]) -> SdkClient:
    """Return the client; what it reads of an error is bounded."""
    from panpan.models.error_body import bound_error_bodies  # imports the network library, as the SDK has by now

    bound_error_bodies(client._client)
    return SdkClient(client, error_type)


def _check(api_key: str) -> None:
    """Refuse what no header can hold; the SDKs would raise something that shows it."""
    if not (api_key.isascii() and api_key.isprintable()) or api_key != api_key.strip():
        raise AuthenticationError("the API key holds blanks, line ends or characters that no key has; copy it again")


def _headers_of_other_vendors(api_key: str, base_url: str | None) -> dict[str, str]:
    """Return what servers that copy the Messages API expect: its long-lived version, and the key in its own header."""
    if _is_host_of(base_url, "anthropic.com"):
        return {}
    return {"anthropic-version": "2023-06-01"} | ({"x-api-key": api_key} if api_key else {})


def _is_host_of(base_url: str | None, domain: str) -> bool:
    host = (urlsplit(base_url).hostname or "") if base_url else domain
    return host == domain or host.endswith(f".{domain}")
