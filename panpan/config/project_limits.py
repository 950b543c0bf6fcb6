"""Limits on the settings file of a project, which the author of the repository wrote.

It may always make panpan stricter. Once the user trusts the project, it may also set the parameters of models, choose
among a vendor's models, and allow calls without a question. Only the user decides where requests go, with which key,
and how much may be spent. Any other setting is ignored with a warning and not refused with an error: a repository must
not be able to keep panpan from starting by asking for too much.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from panpan.config.keys import KeyPath, dotted, leaves, put, quote_key, shown
from panpan.config.models import VENDORS, Vendor, vendor_named
from panpan.config.settings import MERGED_LISTS, LimitSettings, Settings, Table, settings_type
from panpan.config.settings_file import Source
from panpan.system.processes.limits import GB, Limits, default_processes
from panpan.types.dataclass import dataclass

_TIGHTENING = frozenset(
    {
        ("version",),
        ("permission", "ask"),
        ("permission", "deny"),
        ("permission", "mode"),
        ("permission", "external_directory"),
        ("permission", "doom_loop"),
        ("max_rounds",),
        ("max_budget_usd",),
        ("max_tokens",),
        ("max_seconds",),
        ("tools", "enabled"),
    }
)
"""Keys with which an untrusted project can only make panpan stricter, within the limits of `_objection`."""

_LIMITS = frozenset({("max_rounds",), ("max_budget_usd",), ("max_tokens",), ("max_seconds",)})
"""Keys that a project may only lower."""

_TRUSTED = frozenset(
    {
        ("permission", "allow"),
        ("max_output_tokens",),
        ("thinking",),
        ("thinking_budget_tokens",),
        ("effort",),
        ("temperature",),
        ("top_p",),
        ("top_k",),
    }
)
"""Keys that every trusted project may set."""

_SIZES_OF_MODELS = frozenset({"fast", "smart"})
"""Names of models that every vendor has."""

STRICTNESS: Mapping[str, int] = {
    mode: number
    for number, mode in enumerate(("bypassPermissions", "auto", "acceptEdits", "default", "dontAsk", "plan"))
}
"""Strictness of each permission mode; a higher number is stricter."""
_BEHAVIOURS = ("allow", "ask", "deny")
"""Behaviours from the loosest to the strictest."""
_MODES_OF_PROJECTS = ("default", "plan")


@dataclass(frozen=True, slots=True)
class LimitedProject:
    """A project's settings file within its limits."""

    source: Source
    """The file with the settings that take effect."""
    warnings: Sequence[str]
    """One warning for each key that no project may set."""
    needing_trust: Sequence[KeyPath]
    """Keys that take effect only if the project is trusted, in the order of the file."""


def limit_project(
    project: Source, *, weaker: Settings, own: Settings, env: Mapping[str, str], is_trusted: bool
) -> LimitedProject:
    """Return the source without the settings that a project may not set.

    Args:
        project: The checked settings file of the project.
        weaker: Settings of the weaker sources, which the project may only tighten.
        own: Settings of all the user's own sources together, including the stronger ones.
        env: The environment; a vendor's key in it is the user's choice if nothing else is.
        is_trusted: True if the user trusts the project as it is.
    """
    values: dict[str, Any] = {}
    needing_trust: list[KeyPath] = []
    warnings: dict[KeyPath, str] = {}
    for path, value in leaves(project.values):
        if value in ({}, []):
            continue
        reason = _objection(path, value, weaker, own, env)
        if reason is None:
            needs_trust = not _only_tightens(path, value, weaker)
            if needs_trust:
                needing_trust.append(path)
            if is_trusted or not needs_trust:
                put(values, path, value)
        else:
            group = path if (path[0] == "permission" or path[:2] == ("tools", "enabled")) else path[:1]
            warnings.setdefault(group, f"{project.place_of(path)}: {dotted(group)} is ignored: {reason}")
    return LimitedProject(replace(project, values=values), tuple(warnings.values()), tuple(needing_trust))


def _only_tightens(path: KeyPath, value: Any, weaker: Settings) -> bool:
    if path == ("max_output_tokens",):
        return _objection_to_limit(value, weaker.max_output_tokens) is None
    return path in _TIGHTENING or path[:2] in _TIGHTENING


