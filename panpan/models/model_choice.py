"""Choice of the model, its address and its key: pure decisions from the user's settings; nothing is sent.

A key in the user's settings goes only to the address to which its source, together with the weaker ones, sends
requests. A vendor's key, from the environment or else from `panpan login`, goes only to the vendor's own address, or to
the one in the vendor's own variable. Any other key is left out, and the error says whose it is. Keys appear in no
message.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from urllib.parse import urlsplit

from panpan.config.models import ALIASES, VENDORS, ModelFacts, Vendor, facts_about, vendor_named, vendor_of
from panpan.config.stored_keys import LOGIN, NO_KEYS, StoredKeys
from panpan.errors import ConfigError
from panpan.models.provider_kind import (
    FULL,
    NO_KINDS,
    KnownModel,
    ModelProfile,
    NamedProvider,
    ProviderKinds,
    provider_kind,
)
from panpan.types.dataclass import dataclass

MAX_ALIAS_STEPS = 10


class NoModelError(ConfigError):
    """Nothing names a model: no setting, and no key of a vendor."""


class NoKeyError(ConfigError):
    """The vendor of the model needs a key, and there is none."""


class ModelNotNamedError(ConfigError):
    """The settings name a server but none of its models."""


@dataclass(frozen=True, slots=True)
class ModelRequirement:
    """Requirements of one source of settings for the model; None for those that it does not have."""

    place: str = "the settings"
    """The source, for messages."""
    model: str | None = None
    provider: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    """Environment variable that holds the key."""
    reason: str | None = None
    """Reason why it names model or provider, as half a sentence; None to name the source."""

    @property
    def why(self) -> str:
        """The reason for this model or provider, as half a sentence."""
        return self.reason or f"{self.place} chose {self.provider or self.model}"

    @property
    def has_key(self) -> bool:
        """True if this source gives a key."""
        return self.api_key is not None or self.api_key_env is not None


@dataclass(frozen=True, slots=True)
class Destination:
    """Destination of requests: provider, address and model."""

    provider: str
    kind: str
    """The protocol, or the name of a provider kind."""
    model: str
    base_url: str
    reason: str
    """Reason for the choice, as half a sentence."""
    vendor: Vendor | None = None
    named: NamedProvider | None = None
    is_own_address: bool = True
    """True if the vendor's key may go there: to the vendor's address, or to the one in the vendor's own variable."""
    known: KnownModel | None = None
    """The model as its provider kind describes it; None if it is on a server."""

    @property
    def title(self) -> str:
        """The model and its address, for people."""
        return self.known.title if self.known else f"{self.model} at {self.provider} ({self.base_url})"

    @property
    def profile(self) -> ModelProfile:
        """The parts of panpan that the model gets."""
        return self.known.profile if self.known else FULL

    @property
    def extras(self) -> NamedProvider | None:
        """The provider whose headers and fields are sent; None if the settings gave them for another host."""
        named = self.named
        is_elsewhere = (
            named is not None and named.base_url is not None and not _same_host(named.base_url, self.base_url)
        )
        return None if is_elsewhere else named

    @property
    def is_on_this_machine(self) -> bool:
        """True if the address is a loopback one."""
        return is_loopback(self.base_url)

    @property
    def facts(self) -> ModelFacts:
        """The figures of the model at this destination."""
        if self.known is not None:
            return self.known.facts
        facts = facts_about(self.model, self.vendor.name if self.vendor else None)
        maker = vendor_of(self.model)
        if facts.is_known or self.vendor is not None or maker is None:
            return facts
        return replace(facts_about(self.model, maker), price=None)  # the same model, but at an unknown price


