"""The joined settings of all sources, with the origin of each value.

Weakest first: defaults, the user's file, the project's file, the user's file for the project, the environment, the
settings that the command line gives for one run, its other flags. A stronger source replaces the value of a weaker one;
permission rules and additional directories are joined.

pydantic-settings would do part of this. It is not used because importing it takes longer than all of this, and because
it can neither name the line of an error nor trust one source less than another.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from panpan.config.claude_settings import claude_files
from panpan.config.keys import KeyPath, dotted, flatten, is_secret, leaves, put, shown
from panpan.config.locations import Locations
from panpan.config.places import Places
from panpan.config.project_files import PROJECT_SETTINGS
from panpan.config.run_settings import read_environment
from panpan.config.settings import MERGED_LISTS, Settings, rule_text, settings_type
from panpan.config.settings_file import Source, SourceKind, check, parse_settings, read_settings_file
from panpan.config.stored_keys import NO_KEYS, StoredKeys
from panpan.config.trust import NO_TRUST, ProjectTrust, trust_of
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Names of overrides for error messages; passed among the overrides, under any key."""

    by_setting: Mapping[str, str]
    """Names by dotted key of a setting; any other is named as in Python, `overrides["KEY"]`."""


@dataclass(frozen=True, slots=True)
class SettingFiles:
    """Kinds of files that count, with settings and whatever else users bring along; passed among the overrides."""

    kinds: AbstractSet[str] = frozenset({"user", "project", "local"})
    """user: the user's own; project: those of the project; local: the user's own for the project."""

    def of(self, kind: str, source: Source | None) -> Source | None:
        """Return a file of a kind if it counts; of one of the user's that does not, only where the models are."""
        if source is None or kind in self.kinds:
            return source
        kept = {key: value for key, value in source.values.items() if key in _PLACES_OF_MODELS}
        return replace(source, values=kept) if kept else None

    def trust(self, trust: ProjectTrust) -> ProjectTrust:
        """Return a project with those of its files that count."""
        if {"project", "local"} <= self.kinds:
            return trust
        content = {name: data for name, data in trust.files.content.items() if self._counts(name)}
        return replace(trust, files=replace(trust.files, content=content))

    def _counts(self, name: str) -> bool:
        return ("local" if name == _CLAUDES_LOCAL else "project") in self.kinds


_PLACES_OF_MODELS = frozenset({"model", "provider", "base_url", "api_key", "api_key_env", "providers", "aliases"})
"""Settings of the user that always count: as with a login, they say where the models of this machine are."""
_CLAUDES_LOCAL = ".claude/settings.local.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a value."""

    kind: SourceKind
    place: str
    """`FILE:LINE`, the name of a variable or flag, or `default`; several for a list that was joined from several."""

    def __str__(self) -> str:
        return self.place


@dataclass(frozen=True)
class Loaded:
    """The settings of one run, with their sources."""

    settings: Settings
    sources: Sequence[Source]
    """Weakest first, without the defaults."""
    warnings: Sequence[str]
    """Warnings about ignored or suspicious settings; the user should see each once."""
    trust: ProjectTrust = NO_TRUST
    """Trust in the project's files."""
    withheld: Sequence[str] = ()
    """Settings of the project that have no effect until the user trusts it, `KEY = VALUE`."""
    withheld_rules: Sequence[str] = ()
    """Rules among `withheld` that allow calls."""
    keys: StoredKeys = NO_KEYS
    """Keys from `panpan login`."""
    places: Places = Places()
    """Places of skills, commands, hooks and the like."""
    files: SettingFiles = SettingFiles()
    """Kinds of files that count."""

    @cached_property
    def origins(self) -> Mapping[str, Origin]:
        """Origin of each dotted key; the items of joined lists have their own, `permission.allow[0]`."""
        origins: dict[str, Origin] = {dotted(path): Origin("default", "default") for path, _ in flatten(self.settings)}
        joined: dict[KeyPath, dict[str, Origin]] = {path: {} for path in MERGED_LISTS}
        for source in self.sources:
            for path, value in leaves(source.values):
                origin = Origin(source.kind, source.place_of(path))
                if path in MERGED_LISTS:
                    for number, item in enumerate(value or ()):
                        item_origin = Origin(source.kind, source.place_of_item(path, number))
                        joined[path].setdefault(str(rule_text(item)), item_origin)
                else:
                    origins[dotted(path)] = origin
        for path, origin_by_item in joined.items():
            origins |= _origins_of_list(dotted(path), list(origin_by_item.values()))
        return origins


def _origins_of_list(key: str, origins: Sequence[Origin]) -> dict[str, Origin]:
    if not origins:
        return {}
    places = ", ".join(dict.fromkeys(origin.place for origin in origins))
    items = {f"{key}[{number}]": origin for number, origin in enumerate(origins)}
    return {key: Origin(origins[-1].kind, places), **items}


