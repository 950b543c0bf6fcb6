"""Servers that a session knows of: from the command line, the user's settings, `.mcp.json`, agents, and plug-ins.

The stronger of two with one name counts, in this order; so nothing of a project takes the place of a server of the
user. An entry that cannot be used costs that server alone.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import SecretStr, ValidationError

from panpan.capabilities.mcp.settings import PACKAGE, PROJECT_FILE, McpServerSettings, Transport, agents_with_servers
from panpan.config.known_secrets import without_provider_keys
from panpan.config.places import Places
from panpan.config.settings import Settings, settings_type
from panpan.errors import ConfigError, ToolError
from panpan.system.environment import how_to_install
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.read_file import read_users_file
from panpan.system.text.terminal_text import clean_line
from panpan.types.agent import servers_in
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_BYTES = 1_000_000
MAX_SERVERS = 100
"""Most servers of one session."""

Origin: TypeAlias = Literal["flag", "user", "project", "plugin"]

_NAME = compile_late(r"[A-Za-z0-9][A-Za-z0-9-]*(?:_[A-Za-z0-9-]+)*")
"""Letters, digits, dashes and single underscores in between, since two separate a server from its tool."""
_MAX_NAME_CHARS = 64
_MIN_SECRET_CHARS = 4
"""Shorter values are in too many texts to be replaced."""
_VARIABLE = compile_late(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TYPES: Mapping[str, Transport] = {
    "stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse", "sdk": "host",
}  # fmt: skip
VALUE_KEYS = (
    "command", "args", "env", "cwd", "url", "headers", "write", "network",
    "client_id", "client_secret", "issuer", "callback_port", "scopes",
)  # fmt: skip
"""Keys of an entry that mean the same in panpan's settings; other agents do not know those from `write` on."""
_KEYS = frozenset({*VALUE_KEYS, "name", "type", "timeout", "alwaysLoad", "enabled", "disabled", "oauth"})
"""Keys of an entry in the files of other agents that count."""
_META = frozenset({"description", "title", "$schema"})


