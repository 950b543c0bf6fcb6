"""Model clients from settings and environment.

No SDK is imported here and nothing is sent: the provider does the rest with the first request.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from panpan.config.models import VENDORS, ModelFacts, vendor_named
from panpan.config.stored_keys import NO_KEYS, StoredKeys
from panpan.errors import ConfigError
from panpan.models.model_choice import Chooser, ModelRequirement, NoModelError, key_for, merge_requirements
from panpan.models.provider_kind import FULL, NO_KINDS, ModelProfile, NamedProvider, ProviderKinds, provider_kind
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort, ModelOptions, Provider, Sampling, ThinkingDisplay

if TYPE_CHECKING:
    from panpan.config.settings import Settings
    from panpan.config.settings_file import Source
    from panpan.config.sources import Loaded, Origin
    from panpan.models.client import LLMClient, Pace
    from panpan.models.providers.vendor_profiles import VendorProfile


DEFAULT_OUTPUT_TOKENS = 32_000
"""Limit on a reply unless the settings say otherwise: some servers count it against the rate limit before the reply
begins."""


_TOLD_WITH_PLACE = ("thinking", "effort", "task_budget_tokens", "betas")
"""Settings whose place is named where a model does not follow them."""

_TASK_BUDGETS = "task-budgets-2026-03-13"
"""Feature of the Messages API that budgets of tasks belong to."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model with its address, its key and its protocol, ready for `create_client`."""

    provider: str
    kind: str
    """The protocol, or the name of a provider kind."""
    model: str
    """The provider's name of the model."""
    base_url: str
    """Address of the server, or its equivalent for a provider kind, such as the path of a file."""
    facts: ModelFacts
    reason: str
    """Reason for this choice, on one line, for faces."""
    key_place: str = ""
    """Place of the key; empty if none is sent."""
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Fields to add to each request for a reply."""
    profile: ModelProfile = FULL
    """Parts of panpan that the model gets."""
    kind_place: str = ""
    """Place of the class of its provider kind; empty for a protocol of panpan itself."""
    is_local: bool = False
    """True if it is on this machine and serves one conversation at a time."""
    shared_folder: Path | None = None
    """Folder of the pace that its requests share with those of other panpan; None if they share none."""


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """Options for the model's replies, from the settings."""

    max_output_tokens: int | None = None
    """Limit on the tokens of a reply; None for `DEFAULT_OUTPUT_TOKENS`."""
    thinking_budget_tokens: int | None = None
    """Limit on the tokens of extended thinking; None for no extended thinking."""
    is_budget_chosen: bool = False
    """True if the user set the budget, False if it is the default."""
    effort: Effort | None = None
    thinking_display: ThinkingDisplay | None = None
    task_budget_tokens: int | None = None
    """Tokens that the model is told it has for the work; None to tell it nothing."""
    betas: Sequence[str] = ()
    """Names of features of the Messages API that have to be asked for."""
    sampling: Sampling = Sampling()
    places: Mapping[str, str] = field(default_factory=dict)
    """Places of `thinking` and `effort`, such as "--effort" or `FILE:LINE`; empty if they were set in the session."""
    max_tries: int | None = None
    """Limit on the tries of a request; None for the client's own."""
    idle_timeout_s: float | None = None
    """Longest wait for the next bytes; None for the provider's own."""

    def in_session(self, key: str, **changes: Any) -> Self:
        """Return the options with a change from within the session, which replaces the place of that key."""
        return replace(self, **changes, places={**self.places, key: ""})