def _objection(path: KeyPath, value: Any, weaker: Settings, own: Settings, env: Mapping[str, str]) -> str | None:
    if path in _TRUSTED or _is_table_of_trusted(path[0]):
        return None
    if path in (("version",), ("permission", "ask"), ("permission", "deny")):
        return None
    if path == ("model",):
        return _objection_to_model(value, own, env)
    if path == ("permission", "mode"):
        return _objection_to_mode(value, weaker)
    if path in (("permission", "external_directory"), ("permission", "doom_loop")):
        own_choice = getattr(weaker.permission, path[1])
        return None if _BEHAVIOURS.index(value) >= _BEHAVIOURS.index(own_choice) else _loosened(path, own_choice)
    if path in _LIMITS:
        return _objection_to_limit(value, getattr(weaker, path[0]))
    if path[:2] == ("tools", "enabled"):
        return "a project may switch tools off only" if value else None
    if path in MERGED_LISTS:
        return "a project may not give itself rights; allow it in your own settings if you want it"
    return "a project may not set it; set it in your own settings if you want it"


def _is_table_of_trusted(name: str) -> bool:
    """Return True if a trusted project may set all of a feature's table."""
    field = settings_type().model_fields.get(name)
    kind = None if field is None else field.annotation
    return isinstance(kind, type) and issubclass(kind, Table) and kind.is_for_trusted_projects


def _objection_to_model(model: str, own: Settings, env: Mapping[str, str]) -> str | None:
    """Return the objection to a project's model, if it is not one of the user's vendor.

    The project must not send the user's files to another vendor. Only names decide here, so that a warning can name the
    line. `models.factory` decides the rest by address: it refuses a project's model at any other address than the
    user's.
    """
    if model.startswith("cassette:"):
        return "a project may not put a tape in the place of a model"
    if own.base_url is not None or model in _models_of_user(own):
        return None  # with an address set by the user, everything goes there
    chosen, wanted = _chosen_provider(own, env), _provider_in(model, own)
    if chosen is None or wanted is None or chosen == wanted:
        return None
    return f"{quote_key(model)} would send your requests to {shown(wanted)}, not to {chosen}; use --model to choose it"


def _models_of_user(own: Settings) -> set[str | None]:
    names = {own.model, *_SIZES_OF_MODELS, *own.aliases, *own.aliases.values()}
    for provider, settings in own.providers.items():
        names.update(settings.models, (f"{provider}/{name}" for name in settings.models))
    return names


def _chosen_provider(own: Settings, env: Mapping[str, str]) -> str | None:
    """Return the provider that the user's own sources choose, as far as that is known without asking a server."""
    if own.provider is not None:
        return own.provider
    if own.model is not None:
        return _provider_in(own.aliases.get(own.model, own.model), own)
    return next((vendor.name for vendor in VENDORS if _has_key(vendor, env)), None)


def _provider_in(model: str, own: Settings) -> str | None:
    listed = next((name for name, settings in own.providers.items() if model in settings.models), None)
    prefix, slash, _ = model.partition("/")
    if listed is not None or (slash and (prefix in own.providers or vendor_named(prefix) is not None)):
        return listed or prefix
    return next((vendor.name for vendor in VENDORS if vendor.makes(model)), None)


def _has_key(vendor: Vendor, env: Mapping[str, str]) -> bool:
    return any(env.get(variable, "").strip() for variable in vendor.key_variables)


def _objection_to_mode(mode: str, weaker: Settings) -> str | None:
    if mode not in _MODES_OF_PROJECTS:
        return f"a project may only set {' or '.join(_MODES_OF_PROJECTS)}"
    if STRICTNESS[mode] < STRICTNESS[weaker.permission.mode]:
        return f"a project may not loosen the mode {shown(weaker.permission.mode)}"
    return None


def _loosened(path: KeyPath, own_choice: str) -> str:
    return f"a project may not loosen {dotted(path)}, and yours is {own_choice}"


def _objection_to_limit(limit: float, weaker: float | None) -> str | None:
    return None if weaker is None or limit <= weaker else f"a project may only lower it, and it is {weaker}"


def limits_of(settings: LimitSettings) -> Limits:
    """Return the limits on one command."""
    processes = default_processes() if settings.processes is None else settings.processes
    return Limits(
        memory_bytes=None if settings.memory_gb is None else int(settings.memory_gb * GB),
        processes=processes if isinstance(processes, int) else None,
        file_bytes=settings.file_gb * GB if isinstance(settings.file_gb, int) else None,
        cpu_s=settings.cpu_s,
        required=frozenset(settings.model_fields_set),
    )
