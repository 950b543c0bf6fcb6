"""Choices that faces offer for a session: models, efforts and the usual modes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from panpan.cli_kit.login import key_places
from panpan.config.models import ALIASES, VENDORS, Vendor, facts_about, known_models
from panpan.config.settings import Settings
from panpan.config.stored_keys import NO_KEYS, StoredKeys
from panpan.models.provider_kind import ProviderKinds, ready_models
from panpan.session.session import Session
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort
from panpan.types.permission import PermissionMode

NO_EFFORT = "default"
"""Word for the model's own default."""
EFFORTS: Sequence[str] = (NO_EFFORT, *get_args(Effort))

MODES: Sequence[PermissionMode] = ("default", "acceptEdits", "auto", "plan")
"""Modes that a user switches between; the others have to be chosen by name."""


def usable_modes(session: Session) -> Sequence[PermissionMode]:
    """Return those of `MODES` that work here."""
    return [mode for mode in MODES if mode != "auto" or not session.auto_trouble]


MOST_PER_VENDOR = 6
"""Most models of a vendor in the list: those with an alias, then the newest; others can be chosen by name."""


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that can be chosen."""

    name: str
    """Name to choose it by: `provider/model`."""
    model: str
    """Name at the provider."""
    detail: str


def models_for(
    settings: Settings, env: Mapping[str, str], kinds: ProviderKinds, keys: StoredKeys = NO_KEYS
) -> Sequence[OfferedModel]:
    """Return the models to offer, without a request to any provider."""
    of_kinds = (OfferedModel(name, name, detail) for name, detail in ready_models(kinds, env).items())
    return [*_of_settings(settings), *_of_vendors(settings, env, keys), *of_kinds]


def _of_settings(settings: Settings) -> Iterator[OfferedModel]:
    for name, provider in settings.providers.items():
        for model in provider.models:
            yield OfferedModel(f"{name}/{model}", model, "from your settings")


def _of_vendors(settings: Settings, env: Mapping[str, str], keys: StoredKeys) -> Iterator[OfferedModel]:
    for vendor in VENDORS:
        if any(key_places(vendor, keys, env)):
            for model in _models_of(vendor):
                yield OfferedModel(f"{vendor.name}/{model}", model, _detail(vendor, model, settings))


def _models_of(vendor: Vendor) -> Sequence[str]:
    """Return the models of a vendor for the list: its default, those with an alias, the newest."""
    named = [vendor.default_model, *(model for _, model in vendor.aliases)]
    first = dict.fromkeys(model for model in named if model)
    return list(dict.fromkeys([*first, *known_models(vendor.name)]))[: max(MOST_PER_VENDOR, len(first))]


def _detail(vendor: Vendor, model: str, settings: Settings) -> str:
    aliases = [alias for alias, of in (*vendor.aliases, *ALIASES, *settings.aliases.items()) if of == model]
    facts = facts_about(model, vendor.name)
    window = f"{facts.context_tokens:,} tokens" if facts.is_known else ""
    price = ""
    if facts.price is not None:
        rates = facts.price.rates[0]
        price = f"${rates.input:g} in, ${rates.output:g} out"
    return "; ".join(part for part in (*aliases[:1], window, price) if part)
