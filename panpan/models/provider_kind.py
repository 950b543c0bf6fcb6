"""Kinds of providers that are no vendor's server, but come with a feature or another package.

A kind has a name, such as `cassette`, and a class at a dotted place, `package.module:Class`. The class is imported only
for a model of that kind, by `--model KIND` or `--model KIND:NAME`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from panpan.config.models import ModelFacts
from panpan.errors import ConfigError, PanpanError
from panpan.types.dataclass import dataclass
from panpan.types.llm import Provider, ToolDefinition

if TYPE_CHECKING:
    from panpan.models.factory import GenerationOptions, ResolvedModel

ProviderKinds: TypeAlias = Mapping[str, str]
"""Place of the class of each kind, by name."""

NO_KINDS: ProviderKinds = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Parts of panpan that a model gets; the defaults are for models that can use all of it."""

    name: str = "full"
    """Name in the logs of sessions, which keep one system prompt and one list of tools for each profile."""
    system_prompt: str | None = None
    """Its own system prompt; None for panpan's."""
    tools: Mapping[str, ToolDefinition] | None = None
    """The tools that it gets, with the definitions for it; None for all, with their own definitions."""
    max_result_chars: int | None = None
    """Characters of one tool result; None for the limit that fits every large model."""
    fits_window: bool = False
    """True if its provider cuts requests down to the context window. Then it gets no project context."""
    temperature: float | None = None
    """Temperature if the settings have none; None for the server's own."""
    banner: str = ""
    """Warning for the user before they give it work; one line."""

    def includes(self, tool_name: str) -> bool:
        """Return True if the model gets a tool."""
        return self.tools is None or tool_name in self.tools

    def definition_of(self, tool: ToolDefinition) -> ToolDefinition:
        """Return the definition of a tool for the model, which must be one that it gets."""
        return tool if self.tools is None else self.tools[tool.name]

    def includes_all(self, tools: Sequence[ToolDefinition]) -> bool:
        """Return True if the model gets all these tools, such as those of a session that another model began."""
        return all(self.includes(tool.name) for tool in tools)


FULL = ModelProfile()


@dataclass(frozen=True, slots=True)
class NamedProvider:
    """A provider from the user's settings."""

    name: str
    dialect: str = "openai"
    base_url: str | None = None
    """Its address; None for that of the vendor of the same name."""
    models: tuple[str, ...] = ()
    api_key_env: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    body: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), repr=False)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model of a kind, as its class describes it before anything is sent."""

    model: str
    """Its name in requests and in the log."""
    base_url: str
    """Its address, or the path of a file."""
    facts: ModelFacts
    title: str
    """Its name and address, for people."""
    profile: ModelProfile = FULL
    """Parts of panpan that it gets."""
    reason: str = ""
    """Reason for the choice, as half a sentence; empty if the user's settings chose it."""
    takes_key: bool = False
    """True if it gets the key, headers and fields that the settings give for it."""
    is_local: bool = False
    """True if it is on this machine and serves one conversation at a time."""


class ProviderKind(ABC):
    """Models of one kind. It is created without arguments, on the first use of one of them."""

    @abstractmethod
    def describe_model(self, name: str, env: Mapping[str, str], settings: NamedProvider | None) -> KnownModel:
        """Return the description of a model, without sending anything.

        Args:
            name: The text after `KIND:`; empty if there is none.
            env: The environment.
            settings: The user's `[providers.KIND]`.

        Raises:
            ConfigError: There is no such model; the text says what to do.
        """

    @abstractmethod
    def provider(self, resolved: "ResolvedModel", *, idle_timeout_s: float | None) -> Provider:
        """Return the provider of a model.

        Args:
            resolved: The model, with its key.
            idle_timeout_s: Longest wait for the next bytes of a reply; None for the provider's own.

        Raises:
            ConfigError: The model cannot be used here.
        """

    def profiles(self) -> Iterable[ModelProfile]:
        """Return the profiles of its models other than `FULL`."""
        return ()

    def ready_models(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return the models that `--model` can choose now, each with a line about it, without sending anything."""
        return {}

    def notes(self, options: "GenerationOptions") -> Iterable[str]:
        """Return a sentence for each option that its models do not follow."""
        return ()


@contextmanager
def provider_kind(kind: str, place: str) -> Iterator[ProviderKind]:
    """Yield an object of the class of a kind, and turn its errors in the `with` block into a `ConfigError`.

    Raises:
        ConfigError: It does not exist, or fails.
    """
    module, _, name = place.partition(":")
    try:
        made: ProviderKind = getattr(import_module(module), name)()
        yield made
    except PanpanError:
        raise
    except Exception as exc:  # an error of another package
        raise ConfigError(f"the provider of {kind} models, {place}, failed: {type(exc).__name__}: {exc}") from exc


def ready_models(kinds: ProviderKinds, env: Mapping[str, str]) -> Mapping[str, str]:
    """Return the models of all kinds that can be chosen right now, each with a line about it."""
    ready: dict[str, str] = {}
    for kind, place in kinds.items():
        with suppress(ConfigError), provider_kind(kind, place) as models:
            ready |= models.ready_models(env)
    return ready


def known_profiles(kinds: ProviderKinds) -> Iterator[ModelProfile]:
    """Yield the profiles that models may have.

    Raises:
        ConfigError: One of the kinds does not exist, or fails.
    """
    yield FULL
    for kind, place in kinds.items():
        with provider_kind(kind, place) as known:
            profiles = tuple(known.profiles())
        yield from profiles