class Chooser:
    """Chooser of the destination of requests.

    Args:
        providers: Providers from the settings, by name.
        aliases: Short names for models, from the settings.
        env: The environment.
        kinds: The provider kinds.
        keys: Keys of vendors that the environment does not have.
    """

    def __init__(
        self,
        providers: Mapping[str, NamedProvider],
        aliases: Mapping[str, str],
        env: Mapping[str, str],
        kinds: ProviderKinds = NO_KINDS,
        keys: StoredKeys = NO_KEYS,
    ) -> None:
        self._providers = providers
        self._kinds = kinds
        self._aliases = aliases
        self._keys = keys
        self._env = {name: text for name, value in env.items() if (text := value.strip())}

    def destination(self, requirement: ModelRequirement) -> Destination:
        """Return the destination for a requirement.

        Raises:
            NoModelError: The requirement is empty, and there is no vendor's key.
            ModelNotNamedError: It names a server but no model.
            ConfigError: It names something that does not exist, or too little.
        """
        text = self._expanded(requirement.model)
        kind, _, name = (text or "").partition(":")
        if kind in self._kinds:  # even if the settings name a provider: the user wants their code to go nowhere else
            return self._of_kind(kind, name, requirement.reason or f"{requirement.place} chose it")
        if requirement.provider is not None:
            return self._at(requirement.provider, text, requirement, requirement.why)
        if text is None:
            return self._default(requirement)
        if self._is_vendor_alias(text):
            return replace(self._default(requirement, text), reason=requirement.why)
        name, model = self._provider_of(text, requirement)
        return self._at(name, model, requirement, requirement.why)

    def names(self) -> tuple[str, ...]:
        """Return the providers that can be chosen."""
        return tuple(dict.fromkeys([*self._providers, *(vendor.name for vendor in VENDORS)]))

    def key_place(self, vendor: Vendor) -> str | None:
        """Return the place of the vendor's key: the name of a variable, or `LOGIN`; None if there is no key."""
        variable = next((name for name in vendor.key_variables if name in self._env), None)
        return variable or (LOGIN if self._keys.has(vendor.name) else None)

    def _has_key_of(self, name: str) -> bool:
        return any(vendor.name == name and self.key_place(vendor) for vendor in VENDORS)

    def _expanded(self, model: str | None) -> str | None:
        """Follow aliases; the user's own come first."""
        aliases = {**dict(ALIASES), **self._aliases}
        for _ in range(MAX_ALIAS_STEPS):
            if model is None or model not in aliases or aliases[model] == model:
                return model
            model = aliases[model]
        raise ConfigError(f"the alias {model} leads back to itself; change it in the settings under [aliases]")

    def _is_vendor_alias(self, text: str) -> bool:
        return any(text == alias for vendor in VENDORS for alias, _ in vendor.aliases)

    def _provider_of(self, text: str, requirement: ModelRequirement) -> tuple[str, str]:
        """Return the provider of a model, and the model's name there."""
        for provider in self._providers.values():
            if text in provider.models:
                return provider.name, text
        prefix, slash, rest = text.partition("/")
        if slash and prefix in self.names():
            return prefix, rest
        makers = [vendor for vendor in VENDORS if vendor.makes(text)]
        if requirement.base_url is not None:
            return ("anthropic" if makers and makers[0].dialect == "anthropic" else "custom"), text
        if makers:
            return self._maker_with_key(makers), text
        if slash and "OPENAI_BASE_URL" not in self._env:
            if self._has_key_of("openrouter"):
                return "openrouter", text
            raise self._unknown_provider(prefix)
        if "OPENAI_BASE_URL" in self._env or self._has_key_of("openai"):
            return "openai", text
        raise self._unknown_model(text)

    def _maker_with_key(self, makers: Sequence[Vendor]) -> str:
        with_key = next((vendor for vendor in makers if self.key_place(vendor)), None)
        if with_key is None and makers[0].dialect == "openai" and "OPENAI_BASE_URL" in self._env:
            return "openai"  # a user who changes OpenAI's address reaches other vendors there
        return (with_key or makers[0]).name

    def _at(self, name: str, text: str | None, requirement: ModelRequirement, reason: str) -> Destination:
        named, vendor = self._providers.get(name), vendor_named(name)
        if named is None and vendor is None and name in self._kinds:
            return self._of_kind(name, text or "", reason)
        if named is None and vendor is None and not (name == "custom" and requirement.base_url):
            raise self._unknown_provider(name)
        base_url, is_own = self._address(name, named, vendor, requirement)
        dialect = named.dialect if named else vendor.dialect if vendor else "openai"
        model = self._model_at(name, text, named, vendor)
        return Destination(name, dialect, model, base_url, reason, vendor, named, is_own)

    def _address(
        self, name: str, named: NamedProvider | None, vendor: Vendor | None, requirement: ModelRequirement
    ) -> tuple[str, bool]:
        if requirement.base_url is not None:
            return checked_address(requirement.base_url, "base_url"), False
        if named is not None and named.base_url is not None:
            return checked_address(named.base_url, f"providers.{name}.base_url"), False
        if vendor is None:
            raise ConfigError(f"provider {name} has no address; set providers.{name}.base_url in the settings")
        variable = vendor.base_url_variable
        if variable is not None and variable in self._env:
            return checked_address(self._env[variable], variable), True
        return vendor.base_url, True

    def _model_at(self, name: str, text: str | None, named: NamedProvider | None, vendor: Vendor | None) -> str:
        if text is None:
            default = next(iter(named.models), None) if named else None
            default = default or (vendor.default_model if vendor else None)
            if default is None:
                raise ConfigError(f"{name} needs to be told which model; use --model {name}/NAME")
            return default
        aliases = dict(vendor.aliases) if vendor else {}
        if text in aliases:
            return aliases[text]
        if self._is_vendor_alias(text) and not (named and text in named.models):
            raise ConfigError(f"{name} has no model called {text}; name one, or set aliases.{text} in the settings")
        model = text.removeprefix(f"{name}/")
        if not model:
            raise ConfigError(f"{text!r} names no model; use --model {name}/NAME")
        return model

    def _default(self, requirement: ModelRequirement, alias: str | None = None) -> Destination:
        """Return the destination if nothing names a provider or a model."""
        if requirement.base_url is not None:
            raise ModelNotNamedError(
                f"base_url is {requirement.base_url} but nothing says which model; set --model or PANPAN_MODEL"
            )
        for vendor in VENDORS:
            if (place := self.key_place(vendor)) is not None:
                why = f"you logged in to {vendor.title}" if place == LOGIN else f"{place} is set"
                return self._at(vendor.name, alias, requirement, why)
        for named in self._usable_providers():
            return self._at(named.name, alias, requirement, f"the settings have providers.{named.name}")
        if requirement.has_key:
            raise ConfigError("there is an API key but nothing says whose; set PANPAN_PROVIDER or PANPAN_MODEL")
        raise NoModelError(f"no model is set up; run: {LOGIN}, or set ANTHROPIC_API_KEY or another vendor's key")

    def _of_kind(self, kind: str, name: str, reason: str) -> Destination:
        named = self._providers.get(kind)
        with provider_kind(kind, self._kinds[kind]) as models:
            known = models.describe_model(name, self._env, named)
        named = named if known.takes_key else None
        return Destination(kind, kind, known.model, known.base_url, known.reason or reason, named=named, known=known)

    def _usable_providers(self) -> Iterator[NamedProvider]:
        for named in self._providers.values():
            if named.models and (named.api_key_env is None or named.api_key_env in self._env):
                yield named

    def _unknown_provider(self, name: str) -> ConfigError:
        from difflib import get_close_matches

        matches = get_close_matches(name, self.names(), n=1)
        advice = f"did you mean {matches[0]}?" if matches else f"known are {', '.join(self.names())}"
        return ConfigError(f"there is no provider {name!r}; {advice}")

    def _unknown_model(self, text: str) -> ConfigError:
        from difflib import get_close_matches

        names = [*dict(ALIASES), *self._aliases, *(model for vendor in VENDORS for model in _models_of(vendor))]
        matches = get_close_matches(text, names, n=1, cutoff=0.75)
        guess = f"did you mean {matches[0]}? Otherwise " if matches else ""
        return ConfigError(
            f"nothing says who serves the model {text!r}; {guess}write provider/model, such as openai/{text}, or set "
            "PANPAN_BASE_URL to the server's address"
        )


