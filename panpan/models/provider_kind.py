"""Kinds of providers that are not a vendor's server: what features and other packages bring along to be asked.

A kind has a name, such as `cassette`, and a class at a dotted place, `package.module:Class`. Only the place is known
until somebody asks for a model of that kind, by `--model KIND` or `--model KIND:NAME`.
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
"""Places of the classes, by the names of the kinds."""

NO_KINDS: ProviderKinds = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How much a model is given of panpan; the defaults are for models that can take all of it."""

    name: str = "full"
    """In the logs of sessions, which keep one system prompt and one list of tools for each profile."""
    system_prompt: str | None = None
    """Its own system prompt; None: panpan's."""
    tools: Mapping[str, ToolDefinition] | None = None
    """The tools that it gets, as it is told of them; None: all, with their own descriptions."""
    max_result_chars: int | None = None
    """Characters of one tool result; None: what fits every large model."""
    fits_window: bool = False
    """True if its provider leaves out what does not fit the context window. Then it is told nothing of the project."""
    temperature: float | None = None
    """Where the settings say none; None: the server's own."""
    banner: str = ""
    """What the user should know of it before he gives it work; one line."""

    def gets(self, tool_name: str) -> bool:
        """Return True if the model gets a tool."""
        return self.tools is None or tool_name in self.tools

    def definition_of(self, tool: ToolDefinition) -> ToolDefinition:
        """Return a tool that it gets as it is told of it."""
        return tool if self.tools is None else self.tools[tool.name]

    def takes(self, tools: Sequence[ToolDefinition]) -> bool:
        """Return True if the model can be told of all these tools, as those of a session that another one began."""
        return all(self.gets(tool.name) for tool in tools)


FULL = ModelProfile()


@dataclass(frozen=True, slots=True)
class NamedProvider:
    """A provider from the user's settings."""

    name: str
    dialect: str = "openai"
    base_url: str | None = None
    """None: that of the vendor of the same name."""
    models: tuple[str, ...] = ()
    api_key_env: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    body: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), repr=False)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model of a kind, as its class knows it before anything is sent."""

    model: str
    """Its name in requests and in the log."""
    base_url: str
    """Where it is: an address, or the path of a file."""
    facts: ModelFacts
    title: str
    """Its name for people, and where it is."""
    profile: ModelProfile = FULL
    """How much of panpan it is given."""
    reason: str = ""
    """Why it was chosen, as half a sentence; empty: because the user's settings say so."""
    takes_key: bool = False
    """True if it is sent the key, headers and fields that the settings give for it."""
    is_local: bool = False
    """True if it is on this machine and serves one conversation at a time."""


class ProviderKind(ABC):
    """Models of one kind. It is made without arguments, when one of them is asked for."""

    @abstractmethod
    def known_model(self, name: str, env: Mapping[str, str], settings: NamedProvider | None) -> KnownModel:
        """Return what is known of a model; nothing is sent to find out.

        Args:
            name: The text behind `KIND:`; empty where there is none.
            env: The environment.
            settings: The user's `[providers.KIND]`.

        Raises:
            ConfigError: There is no such model; says what to do.
        """

    @abstractmethod
    def provider(self, resolved: "ResolvedModel", *, idle_timeout_s: float | None) -> Provider:
        """Return what asks a model.

        Args:
            resolved: The model, with its key.
            idle_timeout_s: Longest wait for the next bytes of a reply; None: the provider's own.

        Raises:
            ConfigError: It cannot be asked here.
        """

    def profiles(self) -> Iterable[ModelProfile]:
        """Return the profiles of its models other than `FULL`."""
        return ()

    def ready_models(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return what `--model` can choose right now, each with a line about it; nothing is sent to find out."""
        return {}

    def notes(self, answers: "GenerationOptions") -> Iterable[str]:
        """Return a sentence for each option that its models do not follow."""
        return ()


@contextmanager
def provider_kind(kind: str, place: str) -> Iterator[ProviderKind]:
    """Yield the class of a kind, made; whatever goes wrong with it in the `with` block is an error of its own.

    Raises:
        ConfigError: It is not there, or fails.
    """
    module, _, name = place.partition(":")
    try:
        made: ProviderKind = getattr(import_module(module), name)()
        yield made
    except PanpanError:
        raise
    except Exception as exc:  # of another package, whose mistakes are told as such
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
        ConfigError: One of the kinds is not there, or fails.
    """
    yield FULL
    for kind, place in kinds.items():
        with provider_kind(kind, place) as known:
            profiles = tuple(known.profiles())
        yield from profiles
