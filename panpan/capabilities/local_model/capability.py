"""The local model: `--model local` asks a small model that panpan runs by itself on this machine."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from panpan.config.models import FREE, ModelFacts
from panpan.errors import ConfigError
from panpan.models.provider_kind import KnownModel, ModelProfile, NamedProvider, ProviderKind
from panpan.session.capability import Capability
from panpan.types.llm import Provider

if TYPE_CHECKING:
    from panpan.models.factory import GenerationOptions, ResolvedModel


class LocalModelCapability(Capability):
    """Brings the embedded model along."""

    name = "local_model"
    providers: ClassVar[Mapping[str, str]] = {"local": f"{__name__}:EmbeddedModels"}


class EmbeddedModels(ProviderKind):
    """The one model that panpan runs itself."""

    def describe_model(self, name: str, env: Mapping[str, str], settings: NamedProvider | None) -> KnownModel:
        from panpan.capabilities.local_model.server import (
            CONTEXT_TOKENS,
            MAX_OUTPUT_TOKENS,
            MODEL_NAME,
            embedded_profile,
        )
        from panpan.capabilities.local_model.weight_store import embedded_store

        if name not in ("", MODEL_NAME):
            raise ConfigError(f"there is one local model, and {name!r} is another; use --model {MODEL_NAME}")
        return KnownModel(
            MODEL_NAME,
            str(embedded_store(env).path),
            ModelFacts(MODEL_NAME, CONTEXT_TOKENS, MAX_OUTPUT_TOKENS, FREE),
            "the small local model, on this machine",
            embedded_profile().model,
            is_local=True,
        )

    def provider(self, resolved: "ResolvedModel", *, idle_timeout_s: float | None) -> Provider:
        from panpan.capabilities.local_model.embedded import EmbeddedProvider
        from panpan.capabilities.local_model.server import embedded_profile, use_or_start_server
        from panpan.capabilities.local_model.weight_store import QWEN_CODER_1_5B, WeightStore, require_machine

        require_machine()
        store = WeightStore(Path(resolved.base_url).parent, QWEN_CODER_1_5B)
        store.require_ready()  # fail at the start, not with the first prompt; this compares the hash
        return EmbeddedProvider(partial(use_or_start_server, store), embedded_profile(), idle_timeout_s=idle_timeout_s)

    def profiles(self) -> Iterable[ModelProfile]:
        from panpan.capabilities.local_model.server import embedded_profile

        return (embedded_profile().model,)

    def ready_models(self, env: Mapping[str, str]) -> Mapping[str, str]:
        from panpan.capabilities.local_model.server import MODEL_NAME
        from panpan.capabilities.local_model.weight_store import embedded_store

        return {MODEL_NAME: "the small model that runs inside panpan"} if embedded_store(env).is_ready else {}

    def notes(self, options: "GenerationOptions") -> Iterator[str]:
        from panpan.models.factory import describe_setting

        if options.thinking_budget_tokens is not None:
            wish = describe_setting("thinking", options.places.get("thinking", ""))
            yield f"the small local model does not think, so {wish} has no effect"
        if options.effort is not None:
            wish = describe_setting("the effort", options.places.get("effort", ""))
            yield f"the small local model knows no effort, so {wish} has no effect"
        for name, value in (("top_p", options.sampling.top_p), ("top_k", options.sampling.top_k)):
            if value is not None:
                yield f"the small local model takes no {name}, so it has no effect"
