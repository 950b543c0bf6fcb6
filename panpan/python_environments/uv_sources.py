"""Hosts that uv fetches from, and those of `package-indexes` in `sandbox.domains`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.config.bounded_toml import parse_toml
from panpan.config.settings import PackageSettings
from panpan.errors import ToolError
from panpan.python_environments.python_manifests import table_of
from panpan.python_environments.requirement_files import without_login
from panpan.python_environments.sources import (
    PYPI_HOSTS,
    UNKNOWN_HOST,
    Source,
    addresses_in,
    extra_arguments,
    hosts_of,
    hosts_of_channels,
    hosts_of_settings,
    index_arguments,
    text_of,
    users_pip_indexes,
    usual_conda_hosts,
)
from panpan.system.files.canonical import user_home
from panpan.system.files.paths import PathResolver
from panpan.system.files.read_file import read_regular_file
from panpan.system.sandbox.command_sandbox import Domains
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.pattern import compile_late
from panpan.types.permission import PACKAGE_INDEXES

# Ignore a file that is not TOML, too large, or of an unexpected form.

_MAX_BYTES = 1_000_000


def table_in(file: Path, *keys: str) -> Mapping[str, Any]:
    """Return the table below these keys of a TOML file; an empty one where there is none."""
    try:
        return table_of(parse_toml(read_regular_file(file, max_bytes=_MAX_BYTES, follow_symlinks=True).decode()), *keys)
    except (ToolError, ValueError):
        return {}


def find_manifest(what: str, holds: Callable[[Path], bool], paths: PathResolver) -> Path:
    """Return the nearest folder of the workspace, from the working directory up, that holds a manifest.

    Raises:
        ToolError: None does.
    """
    for folder in (paths.cwd, *paths.cwd.parents):
        if holds(folder):
            return folder
        if folder == paths.root:
            break
    raise ToolError(f"there is no {what} in {paths.cwd} or above it in the workspace; make one first")


# Report every setting in a project's file that sends uv to another place. Keys are those of "Settings", uv's
# documentation, at the top of uv.toml or below `tool.uv`; uv uses the nearest file, from the project's folder up.

_UV_DEFAULT = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")
_UV_EXTRA = ("UV_INDEX", "UV_EXTRA_INDEX_URL")
_INDEX_KEYS = frozenset({"index-url", "extra-index-url", "find-links"})
_LEADING_KEYS = frozenset({"target", "prefix", "python", "find-links", "cache-dir", "allow-insecure-host"})
"""Keys that lead elsewhere without an address."""
_OF_PROJECTS = (("project", "dependencies"), ("project", "optional-dependencies"), ("dependency-groups",))
_MAX_LOCK_BYTES = 50_000_000
_MAX_TOLD_CHARS = 200
_MOST_NAMED = 30
_VERSIONS = compile_late(r"(?:#.*|\s*(?:cpython|pypy|python)?[@-]?[0-9][0-9.]*t?\s*|\s*)")
"""A line of .python-version that names a version, and no program."""


def uv_source(settings: PackageSettings, variables: Mapping[str, str], project: Path) -> Source:
    """Return where uv fetches from."""
    named, own_hosts = own_uv_sources(project)
    if settings.index is not None:
        hosts = (*hosts_of_settings(settings), *own_hosts)
        return Source(index_arguments(settings), tuple(dict.fromkeys(hosts)), named)
    urls = [*users_uv_indexes(variables), *settings.extra_indexes]
    usual = () if any(variables.get(name, "").split() for name in _UV_DEFAULT) else PYPI_HOSTS
    hosts = (*usual, *hosts_of(urls), *own_hosts)
    return Source(extra_arguments(settings), tuple(dict.fromkeys(hosts)), named)


def users_uv_indexes(variables: Mapping[str, str]) -> list[str]:
    """Return the indexes that the user has set up for uv, in variables and files."""
    urls = [url.partition("=")[2] or url for name in _UV_EXTRA for url in variables.get(name, "").split()]
    urls += [url for name in _UV_DEFAULT for url in variables.get(name, "").split()]
    folders = (Path(variables.get("XDG_CONFIG_HOME") or user_home() / ".config"), Path("/etc"))
    return [*urls, *(url for folder in folders for url in _uv_indexes(folder / "uv" / "uv.toml"))]


def own_uv_sources(project: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the files of a project name beside the usual index, as it has to be told, and the hosts of it."""
    named: list[str] = []
    hosts: list[str] = []
    for file in _files(project):
        if text_of(file) is None:
            named.append(f"what {file} says could not be looked at")
            hosts.append(UNKNOWN_HOST)
            continue
        indexes = _uv_indexes(file)
        others = [url for url in _addresses(file) if url not in indexes]
        named += [f"{file} names the index {url}" for url in indexes]
        named += [f"{file} names {url}" for url in others]
        named += [f"{file} sets {escape_invisible(text)[:_MAX_TOLD_CHARS]}" for text in _leading(file)]
        hosts += hosts_of([*indexes, *others])
    named += [f"{file} names the interpreter {text}" for file, text in _interpreters(project)]
    more = [f"and {len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return (*named[:_MOST_NAMED], *more), tuple(dict.fromkeys(hosts))


def locked_hosts(project: Path) -> tuple[str, ...]:
    """Return the hosts that a lock file names, from which its packages are fetched whatever the index is."""
    text = text_of(project / "uv.lock", _MAX_LOCK_BYTES)
    return (UNKNOWN_HOST,) if text is None else tuple(hosts_of(addresses_in(text)))


def _files(project: Path) -> Iterator[Path]:
    for folder in (project, *project.parents):
        yield from (folder / "pyproject.toml", folder / "uv.toml")


def _tables(file: Path) -> Iterator[Mapping[str, Any]]:
    keys = ("tool", "uv") if file.name == "pyproject.toml" else ()
    yield table_in(file, *keys)
    yield table_in(file, *keys, "pip")


def _uv_indexes(file: Path) -> list[str]:
    urls: list[Any] = []
    for table in _tables(file):
        indexes = table.get("index")
        urls += [index.get("url") for index in indexes if isinstance(index, dict)] if isinstance(indexes, list) else []
        for key in _INDEX_KEYS:
            value = table.get(key)
            urls += value if isinstance(value, list) else [value]
    return [without_login(url) for url in urls if isinstance(url, str) and "://" in url]


def _addresses(file: Path) -> list[str]:
    """Return the addresses of packages, and what else settings name."""
    told: list[object] = [next(_tables(file))]
    if file.name == "pyproject.toml":
        whole = table_in(file)
        told += [whole.get("build-system"), *(_below(whole, keys) for keys in _OF_PROJECTS)]
    return list(dict.fromkeys(url for text in _texts(told) for url in addresses_in(text)))


def _below(table: Mapping[str, Any], keys: tuple[str, ...]) -> object:
    found: object = table
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _leading(file: Path) -> Iterator[str]:
    for table in _tables(file):
        for key in sorted(_LEADING_KEYS & set(table)):
            texts = [text for text in _texts(table[key]) if "://" not in text]
            if texts:
                yield f"{key} = {', '.join(texts)}"


def _interpreters(project: Path) -> Iterator[tuple[Path, str]]:
    """Yield what files name as the interpreter, where it is more than a version: a program, which uv would run."""
    for folder in (project, *project.parents):
        for file in (folder / ".python-version", folder / ".python-versions"):
            text = text_of(file)
            lines = ["could not be looked at"] if text is None else text.splitlines()
            yield from (
                (file, escape_invisible(line)[:_MAX_TOLD_CHARS]) for line in lines if not _VERSIONS.fullmatch(line)
            )


# Indexes come from the user's settings and variables, and from files in their home or of the machine. A project's files
# are never read for this.

USUAL_HOSTS = (
    *PYPI_HOSTS,
    *usual_conda_hosts(),
    "download.pytorch.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "index.crates.io",
    "static.crates.io",
)
"""Hosts that pip, uv, conda, npm, yarn and cargo fetch from by default, and PyTorch's own index."""

_NPM_REGISTRY = compile_late(r"^\s*(?:@[^:\s]+:)?registry\s*=\s*(\S+)", re.MULTILINE)
_NPM_VARIABLES = ("npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER")
_CONDA_FILES = (".condarc", ".conda/.condarc", ".config/conda/.condarc")


def domains_of(named: Sequence[str], packages: PackageSettings, variables: Mapping[str, str]) -> Domains:
    """Return the hosts that a list of the settings means."""
    if PACKAGE_INDEXES not in named:
        return Domains(named)
    others = [host for host in named if host != PACKAGE_INDEXES]
    own = [host for host in _configured_hosts(packages, variables) if _is_host(host)]
    return Domains(tuple(dict.fromkeys((*others, *USUAL_HOSTS))), tuple(dict.fromkeys(own)))


def hosts_to_allow(hosts: Sequence[str], packages: PackageSettings, variables: Mapping[str, str]) -> Sequence[str]:
    """Return the shortest list for `sandbox.domains` that opens these hosts; none if one is not known."""
    from panpan.system.sandbox.domain_proxy import DomainGrants
    from panpan.system.web.url_guard import plain_authority

    if not all(map(_is_host, hosts)):
        return ()
    preset = domains_of([PACKAGE_INDEXES], packages, variables)
    grants = DomainGrants(preset.named, preset.own)
    asked = map(plain_authority, hosts)
    return (PACKAGE_INDEXES,) if all(grants.covers(one, one.port or 443) for one in asked) else hosts


def _configured_hosts(packages: PackageSettings, variables: Mapping[str, str]) -> Iterator[str]:
    indexes = (packages.index, packages.channel_alias, *packages.mirrors, *packages.channel_mirrors)
    yield from hosts_of([url for url in (*indexes, *packages.extra_indexes) if url is not None])
    yield from hosts_of_channels(packages.channels)
    yield from hosts_of(users_pip_indexes(variables))
    yield from hosts_of(users_uv_indexes(variables))
    yield from hosts_of(list(_npm_registries(variables)))
    yield from hosts_of(list(_conda_addresses(variables)))
    yield from hosts_of(list(_cargo_registries(variables)))


def _npm_registries(variables: Mapping[str, str]) -> Iterator[str]:
    yield from (value for name in _NPM_VARIABLES if (value := variables.get(name)))
    file = variables.get("NPM_CONFIG_USERCONFIG") or variables.get("npm_config_userconfig") or user_home() / ".npmrc"
    for one in (Path(file), Path("/etc/npmrc")):
        yield from _NPM_REGISTRY.findall(text_of(one) or "")


def _conda_addresses(variables: Mapping[str, str]) -> Iterator[str]:
    named = [Path(variables["CONDARC"])] if variables.get("CONDARC") else []
    for file in (*named, *(user_home() / name for name in _CONDA_FILES), Path("/etc/conda/.condarc")):
        yield from addresses_in(text_of(file) or "")


def _cargo_registries(variables: Mapping[str, str]) -> Iterator[str]:
    home = Path(variables.get("CARGO_HOME") or user_home() / ".cargo")
    for file in (home / "config.toml", home / "config"):
        for kind, key in (("source", "registry"), ("registries", "index")):
            tables = [table for table in table_in(file, kind).values() if isinstance(table, dict)]
            yield from (url.removeprefix("sparse+") for table in tables if isinstance(url := table.get(key), str))


def _is_host(text: str) -> bool:
    from panpan.errors import ToolError
    from panpan.system.sandbox.domain_proxy import DomainGrant

    try:
        DomainGrant.parse(text)
    except ToolError:
        return False
    return True
