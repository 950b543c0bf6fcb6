"""Sources of packages: the hosts that a package manager is going to ask, and the options that tell it of mirrors.

The rule: an index is named by the user's settings, variables and configuration, or by a file of the project, which the
question then names; never by the model.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from panpan.config.settings import PackageSettings
from panpan.errors import ToolError
from panpan.python_environments.requirement_files import ADDRESS, without_login, without_logins
from panpan.system.files.canonical import user_home
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass

UNKNOWN_HOST = "whatever that file names"
"""Text in place of the hosts of a file that could not be read."""
PYPI_HOSTS = ("pypi.org", "files.pythonhosted.org")
CONDA_HOST = "conda.anaconda.org"
_CONDA_PLACE = f"https://{CONDA_HOST}/"
_DEFAULTS_HOST = "repo.anaconda.com"
"""Host of the channel that conda calls `defaults`."""
_MAX_TOLD_CHARS = 200
_INDEX_KEYS = ("index-url", "extra-index-url")
_LINK_KEYS = ("find-links",)
"""Places where pip also looks, whichever index it asks."""


@dataclass(frozen=True, slots=True)
class Source:
    """Source of one call's packages."""

    arguments: tuple[str, ...] = ()
    """Options for the package manager."""
    hosts: tuple[str, ...] = ()
    """Hosts that it is going to ask; its own configuration may name more."""
    named: tuple[str, ...] = ()
    """Facts about it for the user."""


def wheels_source(folder: str) -> Source:
    """Return a folder of wheels of this machine as the only source, for pip and uv."""
    return Source(("--no-index", "--find-links", folder))


def pip_source(settings: PackageSettings, variables: Mapping[str, str], prefix: Path) -> Source:
    """Return the source of packages for pip.

    `prefix`: folder of the environment, which may have a configuration of its own.
    """
    named, own_hosts = _own_pip_settings(prefix / "pip.conf")
    has_index = settings.index is not None
    users = dict(_users_places(variables, _LINK_KEYS if has_index else (*_INDEX_KEYS, *_LINK_KEYS)))
    here = [escape_invisible(f"{place}, which {who} names") for place, who in users.items() if not _host(place)]
    arguments = index_arguments(settings) if has_index else extra_arguments(settings)
    usual = hosts_of_settings(settings) if has_index else (*PYPI_HOSTS, *hosts_of(settings.extra_indexes))
    hosts = (*usual, *hosts_of(list(users)), *own_hosts)
    return Source(arguments, tuple(dict.fromkeys(hosts)), (*named, *here))


def conda_source(settings: PackageSettings, channels: Sequence[str]) -> Source:
    """Return the source of packages for conda or mamba.

    Channels of conda's own configuration are asked too, but not a channel that a mirror replaces.

    `channels`: names that the model gave, which come first.
    """
    known = _channels(settings, channels)
    if settings.channel_alias is None or not known:
        return _channel_source(known)
    placed = _channel_source([_below(settings.channel_alias, one) for one in known])
    return replace(placed, arguments=("--override-channels", *placed.arguments))


def hosts_of_channels(channels: Sequence[str]) -> list[str]:
    """Return where channels are, each once."""
    return list(dict.fromkeys(host for one in channels for host in _hosts_of_channel(one)))


def usual_conda_hosts() -> tuple[str, ...]:
    """Return the hosts that conda asks if no channel is named."""
    return CONDA_HOST, _DEFAULTS_HOST


def pixi_source(settings: PackageSettings) -> Source:
    """Return where pixi fetches from; it has mirrors of its own, and would write another's into the manifest."""
    return _channel_source(_channels(settings, ()))


def _channels(settings: PackageSettings, channels: Sequence[str]) -> Sequence[str]:
    return tuple(dict.fromkeys((*channels, *settings.channels)))


def _channel_source(channels: Sequence[str]) -> Source:
    arguments = tuple(word for one in channels for word in ("--channel", one))
    return Source(arguments, tuple(hosts_of_channels(channels)) or usual_conda_hosts())


def _below(alias: str, channel: str) -> str:
    """Return a channel of conda's usual place as it is found below another; others, and "defaults", stay."""
    name = channel.removeprefix(_CONDA_PLACE)
    is_there = "://" not in name and _hosts_of_channel(name) == [CONDA_HOST]
    return f"{alias.rstrip('/')}/{name}" if is_there else channel


