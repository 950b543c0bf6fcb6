"""Which key goes to a destination.

The rules: a key of the user's settings goes where the source that gave it, and those it builds on, send requests; a
vendor's key goes to the vendor's own address, or to the one in the vendor's own variable. A key that does not belong is
left out, and the error says whose it is. Keys appear in no message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from panpan.errors import ConfigError
from panpan.models.model_choice import Chooser, Destination, Wish, merged
from panpan.types.dataclass import dataclass

_TOKEN = "ANTHROPIC_AUTH_TOKEN"
"""Holds a token of a gateway or an account, which goes in a header of its own and not in that of keys."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key, where it was found, and the headers that carry it in place of the usual one."""

    text: str = field(default="", repr=False)
    """Empty where the server asks for none."""
    place: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def key_for(destination: Destination, wishes: Sequence[Wish], chooser: Chooser, env: Mapping[str, str]) -> Key:
    """Return the key for a destination.

    Args:
        destination: Where the requests go.
        wishes: What the sources of settings say, weakest first.
        chooser: Decides where a weaker source alone would send them.
        env: The environment.

    Raises:
        ConfigError: There is none, and the server surely asks for one; or it cannot be sent.
    """
    if destination.known is not None and not destination.known.takes_key:
        return Key()
    key = (
        _of_provider(destination, env)
        or _of_settings(destination, wishes, chooser, env)
        or _of_vendor(destination, env)
    )
    if key is not None:
        return key
    vendor = destination.vendor
    if vendor is None or vendor.is_local or destination.is_on_this_machine or not destination.is_own_address:
        return Key()
    others = _whose(wishes)
    raise ConfigError(f"no key for {vendor.name}; set {vendor.key_variables[0]}{others}")


def _of_provider(destination: Destination, env: Mapping[str, str]) -> Key | None:
    """Return the key that the settings keep beside the provider."""
    named = destination.named
    if named is None:
        return None
    place = f"providers.{named.name}"
    if named.api_key is not None:
        return Key(_sendable(named.api_key, place), place)
    if named.api_key_env is not None:
        return _in_variable(named.api_key_env, f"{place}.api_key_env", env)
    return None


def _of_settings(
    destination: Destination, wishes: Sequence[Wish], chooser: Chooser, env: Mapping[str, str]
) -> Key | None:
    """Return the key that the settings or PANPAN_API_KEY give for whatever is chosen, if it was meant for this."""
    giver = _giver(wishes)
    if giver is None or not _belongs(destination, wishes, giver, chooser):
        return None
    wish = wishes[giver]
    if wish.api_key is not None:
        return Key(_sendable(wish.api_key, f"api_key of {wish.place}"), f"api_key of {wish.place}")
    return _in_variable(wish.api_key_env or "", "api_key_env", env)


def _of_vendor(destination: Destination, env: Mapping[str, str]) -> Key | None:
    vendor = destination.vendor
    if vendor is None or not destination.is_own_address:
        return None
    for variable in vendor.key_variables:
        if text := env.get(variable, "").strip():
            text = _sendable(text, variable)
            return Key(text, variable, {"authorization": f"Bearer {text}"} if variable == _TOKEN else {})
    return None


def _giver(wishes: Sequence[Wish]) -> int | None:
    """Return the position of the strongest source that gives a key."""
    return next((number for number in reversed(range(len(wishes))) if wishes[number].has_key), None)


def _belongs(destination: Destination, wishes: Sequence[Wish], giver: int, chooser: Chooser) -> bool:
    """Whether the source that gives the key would send requests there, too, or leaves it open where to."""
    meant, whole = merged(wishes[: giver + 1]), merged(wishes)
    if meant.base_url != whole.base_url:
        return False
    if meant.model is None and meant.provider is None:
        return True
    try:
        there = chooser.destination(meant)
    except ConfigError:  # it leads nowhere, so also not there
        return False
    return (there.provider, there.base_url) == (destination.provider, destination.base_url)


def _whose(wishes: Sequence[Wish]) -> str:
    giver = _giver(wishes)
    if giver is None:
        return " or PANPAN_API_KEY, or choose another model with --model"
    return f"; the key of {wishes[giver].place} was given for another provider and is not sent to this one"


def _in_variable(variable: str, setting: str, env: Mapping[str, str]) -> Key:
    text = env.get(variable, "").strip()
    if not text:
        raise ConfigError(f"{setting} names the variable {variable}, which is not set; set it to the key")
    return Key(_sendable(text, variable), variable)


def _sendable(text: str, place: str) -> str:
    text = text.strip()
    if not text or any(not 0x21 <= ord(character) <= 0x7E for character in text):
        raise ConfigError(f"the key in {place} is empty or holds blanks or other characters that no key has")
    return text