@dataclass(frozen=True)
class ServerEntry:
    """One server, with all that decides what runs."""

    name: str
    settings: McpServerSettings
    """Its settings, with the values of variables filled in."""
    origin: Origin
    place: str
    """Place where it is written, for people."""
    title: str
    """Its command line, or its address, as it is written: values of variables may be secrets."""
    written: Mapping[str, Any]
    """The entry as it is written, without the values of variables."""
    folders: Sequence[str] = ()
    """Canonical folders that its program may change in the sandbox."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables that were filled in, with their values."""

    @property
    def needs_approval(self) -> bool:
        """True if the user has to say yes to exactly this server before it is started or spoken to."""
        return self.origin == "project"

    @property
    def transport(self) -> Transport:
        return self.settings.type or ("stdio" if self.settings.command else "http")

    @property
    def is_boxed(self) -> bool:
        """True if its program runs in the sandbox."""
        return self.transport == "stdio" and (self.settings.is_boxed or self.needs_approval)

    @property
    def silence_s(self) -> float:
        """Seconds of a call without news after which it is given up."""
        return self.settings.silence_s or (1_800.0 if self.transport == "stdio" else 300.0)

    @cached_property
    def digest(self) -> str:
        """Digest of everything that decides what is started or spoken to, and with what rights."""
        one = self.settings
        secret = one.client_secret.get_secret_value() if one.client_secret else None
        login = (one.client_id, secret, one.issuer, one.callback_port, one.scopes)
        parts = [
            self.transport, one.command, one.args, one.cwd, one.url, self.is_boxed, self.folders, one.network,
            sorted((name, value.get_secret_value()) for name, value in one.env.items()),
            sorted((name, value.get_secret_value()) for name, value in one.headers.items()),
            *([login] if any(login) else []),
        ]  # fmt: skip
        return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()

    def mark_of(self, project: Path) -> str:
        """Return the end of the names of its files; a server of a project shares none with that of another."""
        return f"-{blake2b(str(project).encode(), digest_size=8).hexdigest()}" if self.needs_approval else ""

    def without_values(self, text: str) -> str:
        """Return a text with the names of variables and headers in place of their values, which may be secrets."""
        for value, name in self._values:
            text = text.replace(value, f"${{{name}}}")
        return text

    @cached_property
    def _values(self) -> Sequence[tuple[str, str]]:
        """Lines of the values that may be secrets, with the names that they have; the longest first."""
        own = {**self.settings.headers, **self.settings.env}
        if self.settings.client_secret:
            own["client_secret"] = self.settings.client_secret
        named = [*self.variables.items(), *((name, value.get_secret_value()) for name, value in own.items())]
        lines = [(line, name) for name, value in named for line in value.splitlines()]
        return sorted((one for one in lines if len(one[0]) >= _MIN_SECRET_CHARS), key=lambda one: -len(one[0]))

    def described(self) -> Iterator[str]:
        """Yield lines that say what it is and what it may do, without the values of variables."""
        yield f"{'runs' if self.transport == 'stdio' else 'speaks to'}: {self.title}"
        if cwd := self.written.get("cwd"):
            yield f"in: {cwd}"
        if self.settings.env:
            yield f"with the variables: {', '.join(sorted(self.settings.env))}"
        if self.settings.headers:
            yield f"with the headers: {', '.join(sorted(self.settings.headers))}"
        one = self.settings
        if one.client_id or one.scopes or one.issuer or one.callback_port:
            parts = [
                self.written.get("client_id") or "a new client",
                "with a secret" if one.client_secret else "",
                f"at {one.issuer}" if one.issuer else "",
                f"by the port {one.callback_port}" if one.callback_port else "",
                f"for {' '.join(one.scopes)}" if one.scopes else "",
            ]
            yield f"logs in as {', '.join(filter(None, parts))}"
        if self.variables:
            yield f"gets from your environment: {', '.join(self.variables)}"
        if self.transport == "stdio":
            yield self._box()

    def _box(self) -> str:
        if not self.is_boxed:
            return "outside the sandbox"
        writes = f"writes in {', '.join(self.folders)}" if self.folders else "writes nowhere"
        hosts = ", ".join(self.written.get("network", ()))
        return f"in the sandbox: {writes}, {f'reaches {hosts}' if hosts else 'has no network'}"


@dataclass(frozen=True, slots=True)
class GivenServers:
    """Servers of the command line."""

    configs: Sequence[str] = ()
    """JSON, or files with it."""
    is_strict: bool = False
    """True if no others count."""