def resolve_model(
    requirements: Sequence[ModelRequirement],
    env: Mapping[str, str],
    *,
    providers: Mapping[str, NamedProvider] | None = None,
    aliases: Mapping[str, str] | None = None,
    kinds: ProviderKinds = NO_KINDS,
    keys: StoredKeys = NO_KEYS,
) -> ResolvedModel:
    """Choose the model, its address and its key.

    The requirements come from the sources of settings, weakest first, without files of the project.

    Raises:
        NoModelError: Nothing names a model; a face can offer those that `local_servers` finds.
        ModelNotNamedError: A server is named, but no model.
        ConfigError: The requirements do not lead to a model; the text says what to set.
    """
    chooser = Chooser(providers or {}, aliases or {}, env, kinds, keys)
    destination = chooser.destination(merge_requirements(requirements))
    known = destination.known
    key = key_for(destination, requirements, chooser, env, keys)
    extras = destination.extras
    return ResolvedModel(
        provider=destination.provider,
        kind=destination.kind,
        model=destination.model,
        base_url=destination.base_url,
        facts=destination.facts,
        reason=f"{destination.title}, since {destination.reason}",
        key_place=key.place,
        api_key=key.text,
        headers={**(extras.headers if extras else {}), **key.headers},
        body=extras.body if extras else {},
        profile=destination.profile,
        kind_place="" if known is None else kinds[destination.kind],
        is_local=known.is_local if known else destination.vendor is not None and destination.vendor.is_local,
    )


def resolve_from(
    loaded: "Loaded", env: Mapping[str, str], *, kinds: ProviderKinds, why_override: str | None = None
) -> ResolvedModel:
    """Choose the model as `resolve_model` does, from loaded settings.

    A file of the project may only choose among the models at the address that the user's own settings lead to. Any
    other choice of it is ignored, and the reason says so.

    `why_override` is the reason why the overrides name the model, as half a sentence; None if the command line does.

    Raises:
        NoModelError: Nothing names a model.
        ConfigError: The settings do not lead to a model.
    """
    resolved = _resolve_from(loaded, env, kinds, why_override)
    shared_folder = loaded.settings.retry.shared_folder
    return resolved if shared_folder is None else replace(resolved, shared_folder=shared_folder)


def _resolve_from(
    loaded: "Loaded", env: Mapping[str, str], kinds: ProviderKinds, why_override: str | None
) -> ResolvedModel:
    providers = {name: _named(name, loaded.settings) for name in loaded.settings.providers}
    resolve = partial(
        resolve_model, env=env, providers=providers, aliases=loaded.settings.aliases, kinds=kinds, keys=loaded.keys
    )
    requirement = partial(_requirement, why_override=why_override)
    own = [requirement(source) for source in loaded.sources if source.kind != "project"]
    with_project = [
        _project_requirement(source) if source.kind == "project" else requirement(source) for source in loaded.sources
    ]
    if merge_requirements(with_project) == merge_requirements(own):
        return resolve(own)
    try:
        users = resolve(own)
    except ConfigError as exc:
        if merge_requirements(own).has_key:
            raise  # a project must not decide where the user's key goes
        wanted = resolve(with_project)  # the project may supply what was missing
        if isinstance(exc, NoModelError) and wanted.provider not in providers:
            raise  # not to an address that the user did not name: any program at that port would get their code
        return wanted
    return _if_at_same_place(users, partial(resolve, with_project))


def _if_at_same_place(users: ResolvedModel, resolve: Callable[[], ResolvedModel]) -> ResolvedModel:
    """Return the project's model if it is at the address that the user's own settings lead to, else the user's."""
    try:
        wanted = resolve()
    except ConfigError as exc:
        return replace(users, reason=f"{users.reason}; the model that the project wants is not used: {exc}")
    if (wanted.provider, wanted.base_url) == (users.provider, users.base_url):
        return wanted
    note = f"{wanted.model}, which the project wants, is not used, since it is at {wanted.provider}"
    return replace(users, reason=f"{users.reason}; {note}")


def generation_options(settings: "Settings", origins: "Mapping[str, Origin] | None" = None) -> GenerationOptions:
    """Return the options for the model's replies in the settings."""
    return GenerationOptions(
        max_output_tokens=settings.max_output_tokens,
        thinking_budget_tokens=settings.thinking_budget_tokens if settings.thinking else None,
        is_budget_chosen="thinking_budget_tokens" in settings.model_fields_set,
        effort=settings.effort,
        thinking_display=settings.thinking_display,
        task_budget_tokens=settings.task_budget_tokens,
        betas=settings.betas,
        sampling=Sampling(settings.temperature, settings.top_p, settings.top_k),
        places={key: str(origins[key]) for key in _TOLD_WITH_PLACE if origins and key in origins},
        max_tries=settings.retry.max_tries,
        idle_timeout_s=settings.idle_timeout_s,
    )