def merge_requirements(requirements: Sequence[ModelRequirement]) -> ModelRequirement:
    """Return all requirements as one; later ones replace earlier ones."""
    whole = ModelRequirement()
    for requirement in requirements:
        said = {
            part.name: value for part in fields(requirement) if (value := getattr(requirement, part.name)) is not None
        }
        if requirement.model is None and requirement.provider is None:
            said.pop("place")
        else:
            said["reason"] = requirement.reason
        whole = replace(whole, **said)
    return whole


def checked_address(url: str, place: str) -> str:
    """Return the address of a server without a slash at its end.

    Raises:
        ConfigError: It is not one.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or any(ord(character) <= 0x20 for character in url):
        raise ConfigError(f"{place} is not an address such as https://api.example.com/v1: {url!r}")
    return url.rstrip("/")


def _same_host(one: str, other: str) -> bool:
    """Return True if two addresses have the same scheme, host and port."""
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.hostname, first.port) == (second.scheme, second.hostname, second.port)


def is_loopback(url: str) -> bool:
    """Return True if an address is on this machine."""
    from ipaddress import ip_address

    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _models_of(vendor: Vendor) -> tuple[str, ...]:
    from panpan.config.models import known_models

    return known_models(vendor.name)


_TOKEN = "ANTHROPIC_AUTH_TOKEN"
"""Variable with a token of a gateway or an account, which has a header of its own, other than that of keys."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key, its place, and the headers that carry it in place of the usual one."""

    text: str = field(default="", repr=False)
    """The key; empty if the server needs none."""
    place: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def key_for(
    destination: Destination,
    requirements: Sequence[ModelRequirement],
    chooser: Chooser,
    env: Mapping[str, str],
    keys: StoredKeys = NO_KEYS,
) -> Key:
    """Return the key for a destination.

    Args:
        destination: Destination of the requests.
        requirements: Requirements of the sources of settings, weakest first.
        chooser: Chooses the destination for weaker sources alone.
        env: The environment.
        keys: Keys of vendors that the environment does not have.

    Raises:
        ConfigError: There is none although the server needs one, or it cannot be sent.
    """
    if destination.known is not None and not destination.known.takes_key:
        return Key()
    key = (
        _of_provider(destination, env)
        or _of_settings(destination, requirements, chooser, env)
        or _of_vendor(destination, env, keys)
    )
    if key is not None:
        return key
    vendor = destination.vendor
    if vendor is None or vendor.is_local or destination.is_on_this_machine or not destination.is_own_address:
        return Key()
    others = _whose(requirements)
    raise NoKeyError(f"no key for {vendor.name}; run: {LOGIN} {vendor.name}, or set {vendor.key_variables[0]}{others}")


