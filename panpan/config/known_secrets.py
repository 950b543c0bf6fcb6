"""Secrets that must never be written anywhere: keys in the settings and in the environment.

Give them to a `system.redact.Redactor` before anything is logged or reported.
"""

import re
from collections.abc import Iterator, Mapping

from panpan.config.keys import flatten, is_secret, leaves
from panpan.config.locations import Locations
from panpan.config.models import VENDORS
from panpan.config.settings import ProviderSettings, Settings
from panpan.config.stored_keys import NO_KEYS, StoredKeys
from panpan.errors import ConfigError
from panpan.system.text.redact import KnownKeys
from panpan.types.pattern import compile_late

_SECRET_NAME = compile_late(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|_AUTH$|_PASS$", re.IGNORECASE)


def known_secrets(
    env: Mapping[str, str], settings: Settings | None = None, keys: StoredKeys = NO_KEYS
) -> frozenset[str]:
    """Return every secret in the environment, the settings and the keys of `panpan login`.

    Args:
        env: The environment; a variable counts by its name, and passwords in addresses count under any name.
        settings: The settings; None while they are not loaded, as in an early crash.
        keys: Keys from `panpan login`.
    """
    found = {*_in_environment(env), *(_in_settings(env, settings) if settings else ()), *keys.known}
    return frozenset(secret for text in found if (secret := text.strip()))


def secrets_of_run(
    locations: Locations, env: Mapping[str, str], overrides: Mapping[str, object] | None = None
) -> frozenset[str]:
    """Return every secret that a run here would know, or those of environment and flags if the settings are broken.

    Logs and reports use it, which must work whatever is broken.
    """
    from panpan.config.settings_file import Source
    from panpan.config.sources import load_settings

    overrides = overrides or {}
    given = [value.values for value in overrides.values() if isinstance(value, Source)]
    of_flags = {str(value) for values in (overrides, *given) for path, value in leaves(values) if is_secret(path)}
    of_flags -= {"", "None"}
    keys = StoredKeys(locations.home)
    try:
        settings = load_settings(locations.project_root, env, overrides, locations).settings
    except ConfigError:
        settings = None
    return known_secrets(env, settings, keys) | of_flags


def _in_environment(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        if _SECRET_NAME.search(name):
            yield value
        if "://" in value and "@" in value:
            yield from _password(value)


def _password(address: str) -> Iterator[str]:
    from urllib.parse import unquote, urlsplit

    try:
        password = urlsplit(address).password
    except ValueError:  # not an address
        return
    if password:
        yield from (password, unquote(password))


def _in_settings(env: Mapping[str, str], settings: Settings) -> Iterator[str]:
    for path, value in flatten(settings):
        if is_secret(path) and value is not None:
            yield value.get_secret_value()
            yield from _password(value.get_secret_value())
    of_providers = (settings.api_key_env, *(provider.api_key_env for provider in settings.providers.values()))
    for variable in (*of_providers, *settings.key_variables):
        yield env.get(variable or "", "")


def provider_keys(env: Mapping[str, str], settings: Settings, keys: StoredKeys = NO_KEYS) -> KnownKeys:
    """Return the keys that panpan could send to a provider or a search engine.

    Other secrets are left out: a test may print a token of its own, and the model has to see its output.
    """
    return KnownKeys(_keys(env, settings), lambda: keys.known)


def without_provider_keys(env: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return `env` without the variables that vendors and settings name for keys."""
    variables = set(_key_variables(settings))
    return {name: value for name, value in env.items() if name not in variables}


def _keys(env: Mapping[str, str], settings: Settings) -> Iterator[str]:
    for source in _places_of_keys(settings):
        if source.api_key is not None:
            yield source.api_key.get_secret_value()
    for variable in _key_variables(settings):
        yield env.get(variable, "")


def _key_variables(settings: Settings) -> Iterator[str]:
    yield from (source.api_key_env for source in _places_of_keys(settings) if source.api_key_env is not None)
    for vendor in VENDORS:
        yield from vendor.key_variables
    yield from settings.key_variables


def _places_of_keys(settings: Settings) -> tuple[Settings | ProviderSettings, ...]:
    return (settings, *settings.providers.values())