def create_client(
    resolved: ResolvedModel,
    options: GenerationOptions | None = None,
    *,
    wrap_provider: Callable[[Provider], Provider] = lambda provider: provider,
    fallbacks: "Sequence[LLMClient]" = (),
) -> "LLMClient":
    """Return a client for a model; close it when it is no longer needed.

    Args:
        resolved: The model.
        options: Options for its replies; None for the defaults.
        wrap_provider: Wraps the model's provider, or replaces it.
        fallbacks: Clients that are asked in turn if the model is overloaded or unavailable.

    Raises:
        ConfigError: It cannot be asked, such as a tape that cannot be read.
    """
    from panpan.models.client import LLMClient, RetryPolicy

    options = options or GenerationOptions()
    policy = RetryPolicy() if options.max_tries is None else RetryPolicy(max_tries=options.max_tries)
    resolved = _with_betas(resolved, options)
    return LLMClient(
        wrap_provider(create_provider(resolved, idle_timeout_s=options.idle_timeout_s)),
        model_options(resolved, options),
        price=resolved.facts.price,
        key_place=resolved.key_place,
        retry=policy,
        fallbacks=fallbacks,
        pace=_pace_of(resolved),
    )


def _pace_of(resolved: ResolvedModel) -> "Pace | None":
    if resolved.shared_folder is None or resolved.is_local:  # "local" is another server on each machine
        return None
    from panpan.models.pace import shared_pace  # a start pays for it only where it is set

    return shared_pace(resolved.shared_folder, resolved.provider)


def _with_betas(resolved: ResolvedModel, options: GenerationOptions) -> ResolvedModel:
    """Return a model whose requests ask for the features that are wanted, where its protocol has such."""
    betas = [*options.betas, *((_TASK_BUDGETS,) if options.task_budget_tokens is not None else ())]
    if resolved.kind != "anthropic" or not betas:
        return resolved
    given = [name.strip() for name in resolved.headers.get("anthropic-beta", "").split(",") if name.strip()]
    return replace(resolved, headers={**resolved.headers, "anthropic-beta": ",".join(dict.fromkeys((*given, *betas)))})


def create_provider(resolved: ResolvedModel, *, idle_timeout_s: float | None = None) -> Provider:
    """Return the provider of a model.

    Raises:
        ConfigError: It cannot be asked, such as a tape that cannot be read.
    """
    if resolved.kind_place:
        with provider_kind(resolved.kind, resolved.kind_place) as kind:
            return kind.provider(resolved, idle_timeout_s=idle_timeout_s)
    if resolved.kind == "anthropic":  # each provider's module is loaded only when it is used
        from panpan.models.providers.anthropic import AnthropicProvider

        return AnthropicProvider(
            api_key=resolved.api_key,
            base_url=resolved.base_url.removesuffix("/v1"),  # the SDK adds it itself
            name=resolved.provider,
            headers=resolved.headers,
            idle_timeout_s=idle_timeout_s,
        )
    from panpan.models.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider(
        api_key=resolved.api_key,
        base_url=resolved.base_url,
        name=resolved.provider,
        profile=profile_of(resolved),
        headers=resolved.headers,
        idle_timeout_s=idle_timeout_s,
    )


def profile_of(resolved: ResolvedModel) -> "VendorProfile":
    """Return the profile of the model, judging by its vendor, its address or its name."""
    from panpan.models.providers.vendor_profiles import GENERIC, profile_elsewhere, profile_for

    vendor = vendor_named(resolved.provider)
    if vendor is not None and (vendor.model_pattern is None or vendor.makes(resolved.model)):
        return profile_for(vendor.base_url)
    openai = vendor_named("openai")
    if openai is not None and openai.makes(resolved.model):
        return profile_for(openai.base_url)  # its newer models refuse fields that all others accept
    profile = profile_for(resolved.base_url, resolved.provider)
    maker = next((vendor for vendor in VENDORS if vendor.makes(resolved.model.rpartition("/")[2])), None)
    return profile_elsewhere(profile_for(maker.base_url)) if maker is not None and profile is GENERIC else profile