def _of_provider(destination: Destination, env: Mapping[str, str]) -> Key | None:
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
    destination: Destination, requirements: Sequence[ModelRequirement], chooser: Chooser, env: Mapping[str, str]
) -> Key | None:
    """Return the key of the settings or PANPAN_API_KEY for the chosen provider, if it was meant for this one."""
    giver = _giver(requirements)
    if giver is None or not _belongs(destination, requirements, giver, chooser):
        return None
    requirement = requirements[giver]
    if requirement.api_key is not None:
        return Key(_sendable(requirement.api_key, f"api_key of {requirement.place}"), f"api_key of {requirement.place}")
    return _in_variable(requirement.api_key_env or "", "api_key_env", env)


def _of_vendor(destination: Destination, env: Mapping[str, str], keys: StoredKeys) -> Key | None:
    vendor = destination.vendor
    if vendor is None or not destination.is_own_address:
        return None
    for variable in vendor.key_variables:
        if text := env.get(variable, "").strip():
            text = _sendable(text, variable)
            return Key(text, variable, {"authorization": f"Bearer {text}"} if variable == _TOKEN else {})
    stored = keys.get(vendor.name)
    return None if stored is None else Key(_sendable(stored, LOGIN), LOGIN)


def _giver(requirements: Sequence[ModelRequirement]) -> int | None:
    """Return the position of the strongest source that gives a key."""
    return next((number for number in reversed(range(len(requirements))) if requirements[number].has_key), None)


def _belongs(destination: Destination, requirements: Sequence[ModelRequirement], giver: int, chooser: Chooser) -> bool:
    """Return True if the source of the key would send requests to the same destination, or leaves that open."""
    meant, whole = merge_requirements(requirements[: giver + 1]), merge_requirements(requirements)
    if meant.base_url != whole.base_url:
        return False
    if meant.model is None and meant.provider is None:
        return True
    try:
        there = chooser.destination(meant)
    except ConfigError:  # without a destination it cannot be this one
        return False
    return (there.provider, there.base_url) == (destination.provider, destination.base_url)


def _whose(requirements: Sequence[ModelRequirement]) -> str:
    giver = _giver(requirements)
    if giver is None:
        return " or PANPAN_API_KEY, or choose another model with --model"
    return f"; the key of {requirements[giver].place} was given for another provider and is not sent to this one"


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
