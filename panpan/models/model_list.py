"""A server's list of models: the cheapest request, which also checks a key."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import anyio

from panpan.config.models import Vendor
from panpan.errors import AuthenticationError, PanpanError, ProviderError
from panpan.models.factory import ResolvedModel, resolve_model
from panpan.models.model_choice import ModelRequirement
from panpan.models.transport import Transport
from panpan.types.dataclass import dataclass

TIME_LIMIT_S = 15.0
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """A vendor's verdict on a key."""

    verdict: Literal["accepted", "rejected", "unchecked"]
    reason: str = ""
    """Reason why it was rejected or could not be checked, without the key."""


async def check_key(vendor: Vendor, key: str, env: Mapping[str, str]) -> KeyCheck:
    """Check a key with a vendor; the request goes to the same address as requests for the vendor's models."""
    if any(not 0x21 <= ord(character) <= 0x7E for character in key):
        return KeyCheck("rejected", "This is no API key: it holds blanks or other characters that no key has")
    try:
        wanted = ModelRequirement(provider=vendor.name, model=vendor.default_model or "any", api_key=key)
        await _document(resolve_model([wanted], env), vendor.key_path)
    except AuthenticationError as error:
        # 403 may concern only the list, or the country
        return KeyCheck("rejected" if error.status in (None, _UNAUTHORIZED) else "unchecked", str(error))
    except PanpanError as error:
        return KeyCheck("unchecked", str(error))
    return KeyCheck("accepted")


async def listed_models(resolved: ResolvedModel) -> Sequence[str]:
    """Return the names of the chat models that a server lists.

    Raises:
        PanpanError: It could not be asked.
    """
    from panpan.models.local_servers import NO_CHAT

    rows = (await _document(resolved, "/models")).get("data")
    names = [row.get("id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [name for name in names if isinstance(name, str) and name.isprintable() and not NO_CHAT.search(name)]


async def _document(resolved: ResolvedModel, path: str) -> Mapping[str, object]:
    """Return a server's answer to a GET.

    Raises:
        PanpanError: It could not be asked, or does not answer in time.
    """
    from panpan.models.sdk_clients import open_anthropic, open_openai

    is_anthropic = resolved.kind == "anthropic"
    base_url = resolved.base_url.removesuffix("/v1") if is_anthropic else resolved.base_url
    transport = Transport(
        provider=resolved.provider,
        open_client=partial(
            open_anthropic if is_anthropic else open_openai,
            api_key=resolved.api_key,
            base_url=base_url,
            headers=dict(resolved.headers),
        ),
        secrets=(resolved.api_key, *resolved.headers.values()),
        idle_timeout_s=TIME_LIMIT_S,
    )
    try:
        with anyio.fail_after(TIME_LIMIT_S):
            return await transport.request(f"/v1{path}" if is_anthropic else path)
    except TimeoutError:
        raise ProviderError(f"{resolved.provider} did not answer within {TIME_LIMIT_S:g} seconds") from None
    finally:
        await transport.aclose()