def model_options(resolved: ResolvedModel, options: GenerationOptions) -> ModelOptions:
    """Return the options for the model's replies, within the model's limits."""
    wanted, sampling = options.max_output_tokens or DEFAULT_OUTPUT_TOKENS, options.sampling
    limit = resolved.facts.max_output_tokens
    is_limit_sure = resolved.facts.is_known or options.max_output_tokens is None
    return ModelOptions(
        model=resolved.model,
        max_output_tokens=min(wanted, limit) if is_limit_sure else wanted,
        thinking_budget_tokens=options.thinking_budget_tokens,
        effort=options.effort,
        thinking_display=options.thinking_display,
        task_budget_tokens=options.task_budget_tokens,
        temperature=resolved.profile.temperature if sampling.temperature is None else sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        extra_body=resolved.body,
    )


def _requirement(source: "Source", why_override: str | None = None) -> ModelRequirement:
    def text(key: str) -> str | None:
        value = source.values.get(key)
        if value is None:
            return None
        reveal = getattr(value, "get_secret_value", None)
        return str(reveal() if reveal else value) or None

    reason = why_override if source.kind == "flag" and text("model") is not None else None
    return ModelRequirement(
        source.place,
        text("model"),
        text("provider"),
        text("base_url"),
        text("api_key"),
        text("api_key_env"),
        reason,
    )


def _project_requirement(source: "Source") -> ModelRequirement:
    """Return the requirement of a project's file, which may name a model but neither address nor key."""
    return ModelRequirement(source.place, model=_requirement(source).model)


def _named(name: str, settings: "Settings") -> NamedProvider:
    given = settings.providers[name]
    vendor = vendor_named(name)
    dialect = vendor.dialect if vendor is not None and "kind" not in given.model_fields_set else given.kind
    return NamedProvider(
        name=name,
        dialect=dialect,
        base_url=given.base_url,
        models=tuple(given.models),
        api_key_env=given.api_key_env,
        api_key=given.api_key.get_secret_value() if given.api_key is not None else None,
        headers={header: value.get_secret_value() for header, value in given.headers.items()},
        body=given.body,
    )


def notes_on_options(resolved: ResolvedModel, options: GenerationOptions) -> tuple[str, ...]:
    """Return a sentence for each option that the model does not follow as it was set."""
    if resolved.kind_place:
        with provider_kind(resolved.kind, resolved.kind_place) as kind:
            return tuple(kind.notes(options))
    return tuple((_of_anthropic if resolved.kind == "anthropic" else _of_openai)(resolved, options))


def _of_anthropic(resolved: ResolvedModel, options: GenerationOptions) -> Iterator[str]:
    from panpan.models.providers.anthropic_request import takes_thinking_budget

    if options.thinking_budget_tokens is None or takes_thinking_budget(resolved.model):
        return
    if options.is_budget_chosen:
        yield f"{resolved.model} decides itself how much it thinks, so the thinking budget has no effect; use --effort"


def _of_openai(resolved: ResolvedModel, options: GenerationOptions) -> Iterator[str]:
    from panpan.models.providers.openai_request import nearest_effort

    profile, who = profile_of(resolved), f"{resolved.model} at {resolved.provider}"
    if options.thinking_budget_tokens is not None:
        if not profile.thinking:
            requirement = describe_setting("thinking", options.places.get("thinking", ""))
            yield f"{who} has no switch for thinking that panpan knows, so {requirement} has no effect; use --effort"
        elif options.is_budget_chosen and "$budget" not in profile.thinking.values():
            yield f"{who} takes no number of tokens to think, so the thinking budget has no effect; use --effort"
    if options.task_budget_tokens is not None:
        told = describe_setting("the task budget", options.places.get("task_budget_tokens", ""))
        yield f"{who} cannot be told of a budget, so {told} has no effect; use --max-tokens for a limit"
    if options.betas:
        yield f"{who} has no betas, so {describe_setting('betas', options.places.get('betas', ''))} has no effect"
    if options.effort is not None and (sent := nearest_effort(options.effort, profile.efforts)) != options.effort:
        yield f"{who} knows no effort {options.effort}, so {sent} is asked for"


def describe_setting(what: str, place: str) -> str:
    """Return a requirement as the user made it: the flag itself, or the setting with its place."""
    if not place or place.startswith("--"):
        return place or what
    return f"{what} that {place} asks for"