def load_settings(
    cwd: Path,
    env: Mapping[str, str],
    cli_overrides: Mapping[str, object],
    locations: Locations,
    *,
    trust: ProjectTrust | None = None,
    keys: StoredKeys | None = None,
) -> Loaded:
    """Read all sources and return the settings they make.

    Args:
        cwd: Folder for relative paths on the command line.
        env: The environment.
        cli_overrides: Values of flags by dotted key, such as `permission.mode`; None counts as not given. A `Source`,
            under any key, is weaker than they are, a `Names` has their names for messages, and a `SettingFiles` says
            which files count.
        locations: Locations of the files.
        trust: Trust in the project, if it was read before; None to read it now.
        keys: Keys from `panpan login`, if they were looked up before; None for those of the panpan home.

    Raises:
        ConfigError: A source is broken or has an unknown key or value; the text names file and line, variable or flag.
    """
    files = next((one for one in cli_overrides.values() if isinstance(one, SettingFiles)), SettingFiles())
    user = files.of("user", read_settings_file(locations.user_settings, "user"))
    trust = files.trust(trust_of(locations) if trust is None else trust)
    has_project = "project" in files.kinds and not _is_users_own(locations)
    project = _project_source(locations, trust) if has_project else None
    local = files.of("local", read_settings_file(locations.local_settings, "local"))
    environment, warnings = read_environment(env)
    given = [value for value in cli_overrides.values() if isinstance(value, Source)]
    flags = _read_flags(cli_overrides, cwd)

    warnings += [warning for source in (user, local, *given) if source for warning in _careless_modes(source)]
    withheld: Sequence[str] = ()
    withheld_rules: Sequence[str] = ()
    if project is not None:
        from panpan.config.project_limits import limit_project
        from panpan.config.trust import as_written, notes_on_trust

        limited = limit_project(
            project,
            weaker=_joined([user]),
            own=_joined([user, local, environment, *given, flags]),
            env=env,
            is_trusted=PROJECT_SETTINGS in trust.believed,
        )
        warnings += limited.warnings
        warnings += notes_on_trust(project, trust, limited.needing_trust)
        withheld = () if trust.is_trusted else [as_written(project, path) for path in limited.needing_trust]
        if not trust.is_trusted and ("permission", "allow") in limited.needing_trust:
            withheld_rules = project.rules("allow")
        project = limited.source
    of_claude = claude_files(trust)
    warnings += [problem for file in of_claude for problem in file.problems]
    users, projects = (
        [file.source for file in of_claude if file.values and file.kind == kind] for kind in ("user", "project")
    )
    if "user" not in files.kinds:
        users = []
    every = (*users, user, *projects, project, local, environment, *given, flags)
    sources = [source for source in every if source is not None]
    keys = StoredKeys(locations.home) if keys is None else keys
    settings = _joined(sources)
    return Loaded(
        settings,
        sources,
        tuple(warnings),
        trust,
        tuple(withheld),
        tuple(withheld_rules),
        keys,
        Places(
            locations.home if "user" in files.kinds else None,
            trust,
            (*settings.plugin_folders, *settings.plugin_folders_without_mcp),
            without_mcp=settings.plugin_folders_without_mcp,
        ),
        files,
    )


def _project_source(locations: Locations, trust: ProjectTrust) -> Source | None:
    """Return the settings in the project's file, from the bytes that the trust applies to if they could be read."""
    data = trust.files.content.get(PROJECT_SETTINGS)
    if data is None:
        return read_settings_file(locations.project_settings, "project")
    return parse_settings(data, locations.project_settings, "project")


def _is_users_own(locations: Locations) -> bool:
    """Return True if the project's file is the user's own: the home folder may be a repository with `.panpan` in it."""
    for path in (locations.user_settings, locations.local_settings):
        try:
            if path.samefile(locations.project_settings):
                return True
        except OSError:  # one of them is missing or unreachable: reading it raises the error
            continue
    return locations.user_settings == locations.project_settings


_FOLDERS = frozenset(
    {("additional_directories",), ("protected_directories",), ("plugin_folders",), ("plugin_folders_without_mcp",)}
)
"""Settings with folders, which on the command line may be relative."""


def _read_flags(overrides: Mapping[str, object], cwd: Path) -> Source:
    values: dict[str, Any] = {}
    places: dict[KeyPath, str] = {}
    names = {key: name for one in overrides.values() if isinstance(one, Names) for key, name in one.by_setting.items()}
    for key, value in overrides.items():
        path = tuple(key.split("."))
        is_nothing = path in MERGED_LISTS and value in ((), [])
        if value is None or is_nothing or isinstance(value, Source | Names | SettingFiles):
            continue
        if path in _FOLDERS and isinstance(value, Iterable):
            value = [str(folder) if str(folder).startswith("~") else str(cwd / str(folder)) for folder in value]
        put(values, path, value)
        places[path] = names.get(key, f'overrides["{shown(key)}"]')
        for length in range(1, len(path)):  # a missing table gets the place of its first value
            places.setdefault(path[:length], places[path])
    source = Source("flag", "the command line", values, places)
    check(source)
    return source


def _joined(sources: Iterable[Source | None]) -> Settings:
    values: dict[str, Any] = {}
    for source in sources:
        for path, value in leaves(source.values) if source else ():
            _merge(values, path, value)
    return settings_type().model_validate(values)


def _merge(values: dict[str, Any], path: KeyPath, value: Any) -> None:
    if path in MERGED_LISTS:
        table = values
        for part in path[:-1]:
            table = table.get(part, {})
        by_text: dict[str, Any] = {}
        for item in (*table.get(path[-1], ()), *value):
            by_text.setdefault(rule_text(item), item)
        value = list(by_text.values())
    put(values, path, value)


def _careless_modes(source: Source) -> Iterable[str]:
    """Yield warnings about a file with a key that others may read, or a file that others may write."""
    if source.file is None:
        return
    try:
        mode = source.file.stat().st_mode
    except OSError:  # it has been moved since it was read
        return
    advice = f"run: chmod 600 {source.place}"
    if mode & 0o077 and any(is_secret(path) for path, _ in leaves(source.values)):
        yield f"{source.place} holds a key and other users may read it; {advice}"
    if mode & 0o002:
        yield f"{source.place} may be changed by every user of this machine; {advice}"
