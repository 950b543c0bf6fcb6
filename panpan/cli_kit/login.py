"""Login to a vendor: a key is typed, tried and saved, in the same words in the shell and in a session.

The rule: a key is never in an argument, message or log.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from panpan.config.models import VENDORS, Vendor, vendor_named
from panpan.config.stored_keys import LOGIN, StoredKeys
from panpan.errors import ConfigError
from panpan.session.command import Option, Questions

if TYPE_CHECKING:
    from panpan.models.model_list import KeyCheck


def vendors_with_keys() -> Sequence[Vendor]:
    """Return the vendors that require a key."""
    return [vendor for vendor in VENDORS if not vendor.is_local]


def vendor_of(name: str) -> Vendor:
    """Return the vendor of a typed name.

    Raises:
        ConfigError: No vendor of that name requires a key. The name is not repeated, since it may be a key.
    """
    vendor = vendor_named(name.strip().lower())
    if vendor is None or vendor.is_local:
        known = ", ".join(vendor.name for vendor in vendors_with_keys())
        raise ConfigError(f"no provider with keys has this name; there are {known}")
    return vendor


def key_places(vendor: Vendor, keys: StoredKeys, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the places of a vendor's keys, the one that counts first, but never the keys."""
    yield from (name for name in vendor.key_variables if env.get(name, "").strip())
    if keys.has(vendor.name):
        try:
            yield f"{LOGIN} ({keys.place_of(vendor.name)})"
        except ConfigError as error:
            yield f"{LOGIN}, but {error}"


async def log_in(ask: Questions, keys: StoredKeys, env: Mapping[str, str], name: str = "") -> Vendor | None:
    """Ask the user for a vendor's key, try it and save it; return the vendor, or None if they leave.

    Raises:
        ConfigError: There is no such vendor, or the key cannot be saved.
    """
    from panpan.models.model_list import check_key  # not needed at the start

    vendor = vendor_of(name) if name else await _chosen(ask, vendors_with_keys(), keys, env)
    if vendor is None:
        return None
    await ask.tell(f"You get a key for {vendor.title} at {vendor.key_page}")
    while key := await ask.secret("Paste it here (it is not shown) and press Enter:"):
        await ask.tell(f"Asking {vendor.title} …")
        check = await check_key(vendor, key, env)
        if check.verdict == "rejected":
            await ask.tell(f"{check.reason}. Paste another one, or press Esc.")
            continue
        if check.verdict == "unchecked":
            options = [Option("Keep it"), Option("Drop it")]
            if await ask.choose(f"The key could not be checked: {check.reason}", options) != 0:
                break
        await ask.tell(save_key(vendor, key, check, keys, env))
        return vendor
    await ask.tell("Nothing was kept.")
    return None


def save_key(vendor: Vendor, key: str, check: "KeyCheck", keys: StoredKeys, env: Mapping[str, str]) -> str:
    """Save a key that was not rejected, and return a sentence for the user.

    Raises:
        ConfigError: The key cannot be saved.
    """
    place = keys.keep(vendor.name, key)
    verdict = f"{vendor.title} accepts the key" if check.verdict == "accepted" else "The key was not checked"
    first = next(key_places(vendor, keys, env))
    hidden = "" if first.startswith(LOGIN) else f"\n{first} is set, and is used instead of it."
    other = _first(keys, env)
    before = f"panpan takes {other.title} first, by {next(key_places(other, keys, env))}"
    behind = "" if other == vendor else f"\n{before}; add --provider {vendor.name} to ask {vendor.title}."
    return f"{verdict}. It is kept in {place}.{hidden}{behind}"


def way_to(vendor: Vendor, keys: StoredKeys, env: Mapping[str, str]) -> str:
    """Return the command line that uses a vendor whose key was saved, if the settings name no model."""
    return "panpan" if _first(keys, env) == vendor else f"panpan --provider {vendor.name}"


def _first(keys: StoredKeys, env: Mapping[str, str]) -> Vendor:
    """Return the vendor whose key a start uses, of those that have one."""
    return next(vendor for vendor in VENDORS if any(key_places(vendor, keys, env)))


async def log_out(ask: Questions | None, keys: StoredKeys, env: Mapping[str, str], name: str = "") -> str:
    """Remove a vendor's key, and return a sentence for the user.

    Args:
        ask: Lets the user choose a vendor; None: nobody is there.
        keys: The stored keys.
        env: The environment.
        name: Name of the vendor; empty: the only one with a key, or the chosen one.

    Raises:
        ConfigError: There is no such key, or it cannot be removed.
    """
    there = [vendor for vendor in vendors_with_keys() if keys.has(vendor.name)]
    if name:
        vendor: Vendor | None = vendor_of(name)
    elif len(there) > 1 and ask is not None:
        vendor = await _chosen(ask, there, keys, env)
    elif len(there) > 1:
        raise ConfigError(f"name one of {', '.join(vendor.name for vendor in there)}")
    else:
        vendor = there[0] if there else None
    if vendor is None or vendor not in there:
        whose = f"no key for {vendor.title}" if vendor and name else "no key"
        raise ConfigError(f"{whose} is stored, so none was removed; see {LOGIN} --list")
    keys.forget(vendor.name)
    still = next(key_places(vendor, keys, env), "")
    note = f" {still} is still set." if still else ""
    return f"The key for {vendor.title} is removed here.{note} To make it invalid: {vendor.key_page}"


async def _chosen(ask: Questions, vendors: Sequence[Vendor], keys: StoredKeys, env: Mapping[str, str]) -> Vendor | None:
    options = [Option(one.title, next(key_places(one, keys, env), "")) for one in vendors]
    picked = await ask.choose("Which provider?", options)
    return None if picked is None else vendors[picked]
