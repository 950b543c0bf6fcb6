"""The first line of a recorded cassette: what a replay has to know before anything is said."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from panpan.capabilities.cassettes.recorded_file import VERSION, RecordedFile
from panpan.config.keys import dotted, put
from panpan.config.settings import Settings
from panpan.config.settings_file import Source, check
from panpan.errors import ConfigError
from panpan.models.provider_kind import FULL
from panpan.session.tap import Askers, Opening
from panpan.types.dataclass import dataclass

_SETTINGS = (
    ("max_output_tokens",),
    ("thinking",),
    ("thinking_budget_tokens",),
    ("effort",),
    ("temperature",),
    ("top_p",),
    ("top_k",),
    ("tools", "enabled"),
    ("permission", "mode"),
    ("permission", "doom_loop"),
    ("compaction", "enabled"),
    ("compaction", "reserve_tokens"),
    ("compaction", "keep_recent_tokens"),
)
"""Settings that change what a model is sent."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line says."""

    model: str
    """The name of the model that was asked first."""
    workspace: str
    """The folder that was worked in, canonical."""
    settings: Mapping[str, Any]
    """Those that change what a model is sent, by dotted key."""
    asks: frozenset[str]
    """Which of "permission", "user" and "plan" somebody was there for."""
    is_attended: bool
    is_resumed: bool
    """Whether the session had begun before the recording."""
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    profile: str = FULL.name
    """How much of panpan the model was given."""
    without_use: Sequence[str] | None = None
    """Names of tools that could not work where it was recorded; None: it does not say."""


def header_line(opening: Opening, askers: Askers) -> dict[str, Any]:
    """Return the first line of a recording."""
    setup = opening.setup
    return {
        "type": "cassette",
        "version": VERSION,
        "panpanVersion": opening.panpan_version,
        "recordedAt": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "model": setup.model.model,
        "provider": setup.model.provider,
        "profile": setup.profile.name,
        "workspace": str(setup.cwd),
        "settings": _settings(opening),
        "asks": [name for name in ("permission", "user", "plan") if getattr(askers, name) is not None],
        "isAttended": opening.is_attended,
        "isResumed": bool(opening.messages),
        "systemPrompt": opening.system_prompt,
        "appendSystemPrompt": opening.append_system_prompt,
        "withoutUse": list(opening.without_use),
    }


def header_of(file: RecordedFile) -> Header:
    """Return what the first line says.

    Raises:
        ConfigError: It is damaged.
    """
    match file.header:
        case {
            "model": str(model),
            "workspace": str(workspace),
            "settings": dict(settings),
            "asks": list(asks),
            "systemPrompt": str() | None as system_prompt,
            "appendSystemPrompt": str() | None as append_system_prompt,
        } if Path(workspace).is_absolute():
            return Header(
                model,
                workspace,
                _checked(settings, f"cassette {file.path}:1"),
                frozenset(map(str, asks)),
                is_attended=file.header.get("isAttended") is True,
                is_resumed=file.header.get("isResumed") is True,
                system_prompt=system_prompt,
                append_system_prompt=append_system_prompt,
                profile=str(file.header.get("profile", FULL.name)),
                without_use=_names(file.header.get("withoutUse")),
            )
        case _:
            raise ConfigError(f"cassette {file.path}:1 does not say what a replay has to know")


def _names(found: Any) -> Sequence[str] | None:
    return [str(name) for name in found] if isinstance(found, list) else None


def _checked(settings: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return what counts of the recorded settings.

    Raises:
        ConfigError: One cannot be.
    """
    chosen = {key: value for key, value in settings.items() if key in _keys()}
    values: dict[str, Any] = {}
    for key, value in chosen.items():
        put(values, tuple(key.split(".")), value)
    check(Source("flag", place, values, {}))
    return chosen


def _keys() -> frozenset[str]:
    return frozenset({*map(dotted, _SETTINGS), "max_rounds", "permission.deny", "compaction.window_tokens"})


def _settings(opening: Opening) -> dict[str, Any]:
    """Return the settings that are other than the defaults."""
    settings, defaults = opening.setup.settings.model_dump(mode="json"), Settings().model_dump(mode="json")
    chosen: dict[str, Any] = {}
    for path in _SETTINGS:
        value, default = settings, defaults
        for part in path:
            value, default = value[part], default[part]
        if value != default:
            chosen[dotted(path)] = value
    if removed := [rule for rule in opening.setup.settings.permission.deny if "(" not in rule]:
        chosen["permission.deny"] = removed  # takes tools away, which the model is told of
    if opening.setup.context_window is not None:
        chosen["compaction.window_tokens"] = opening.setup.context_window
    return chosen | ({} if opening.max_rounds is None else {"max_rounds": opening.max_rounds})
