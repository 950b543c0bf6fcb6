"""Cassettes: `--model cassette:PATH` asks a recorded conversation, or a tape that was written by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from panpan.config.models import FREE, UNKNOWN_OUTPUT_TOKENS, ModelFacts
from panpan.errors import ConfigError
from panpan.models.provider_kind import KnownModel, NamedProvider, ProviderKind
from panpan.session.capability import Capability
from panpan.types.llm import Provider

if TYPE_CHECKING:
    from panpan.models.factory import ResolvedModel

CONTEXT_TOKENS = 200_000
"""Context window that a tape claims to have, large enough that nothing is compacted for it."""


class Cassettes(Capability):
    """Brings cassettes along as models."""

    name = "cassettes"
    providers: ClassVar[Mapping[str, str]] = {"cassette": f"{__name__}:CassetteModels"}


class CassetteModels(ProviderKind):
    """Files that are played in place of a model."""

    def describe_model(self, name: str, env: Mapping[str, str], settings: NamedProvider | None) -> KnownModel:
        text = f"cassette:{name}"
        if not name:
            raise ConfigError("cassette: names no file; use --model cassette:PATH")
        try:
            file = Path(name).expanduser()
        except RuntimeError as exc:
            raise ConfigError(f"{text} names a home folder that does not exist; write the whole path") from exc
        facts = ModelFacts(text, CONTEXT_TOKENS, UNKNOWN_OUTPUT_TOKENS, FREE)
        title = f"{text} at cassette ({file})"
        return KnownModel(text, str(file), facts, title, reason="it is a tape", is_local=True)

    def provider(self, resolved: "ResolvedModel", *, idle_timeout_s: float | None) -> Provider:
        from panpan.capabilities.cassettes.recorded_file import is_recorded

        path = Path(resolved.base_url)
        if is_recorded(path):
            from panpan.capabilities.cassettes.recorded_reply import RecordedProvider

            return RecordedProvider.from_file(path)
        from panpan.capabilities.cassettes.tape import CassetteProvider

        return CassetteProvider.from_file(path)
