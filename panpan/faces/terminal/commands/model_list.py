"""The models that can be offered: those of the vendors whose keys are there, and those that the user set up."""

from collections.abc import Iterator, Mapping, Sequence

from panpan.capabilities.local_model.weight_store import embedded_store
from panpan.config.models import facts_about, known_models
from panpan.config.settings import Settings
from panpan.config.vendors import ALIASES, VENDORS, Vendor
from panpan.models.model_choice import EMBEDDED
from panpan.types.dataclass import dataclass

MOST_PER_VENDOR = 6
"""The newest, after those that have an alias; any other is reached by its name."""


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """One model that can be chosen."""

    name: str
    """What to choose it by: `provider/model`."""
    model: str
    """Its name as the provider knows it."""
    detail: str


def models_for(settings: Settings, env: Mapping[str, str]) -> Sequence[OfferedModel]:
    """Return the models to offer; nothing is sent to find out."""
    return [*_of_settings(settings), *_of_vendors(settings, env), *_embedded(env)]


def _of_settings(settings: Settings) -> Iterator[OfferedModel]:
    for name, provider in settings.providers.items():
        for model in provider.models:
            yield OfferedModel(f"{name}/{model}", model, "from your settings")


def _of_vendors(settings: Settings, env: Mapping[str, str]) -> Iterator[OfferedModel]:
    for vendor in VENDORS:
        if any(env.get(variable, "").strip() for variable in vendor.key_variables):
            for model in _models_of(vendor):
                yield OfferedModel(f"{vendor.name}/{model}", model, _detail(vendor, model, settings))


def _models_of(vendor: Vendor) -> Sequence[str]:
    """Return the models of a vendor that are worth a line: its default, those with an alias, the newest."""
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


def _embedded(env: Mapping[str, str]) -> Iterator[OfferedModel]:
    if embedded_store(env).is_ready:
        yield OfferedModel(EMBEDDED, EMBEDDED, "the small model that runs inside panpan")