class AnyVariable(dict[str, str]):
    """An environment that has each variable, for entries that are only looked at."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:
        return f"${{{name}}}"


@dataclass(frozen=True, slots=True)
class KnownServers:
    """The servers of a session, and what is wrong with others."""

    entries: Mapping[str, ServerEntry]
    problems: Sequence[str] = ()
    """Sentences for the user."""
    asides: Sequence[str] = ()
    """The same about parts that have no effect."""


def read_entries(
    settings: Mapping[str, McpServerSettings],
    places: Places,
    given: GivenServers,
    environment: Mapping[str, str],
    cwd: Path,
) -> KnownServers:
    """Return the servers that a session knows of.

    Args:
        settings: Those of the user's settings.
        places: The project and plug-ins.
        given: Those of the command line.
        environment: Variables that entries may name.
        cwd: Folder that paths of the command line start from.

    Raises:
        ConfigError: The command line gives something that cannot be used.
    """
    reader = _Reader(environment, places.trust.files.root)
    found = list(reader.of_flags(given, cwd))
    if not given.is_strict:
        found += [*reader.of_user(settings), *reader.of_project(places)]
        found += [*reader.of_agents(places), *reader.of_plugins(places)]
    entries: dict[str, ServerEntry] = {}
    by_twin: dict[str, ServerEntry] = {}
    for entry in found:
        twin = entry.name.casefold().replace("-", "_")
        if (other := by_twin.get(twin)) is not None:
            same = "also" if other.name == entry.name else f"hard to tell from {other.name}"
            reader.asides.append(f"{entry.place}: the server {entry.name} is {same} in {other.place}, which counts")
        elif len(entries) >= MAX_SERVERS:
            text = f"the server {entry.name} is left out, since there are more than {MAX_SERVERS}"
            reader.problems.append(f"{entry.place}: {text}")
        else:
            entries[entry.name] = by_twin[twin] = entry
    return KnownServers(entries, reader.problems, reader.asides)


def how_to_get_library() -> str:
    """Return the command that installs the library that speaks the protocol; empty if it is there."""
    return "" if find_spec("mcp") is not None else how_to_install(PACKAGE)


def environment_of(env: Mapping[str, str], settings: Settings) -> Mapping[str, str]:
    """Return the variables that entries may name: all but keys of model providers, and those of the settings."""
    given = {name: value.get_secret_value() for name, value in settings.environment.variables.items()}
    return without_provider_keys({**env, **given}, settings)


def read_entry(
    name: str,
    written: Any,
    environment: Mapping[str, str],
    place: str,
    origin: Origin = "user",
    *,
    project: Path = Path("/"),
    tell: Callable[[str], None] = lambda _: None,
) -> ServerEntry:
    """Return a server that is written in the keys of `.mcp.json`; `tell` is called with each part without effect.

    Raises:
        ConfigError: It cannot be used.
    """
    reader = _Reader(environment, project)
    found = next(reader.written(name, written, origin, place), None)
    if found is None:
        raise ConfigError(clean_line(reader.problems[0]))
    for line in reader.asides:
        tell(line)
    return found


def written_of(settings: McpServerSettings) -> Mapping[str, Any]:
    """Return the settings that differ from their defaults, as they are written, with secrets."""
    return {key: _plain(getattr(settings, key)) for key in settings.model_fields_set}


class _Reader:
    def __init__(self, environment: Mapping[str, str], project: Path) -> None:
        self._environment = environment
        self._project = project
        self.problems: list[str] = []
        self.asides: list[str] = []

    def of_flags(self, given: GivenServers, cwd: Path) -> Iterator[ServerEntry]:
        for config in given.configs:
            place, data = "--mcp-config", config.encode()
            if not config.lstrip().startswith("{"):
                place = str(cwd / Path(config).expanduser())
                try:
                    data = read_users_file(place, max_bytes=MAX_BYTES)
                except ToolError as error:
                    raise ConfigError(f"--mcp-config: {error}") from error
            before = len(self.problems)
            yield from self._of_file(data, place, "flag")
            if len(self.problems) > before:
                raise ConfigError(clean_line(self.problems[before]))

    def of_user(self, settings: Mapping[str, McpServerSettings]) -> Iterator[ServerEntry]:
        for name, one in settings.items():
            yield from self._entry(name, written_of(one), "user", f"[mcp.{name}] of your settings", one)

    def of_project(self, places: Places) -> Iterator[ServerEntry]:
        data = places.trust.believed.get(PROJECT_FILE)
        if data is not None:
            yield from self._of_file(data, PROJECT_FILE, "project")

    def of_agents(self, places: Places) -> Iterator[ServerEntry]:
        from panpan.system.text.front_matter import YamlError, structure_of  # few agents have servers

        for file in reversed(agents_with_servers(places)):  # the strongest first
            try:
                servers = servers_in(structure_of(file.data, "mcpServers"))
            except YamlError:  # `panpan agents check` tells
                continue
            for name, written in servers.items():
                if written is not None:
                    yield from self.written(name, written, "user" if file.is_users else "project", file.name)

    def of_plugins(self, places: Places) -> Iterator[ServerEntry]:
        for one in places.plugins:
            for server in one.plugin.servers:
                if server.kind == "mcp":
                    filled = _filled_in(server.settings, one.place.filled)
                    place = f"{one.place.root}/{server.place}"
                    name = f"plugin_{one.plugin.name}_{server.name}"
                    yield from self.written(name, filled, "plugin", place, one.place.variables)

    def _of_file(self, data: bytes, place: str, origin: Origin) -> Iterator[ServerEntry]:
        try:
            written = json.loads(data)
        except (ValueError, RecursionError) as error:
            self.problems.append(f"{place}: it is not JSON: {error}")
            return
        servers = written.get("mcpServers", written) if isinstance(written, dict) else None
        if not isinstance(servers, dict):
            self.problems.append(f'{place}: it has no object "mcpServers" of servers by their names')
            return
        for name, one in servers.items():
            yield from self.written(name, one, origin, place)

    def written(
        self, name: str, written: Any, origin: Origin, place: str, variables: Mapping[str, str] | None = None
    ) -> Iterator[ServerEntry]:
        """Yield the entry of a file of other agents."""
        if not isinstance(written, Mapping):
            self.problems.append(f"{place}: the server {_shown(name)} is no object")
            return
        if unknown := sorted(written.keys() - _KEYS - _META):
            keys = ", ".join(map(_shown, unknown))
            self.asides.append(f"{place}: of the server {_shown(name)} these keys have no effect: {keys}")
        if "oauth" in written:
            written = {**written, **self._login(name, written["oauth"], place)}
        kind = written.get("type")
        if kind is not None and not (isinstance(kind, str) and kind in _TYPES):
            self.problems.append(
                f"{place}: the server {_shown(name)} is left out: there is no type {_shown(kind)}; "
                f"there are {', '.join(one for one in _TYPES if one != 'sdk')}"
            )
            return
        values = {key: written[key] for key in VALUE_KEYS if key in written}
        if kind is not None:
            values["type"] = _TYPES[kind]
        if isinstance(timeout := written.get("timeout"), int | float) and timeout > 0:
            values["call_s"] = min(timeout / 1_000, 86_400.0)
        if written.get("alwaysLoad") is True or values.get("type") == "host":
            values["exposure"] = "direct"
        if written.get("enabled") is False or written.get("disabled") is True:
            values["enabled"] = False
        if variables and isinstance(values.get("env", {}), Mapping):
            values["env"] = {**variables, **values.get("env", {})}
        yield from self._entry(name, values, origin, place)

    def _login(self, name: str, written: Any, place: str) -> Mapping[str, Any]:
        """Return what an entry says of logins, in panpan's keys."""
        known = {its: ours for ours, its in _LOGIN_KEYS.items() if its != "scopes"}
        given = dict(written) if isinstance(written, Mapping) else {}
        if unknown := sorted(given.keys() - known.keys() - {"scopes", "scope"}):
            keys = ", ".join(f"oauth.{_shown(key)}" for key in unknown)
            self.asides.append(f"{place}: of the server {_shown(name)} these keys have no effect: {keys}")
        found = {ours: given[its] for its, ours in known.items() if its in given}
        scopes = given.get("scopes", given.get("scope"))
        if scopes:
            found["scopes"] = scopes.split() if isinstance(scopes, str) else scopes
        wrong = [key for key, value in found.items() if not _fits_login(key, value)]
        if wrong:
            keys = ", ".join(f"oauth.{_LOGIN_KEYS[key]}" for key in wrong)
            self.asides.append(f"{place}: of the server {_shown(name)} these keys cannot be used: {keys}")
        return {key: value for key, value in found.items() if key not in wrong}

    def _entry(
        self,
        name: str,
        written: Mapping[str, Any],
        origin: Origin,
        place: str,
        settings: McpServerSettings | None = None,
    ) -> Iterator[ServerEntry]:
        """Yield a server; `settings` are what is written, if they were checked already."""
        try:
            yield self._checked(name, written, origin, place, settings)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            why = f"{'.'.join(map(str, first['loc'][2:]))}: {first['msg'].lower()}"
            self.problems.append(f"{place}: the server {_shown(name)} is left out: {clean_line(why)}")
        except _EntryError as error:
            self.problems.append(f"{place}: the server {_shown(name)} is left out: {error}")

    def _checked(
        self, name: str, written: Mapping[str, Any], origin: Origin, place: str, checked: McpServerSettings | None
    ) -> ServerEntry:
        if len(name) > _MAX_NAME_CHARS or not _NAME.fullmatch(name):
            raise _EntryError("a name has letters, digits, - and single _, and at most 64 of them")
        used: dict[str, str] = {}

        def value_of(found: re.Match[str]) -> str:
            variable, default = found[1], found[2]
            if variable in self._environment:
                used[variable] = self._environment.get(variable, "")
            elif default is None:
                raise _EntryError(f"the variable {variable} is not set; write ${{{variable}:-}} if it may be empty")
            return self._environment.get(variable, default or "")

        filled = _filled_in(written, lambda text: _VARIABLE.sub(value_of, text) if "${" in text else text)
        settings = checked if checked is not None and not used else _settings(name, filled)
        title = " ".join([written.get("command") or "", *written.get("args", ())]).strip() or written.get("url") or ""
        folders = tuple(self._folder(folder, origin) for folder in settings.write)
        entry = ServerEntry(name, settings, origin, place, title, written, folders, used)
        if settings.command and settings.url:
            raise _EntryError("it has both a command and an address")
        if entry.transport == "host":
            if origin != "flag":
                raise _EntryError("only a program that runs panpan has a server of this type, by --mcp-config")
            return entry
        if entry.transport == "stdio" and not settings.command:
            raise _EntryError('"command" names no program')
        if entry.transport != "stdio" and not settings.url:
            raise _EntryError(
                'it has neither a "command" nor a "url"' if settings.type is None else '"url" names no address'
            )
        if settings.client_secret and not settings.client_id:
            self.asides.append(f"{place}: of the server {_shown(name)} the secret has no effect without a client id")
        return entry

    def _folder(self, written: str, origin: Origin) -> str:
        """Return the canonical path of a folder; one of a project that leads out of it has to say so."""
        path = Path(written).expanduser()
        try:
            canonical = canonical_path(self._project / path)
        except ToolError as error:
            raise _EntryError(f"write: {error}") from error
        if origin == "project" and not path.is_absolute() and not is_below(canonical, self._project):
            raise _EntryError(f"write: {_shown(written)} leads out of the project, to {canonical}")
        return str(canonical)


