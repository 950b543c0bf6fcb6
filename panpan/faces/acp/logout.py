"""The end of a login: the keys that `panpan login` has stored are removed."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from panpan.cli_kit.login import key_places, vendors_with_keys
from panpan.config.locations import panpan_home
from panpan.config.stored_keys import LOGIN, StoredKeys
from panpan.errors import ConfigError
from panpan.session.session import Session


def forget_keys(env: Mapping[str, str]) -> Iterator[str]:
    """Remove all stored keys, and yield a sentence for each key that is still set elsewhere; blocks.

    Raises:
        ConfigError: No key is stored, or one cannot be removed.
    """
    keys = _stored(env)
    stored = [vendor for vendor in vendors_with_keys() if keys.has(vendor.name)]
    if not stored:
        raise ConfigError(f"no key is stored, so none was removed; see {LOGIN} --list")
    for vendor in stored:
        keys.forget(vendor.name)
    for vendor in vendors_with_keys():
        for place in key_places(vendor, keys, env):
            yield f"{place} is still set"


def has_lost_key(session: Session, env: Mapping[str, str]) -> bool:
    """Return True if the model of a session has a stored key, and no key is stored any more."""
    return session.info.key_source.startswith(LOGIN) and not _stored(env).vendors


def _stored(env: Mapping[str, str]) -> StoredKeys:
    return StoredKeys(panpan_home(env, Path.cwd()))
