"""The hosts that `package-indexes` in `sandbox.domains` stands for: the usual ones, and those that the user has set up.

The rule: an index counts that the user's settings, variables or files in their home or of the machine name. A project's
files are never read for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from panpan.capabilities.packages.manifests import table_in
from panpan.capabilities.packages.sources import (
    PYPI_HOSTS,
    addresses_in,
    hosts_of,
    hosts_of_channels,
    text_of,
    users_pip_indexes,
    usual_conda_hosts,
)
from panpan.capabilities.packages.uv_sources import users_uv_indexes
from panpan.config.settings import PackageSettings
from panpan.system.files.home import user_home
from panpan.types.allowing_flags import PACKAGE_INDEXES
from panpan.types.dataclass import dataclass

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

_NPM_REGISTRY = re.compile(r"^\s*(?:@[^:\s]+:)?registry\s*=\s*(\S+)", re.MULTILINE)
_NPM_VARIABLES = ("npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER")
_CONDA_FILES = (".condarc", ".conda/.condarc", ".config/conda/.condarc")


@dataclass(frozen=True, slots=True)
class Domains:
    """The hosts that commands may reach."""

    named: Sequence[str]
    """Those that the settings name, and the usual ones."""
    own: Sequence[str] = ()
    """Those of the user's own setup, which may be in their own network."""


def domains_of(named: Sequence[str], packages: PackageSettings, variables: Mapping[str, str]) -> Domains:
    """Return the hosts that a list of the settings means.

    Args:
        named: As it stands in `sandbox.domains`.
        packages: The user's settings for packages.
        variables: The user's environment.
    """
    if PACKAGE_INDEXES not in named:
        return Domains(named)
    others = [host for host in named if host != PACKAGE_INDEXES]
    own = [host for host in _configured_hosts(packages, variables) if _is_host(host)]
    return Domains(tuple(dict.fromkeys((*others, *USUAL_HOSTS))), tuple(dict.fromkeys(own)))


def hosts_to_allow(hosts: Sequence[str], packages: PackageSettings, variables: Mapping[str, str]) -> Sequence[str]:
    """Return the shortest list for `sandbox.domains` that opens these hosts; none where one is not known.

    Args:
        hosts: What is going to be fetched from.
        packages: The user's settings for packages.
        variables: The user's environment.
    """
    from panpan.system.sandbox.domain_grants import DomainGrants
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
    from panpan.system.sandbox.domain_grants import DomainGrant

    try:
        DomainGrant.parse(text)
    except ToolError:
        return False
    return True
