"""Commands about the model: which one, and how hard it works."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast, get_args

from panpan.config.models import ALIASES, VENDORS, Vendor, facts_about, known_models
from panpan.config.settings import Settings
from panpan.errors import ConfigError
from panpan.models.provider_kind import NO_KINDS, ProviderKinds, ready_models
from panpan.session.command import Command, Option, Terminal, say
from panpan.session.models import SessionModels
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort

_NO_EFFORT = "default"
"""The model's own choice."""
EFFORTS: Sequence[str] = (_NO_EFFORT, *get_args(Effort))


async def _model(terminal: Terminal, name: str) -> None:
    chosen = name or await _chosen_model(terminal)
    if chosen is not None:
        reason = await terminal.session.use_model(chosen)
        say(terminal, f"from the next message on panpan asks {clean_line(reason)}")


async def _chosen_model(terminal: Terminal) -> str | None:
    info = terminal.session.info
    of_session = terminal.session.find(SessionModels)
    kinds = NO_KINDS if of_session is None else of_session.setup.kinds
    models = models_for(terminal.session.settings, terminal.env, kinds)
    if not models:
        say(terminal, f"panpan asks {clean_line(info.choice)}; /model NAME changes that, such as /model ollama/NAME")
        return None
    title = "Which model? Prices are for a million tokens."
    picked = await terminal.choose(title, [_model_option(model, info.model) for model in models])
    return None if picked is None else models[picked].name


def _model_option(model: "DetectedModel", current: str) -> Option:
    return Option(clean_line(model.name), clean_line(model.detail), is_current=current in (model.name, model.model))


async def _effort(terminal: Terminal, value: str) -> None:
    value = value.lower()
    if not value:
        now = terminal.session.effort or _NO_EFFORT
        picked = await terminal.choose(
            "How much work should the model put into its answers?",
            [Option(effort, is_current=effort == now) for effort in EFFORTS],
        )
        if picked is None:
            return
        value = EFFORTS[picked]
    if value not in EFFORTS:
        raise ConfigError(f"no effort is called {clean_line(value)}; there are {', '.join(EFFORTS)}")
    await terminal.session.use_effort(None if value == _NO_EFFORT else cast("Effort", value))
    say(terminal, f"effort from the next message on: {value}")


MODEL_COMMANDS: Sequence[Command] = (
    Command("model", "Choose the model", _model, arguments="[name]", offers_choice=True),
    Command("effort", "Choose how hard the model works", _effort, arguments="[level]", offers_choice=True),
)


MOST_PER_VENDOR = 6
"""The newest, after those that have an alias; any other is reached by its name."""


@dataclass(frozen=True, slots=True)
class DetectedModel:
    """One model that can be chosen."""

    name: str
    """Name to choose it by: `provider/model`."""
    model: str
    """Its name as the provider knows it."""
    detail: str


def models_for(settings: Settings, env: Mapping[str, str], kinds: ProviderKinds) -> Sequence[DetectedModel]:
    """Return the models to offer; nothing is sent to find out."""
    of_kinds = (DetectedModel(name, name, detail) for name, detail in ready_models(kinds, env).items())
    return [*_of_settings(settings), *_of_vendors(settings, env), *of_kinds]


def _of_settings(settings: Settings) -> Iterator[DetectedModel]:
    for name, provider in settings.providers.items():
        for model in provider.models:
            yield DetectedModel(f"{name}/{model}", model, "from your settings")


def _of_vendors(settings: Settings, env: Mapping[str, str]) -> Iterator[DetectedModel]:
    for vendor in VENDORS:
        if any(env.get(variable, "").strip() for variable in vendor.key_variables):
            for model in _models_of(vendor):
                yield DetectedModel(f"{vendor.name}/{model}", model, _detail(vendor, model, settings))


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