def _settings(name: str, written: Mapping[str, Any]) -> McpServerSettings:
    """Return the checked settings of a server, by the checks of all settings: to build those of one takes longer."""
    return settings_type().model_validate({McpServerSettings.table: {name: written}}).named(McpServerSettings)[name]


_LOGIN_KEYS = {
    "client_id": "clientId", "client_secret": "clientSecret", "callback_port": "callbackPort", "scopes": "scopes",
}  # fmt: skip
"""Keys of logins, each with its name in the files of other agents."""


def _fits_login(key: str, value: Any) -> bool:
    """True if a value can be that of a key of logins."""
    if key == "callback_port":
        return type(value) is int and 0 < value <= 65_535
    if key == "scopes":
        return isinstance(value, list) and all(isinstance(one, str) and one for one in value)
    return isinstance(value, str) and bool(value)


class _EntryError(Exception):
    """An entry cannot be used; the text says why."""


def _plain(value: Any) -> Any:
    """Return a setting as JSON, with its secrets."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _filled_in(value: Any, fill: Callable[[str], str]) -> Any:
    """Return JSON with each text filled in."""
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, Mapping):
        return {key: _filled_in(item, fill) for key, item in value.items()}
    return [_filled_in(item, fill) for item in value] if isinstance(value, Sequence) else value


def _shown(value: object) -> str:
    return clean_line(str(value))[:100]