def hosts_of(addresses: Sequence[str]) -> list[str]:
    """Return the hosts of addresses, each once; those of this machine's files have none."""
    found = (_host(address) for address in addresses)
    return list(dict.fromkeys(host for host in found if host))


def addresses_in(text: str) -> list[str]:
    """Return the addresses in a text, without user names and passwords."""
    return [without_login(address) for address in ADDRESS.findall(text)]


def _host(address: str) -> str:
    try:
        parts = urlsplit(address.removeprefix("git+"))
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{parts.port}" if host and parts.port else host
    except ValueError:
        return ""


def _hosts_of_channel(channel: str) -> list[str]:
    """Return where a channel is; nowhere for a folder of this machine."""
    if "://" in channel or channel.startswith(("/", ".", "~")):
        return hosts_of([channel])
    return [_DEFAULTS_HOST if channel in ("defaults", "main", "r") else CONDA_HOST]


def index_arguments(settings: PackageSettings) -> tuple[str, ...]:
    """Return the options for pip and uv with the indexes that the user has set; both programs know them.

    With its newer ones `uv add` would write the user's index into the project.
    """
    return ("--index-url", str(settings.index), *extra_arguments(settings))


def extra_arguments(settings: PackageSettings) -> tuple[str, ...]:
    """Return the options for pip and uv with the further indexes that the user has set."""
    return tuple(word for url in settings.extra_indexes for word in ("--extra-index-url", url))


def hosts_of_settings(settings: PackageSettings) -> Sequence[str]:
    """Return the hosts of the indexes that the user has set."""
    return hosts_of([str(settings.index), *settings.extra_indexes])


def _own_pip_settings(file: Path) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return all that an environment's own configuration of pip sets, as it has to be told, and its hosts."""
    if not file.exists():
        return (), ()
    values = _pip_values(file)
    if values is None:
        return (f"what {file} sets could not be looked at",), (UNKNOWN_HOST,)
    told = (f"{key} = {without_logins(value)}" for key, value in values)
    named = tuple(f"{file} sets {escape_invisible(text)[:_MAX_TOLD_CHARS]}" for text in told)
    return named, hosts_of([url for _, value in values for url in addresses_in(value)])


def _pip_files(variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield where pip finds the configuration of the machine and of the user ("Configuration", pip's documentation)."""
    home = user_home()
    if named := variables.get("PIP_CONFIG_FILE"):
        yield Path(named)
    yield from (Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"))
    yield from (home / ".pip" / "pip.conf", home / ".config" / "pip" / "pip.conf")


def _users_places(variables: Mapping[str, str], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the addresses and folders that the user has pip take packages from, each with what names it."""
    for file in _pip_files(variables):
        for key, value in _pip_values(file) or ():
            yield from ((without_login(place), str(file)) for place in value.split() if key in keys)
    for key in keys:
        name = f"PIP_{key.upper().replace('-', '_')}"
        yield from ((without_login(place), name) for place in variables.get(name, "").split())


def users_pip_indexes(variables: Mapping[str, str]) -> list[str]:
    """Return the indexes and links that the user has set up for pip, in variables and files."""
    return [place for place, _ in _users_places(variables, (*_INDEX_KEYS, *_LINK_KEYS))]


def _pip_values(file: Path) -> list[tuple[str, str]] | None:
    """Return all keys and values of a configuration, each key as pip takes it; None if it cannot be read."""
    from configparser import Error, RawConfigParser

    parser, text = RawConfigParser(strict=False), text_of(file)
    if text is None:
        return None
    try:
        parser.read_string(text)
    except Error:
        return None
    found = [item for section in parser.sections() for item in parser.items(section)]
    return [(key.lower().replace("_", "-").removeprefix("--"), value or "") for key, value in found]


def text_of(file: Path, max_bytes: int = 1_000_000) -> str | None:
    """Return the text of a file that names sources; nothing if there is none, None if it cannot be looked at."""
    if not os.path.lexists(file):
        return ""
    try:
        return read_regular_file(file, max_bytes=max_bytes, follow_symlinks=True).decode(errors="replace")
    except ToolError:
        return None
