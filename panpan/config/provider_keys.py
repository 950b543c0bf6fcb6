"""The keys of model providers and search engines, as the settings and the environment hold them."""

from collections.abc import Iterator, Mapping

from panpan.config.settings import ProviderSettings, Settings
from panpan.config.vendors import VENDORS
from panpan.system.text.known_keys import KnownKeys


def provider_keys(env: Mapping[str, str], settings: Settings) -> KnownKeys:
    """Return the keys that panpan could send to a provider or a search engine.

    Not every secret there is: a test may print a token of its own, and the model has to see what it prints.

    Args:
        env: The environment; the variables count that vendors and settings name.
        settings: Their `api_key`, also those of the providers.
    """
    return KnownKeys(_keys(env, settings))


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
    yield from settings.web.key_variables
    yield settings.data.hub_token_env


def _places_of_keys(settings: Settings) -> tuple[Settings | ProviderSettings, ...]:
    return (settings, *settings.providers.values())
