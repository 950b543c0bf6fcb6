"""Settings of language servers."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, ValidationError

from panpan.config.places import Places
from panpan.config.settings import Name, Names, Table


class LanguageServerSettings(Table):
    """One language server, `[language_servers.servers.NAME]`; a server that panpan knows keeps what is not set here."""

    enabled: bool = True
    """True if the server may be started."""
    command: Names = ()
    """Its program and arguments, such as `["lua-language-server"]`; empty for what panpan knows, else its name."""
    languages: Mapping[Name, Name] = Field(default_factory=dict)
    """The protocol's names of languages by file suffix, such as `.lua` to `lua`."""
    initialization_options: Mapping[str, Any] = Field(default_factory=dict)
    """Options that the server gets at its start, as its own documentation describes them."""


class LanguageServersSettings(Table):
    """Language servers, `[language_servers]`; they run in trusted projects only."""

    table = "language_servers"
    is_for_trusted_projects = True

    enabled: bool = True
    """True if language servers may be started."""
    servers: Mapping[Name, LanguageServerSettings] = Field(default_factory=dict)
    """New servers, or changes to ones that panpan knows, by name; they come before all others."""


def servers_of_plugins(places: Places) -> tuple[Mapping[str, LanguageServerSettings], Sequence[str]]:
    """Return the servers of plug-ins by their names, and those that cannot be used, each with the reason."""
    found: dict[str, LanguageServerSettings] = {}
    problems: list[str] = []
    for one in places.plugins:
        for server in one.plugin.servers:
            if server.kind != "language":
                continue
            command = (server.settings["command"], *server.settings.get("args", ()))
            options = server.settings.get("initializationOptions")
            try:
                found[f"{one.plugin.name}:{server.name}"] = LanguageServerSettings(
                    command=tuple(map(one.place.filled, command)),
                    languages=server.settings["extensionToLanguage"],
                    initialization_options=options if isinstance(options, dict) else {},
                )
            except ValidationError as error:
                wrong = "; ".join(str(one["msg"]) for one in error.errors())
                problems.append(f"{server.place}: the server {server.name[:60]} cannot be used: {wrong}")
    return found, problems
