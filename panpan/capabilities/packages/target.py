"""Objects of calls of the tools for packages: the session's settings, the programs, and the environment.

Of an environment: its prefix, its interpreter, its packages, and whether it is the system's.

The rule: nothing of the project is run to find it. What its files say is enough: pyvenv.cfg, conda-meta, lib/python3.N.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

from panpan.config.settings import PackageSettings
from panpan.core.recorded_commands import NOT_RECORDED, RunnerRecords
from panpan.errors import ToolError
from panpan.python_environments.find_environment import (
    Environment,
    find_environment,
    interpreter_of,
    library_folders,
    package_folders,
)
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import Head, normalise_name, records_in
from panpan.system.files.canonical import is_below
from panpan.system.files.paths import PathResolver
from panpan.types.content import Frozen
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.capabilities.packages.undo_log import Steps

PROGRAMS = {"uv": ("uv",), "conda": ("conda", "mamba", "micromamba"), "pixi": ("pixi",)}
"""Programs of each tool, the best first."""


@dataclass(frozen=True, slots=True)
class PackageConfig:
    """Settings, folders and rules of a session that the tools for packages need."""

    settings: PackageSettings = PackageSettings()
    steps_folder: Path | None = None
    """Folder that keeps the last change of each environment; None: nothing is kept."""
    withholds: Callable[[Path, Path], bool] = lambda *_: False
    """True if a rule of the user's forbids showing a file; the second path is the root of its project."""
    records: RunnerRecords = NOT_RECORDED
    """Records of the commands of the agent."""

    @property
    def steps(self) -> "Steps":
        """The last change of each environment."""
        from panpan.capabilities.packages.undo_log import Steps  # not needed at the start

        return Steps(self.steps_folder)


_EXTERNALLY_MANAGED = "EXTERNALLY-MANAGED"
"""The marker of an interpreter whose packages belong to the system's own package manager (PEP 668)."""


@dataclass(frozen=True, slots=True)
class Target:
    """An environment that packages are put into."""

    prefix: Path
    """Canonical."""
    kind: Literal["venv", "conda", "python"]
    """The last is an interpreter's own prefix, such as /usr/local."""
    python: str = ""
    """Version of its interpreter, such as 3.11; empty where there is none."""
    why: str = ""
    is_base: bool = False
    """True if it is conda's base environment."""
    is_externally_managed: bool = False
    elsewhere: tuple[Path, ...] = ()
    """Canonical paths of its folders that are links to places outside of it."""

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        python = self.prefix / "bin" / "python"
        return python if python.exists() else self.prefix / "bin" / "python3"

    @property
    def is_system(self) -> bool:
        """True if others than this project rely on its packages."""
        return self.kind == "python" or self.is_base

    def __str__(self) -> str:
        about = f"Python {self.python}" if self.python else "no Python yet"
        return f"{self.prefix} ({self.kind}, {about})"


def find_target(paths: PathResolver, environment: str | None, variables: Mapping[str, str]) -> Target:
    """Return the environment that is named, or the project's, or the one that is active.

    `environment`: a prefix, as the model wrote it; None: none is named. `variables`: environment variables, of which
    VIRTUAL_ENV and CONDA_PREFIX may name one.

    Raises:
        ToolError: There is none.
    """
    root = MachineRoot()
    if environment is not None:
        place = str(paths.locate(environment).path)
        found = find_environment(root, place, {})
        if found is None or found.path != place:
            raise ToolError(f"{environment} is not an environment; create it first, or name another one")
        return _target(root, found, paths)
    for place in dict.fromkeys((str(paths.cwd), str(paths.root))):
        if found := find_environment(root, place, {}):
            return _target(root, found, paths)
    found = find_environment(root, "/var/empty", variables)
    if found is None:
        raise ToolError("there is no environment here; create one, such as .venv, or name one in `environment`")
    return _target(root, found, paths)


def target_at(prefix: Path, kind: Literal["venv", "conda"], why: str) -> Target:
    """Return the environment at a prefix, which may still have to be made."""
    root = MachineRoot()
    found = find_environment(root, str(prefix), {})
    if found is None or found.path != str(prefix):
        return Target(prefix, kind, why=why)
    return _read(root, prefix, found.kind, why)


def require_own(target: Target, *, is_system_wanted: bool) -> None:
    """Refuse an environment that others rely on, unless it was asked for.

    Raises:
        ToolError: It is the system's Python or conda's own environment, and nobody asked for it; or its packages
            belong to the system's package manager, whatever was asked.
    """
    if target.is_externally_managed:
        raise ToolError(
            f"the packages of {target.prefix} belong to the system's own package manager (it is marked "
            f"{_EXTERNALLY_MANAGED}); create an environment and install there"
        )
    if target.is_system and not is_system_wanted:
        what = "is conda's own environment" if target.is_base else "is a Python that other programs use, too"
        raise ToolError(
            f"{target.prefix} {what}", advice="create an environment; `system` of pip is for users who ask for it"
        )


def _target(root: MachineRoot, found: Environment, paths: PathResolver) -> Target:
    return _read(root, paths.locate(found.path).path, found.kind, found.why)


def _read(root: MachineRoot, prefix: Path, kind: Literal["venv", "conda", "python"], why: str) -> Target:
    found = interpreter_of(root, [str(prefix)])
    folders = [folder for folder, _, _ in library_folders(root, str(prefix))]
    libraries = folders or ([f"{prefix}/lib/python3"] if kind == "python" else [])
    return Target(
        prefix,
        kind,
        python=f"3.{found.minor}{'t' if found.is_free_threaded else ''}" if found.minor is not None else "",
        why=why,
        is_base=kind == "conda" and root.exists(f"{prefix}/condabin"),
        is_externally_managed=kind == "python"
        and any(root.exists(f"{folder}/{_EXTERNALLY_MANAGED}") for folder in libraries),
        elsewhere=_leaves_prefix(prefix, [Path(folder) for folder in libraries]),
    )


def _leaves_prefix(prefix: Path, libraries: Sequence[Path]) -> tuple[Path, ...]:
    """Return the targets, outside of the prefix, of links in place of folders that package managers write into."""
    folders = [prefix / name for name in ("bin", "lib", "lib64", "include", "share", "etc", "conda-meta")]
    folders += [place for folder in libraries for place in (folder, folder / "site-packages", folder / "dist-packages")]
    places = dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders if folder.exists())
    return tuple(place for place in places if not is_below(place, prefix))


def find_program(names: tuple[str, ...], variables: Mapping[str, str], paths: PathResolver) -> Path | None:
    """Return the path of the first of these programs that is found, never in the workspace; None if none is.

    `paths`: knows the workspace, in which anybody could have put a program of that name.
    """
    for name in names:
        for folder in variables.get("PATH", "").split(os.pathsep):
            place = Path(folder) / name
            if not folder.startswith("/") or not os.access(place, os.X_OK) or not place.is_file():
                continue
            try:
                if not (paths.locate(folder).is_inside or paths.locate(str(place)).is_inside):
                    return place
            except ToolError:
                continue  # a folder of PATH that does not exist
    return None


MAX_PACKAGES = 5_000
_JSON_BYTES = 8_000_000
"""Most bytes of conda's record of one package, which lists all its files."""
_TOKEN = compile_late(r"/t/[^/]+/")
"""Part of a channel's address that holds its key."""


class Installed(Frozen):
    """One package that is installed."""

    name: str
    """Normalised (PEP 503) for a package of Python, as it is for one of conda."""
    version: str
    by: Literal["pip", "conda"] = "pip"
    """Author of the record: Python's installers, or conda."""
    build: str = ""
    """Build and channel of a package of conda; empty for others."""
    channel: str = ""
    address: str = ""
    """Address that it was installed from, as after the `@` of a requirement; empty if it came from an index."""
    path: str = ""
    """The folder or file that it was installed from, where no index gave it."""
    is_editable: bool = False
    is_of_hidden_origin: bool = False
    """True if it came from an address that cannot be recorded, such as one that holds a key."""

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the package in an environment."""
        return self.by, self.name

    @property
    def pin(self) -> str:
        """Requirement that installs exactly this package again."""
        if self.by == "conda":
            return "=".join(filter(None, (self.name, self.version, self.build)))
        if self.path:
            return f"-e {self.path}" if self.is_editable else self.path
        return f"{self.name} @ {self.address}" if self.address else f"{self.name}=={self.version}"

    def __str__(self) -> str:
        from_where = self.path or self.address
        kind = " editable" if self.is_editable else ""
        return f"{self.name} {self.version}{f' ({from_where}{kind})' if from_where else ''}"


def read_installed(prefix: Path) -> list[Installed]:
    """Return all packages of an environment, by name; none where it does not exist."""
    root = MachineRoot()
    of_conda = list(_conda_packages(root, str(prefix)))
    known = {normalise_name(package.name) for package in of_conda}
    of_pip = {package.key: package for package in _python_packages(root, prefix) if package.name not in known}
    return sorted((*of_conda, *of_pip.values()), key=lambda package: (package.name.lower(), package.by))[:MAX_PACKAGES]


def shown_package(prefix: Path, name: str) -> str | None:
    """Return the facts about one package, a line each; None if it is not installed."""
    root, wanted = MachineRoot(), normalise_name(name)
    packages = read_installed(prefix)
    package = next((one for one in packages if normalise_name(one.name) == wanted), None)
    if package is None:
        return None
    if package.by == "conda":
        return "\n".join(_conda_lines(root, prefix, package))
    heads = {normalise_name(head.first("Name")): (head, place) for place, head in _heads(root, prefix)}
    head, place = heads[wanted]
    users = [normalise_name(other.first("Name")) for other, _ in heads.values() if wanted in _required(other)]
    lines = [f"{package}"]
    for key in ("Summary", "Home-page", "License", "License-Expression", "Requires-Python"):
        lines += [f"{key.lower().replace('-', ' ')}: {value}" for value in head.all(key) if value][:1]
    lines += [f"needs: {', '.join(head.all('Requires-Dist')) or 'nothing'}"]
    lines += [f"needed by: {', '.join(sorted(users)) or 'nothing'}", f"in: {place.rpartition('/')[0]}"]
    return "\n".join(lines)


def python_needs(prefix: Path) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield name, version and requirements (PEP 508) of each package of Python in an environment."""
    for _, head in _heads(MachineRoot(), prefix):
        yield normalise_name(head.first("Name")), head.first("Version"), list(head.all("Requires-Dist"))


def _heads(root: MachineRoot, prefix: Path) -> Iterator[tuple[str, Head]]:
    """Yield the record of each package of Python that says what it is, with its head."""
    prefixes = [str(prefix)]
    for folder in package_folders(root, prefixes, interpreter_of(root, prefixes).minor):
        for place, head in records_in(root, folder):
            if head is not None and head.first("Name") and head.first("Version"):
                yield place, head


def _python_packages(root: MachineRoot, prefix: Path) -> Iterator[Installed]:
    for place, head in _heads(root, prefix):
        origin = _origin(root.text(f"{place}/direct_url.json", max_bytes=10_000))
        yield Installed(name=normalise_name(head.first("Name")), version=head.first("Version"), **origin)


def _required(head: Head) -> set[str]:
    return {normalise_name(re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0]) for text in head.all("Requires-Dist")}


def _origin(direct_url: str | None) -> dict[str, Any]:
    """Return the source of a package as fields of `Installed`; nothing if it came from an index."""
    found = _json(direct_url)
    url = found.get("url")
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        return {}
    if not isinstance(url, str) or "@" in parts.netloc:
        return {"is_of_hidden_origin": isinstance(url, str)}
    if parts.scheme == "file":
        folder = found.get("dir_info")
        return {"path": unquote(parts.path), "is_editable": isinstance(folder, dict) and folder.get("editable") is True}
    vcs = found.get("vcs_info")
    if isinstance(vcs, dict) and isinstance(vcs.get("vcs"), str):
        revision = vcs.get("commit_id")
        inside = found.get("subdirectory")
        part = f"#subdirectory={inside}" if isinstance(inside, str) else ""
        return {"address": f"{vcs['vcs']}+{url}{f'@{revision}' if isinstance(revision, str) else ''}{part}"}
    return {"address": url}


def _conda_packages(root: MachineRoot, prefix: str) -> Iterator[Installed]:
    for name in root.names(f"{prefix}/conda-meta"):
        if not name.endswith(".json"):
            continue
        found = _json(root.text(f"{prefix}/conda-meta/{name}", max_bytes=_JSON_BYTES))
        called, version = found.get("name"), found.get("version")
        if isinstance(called, str) and isinstance(version, str):
            build, channel = found.get("build"), found.get("channel")
            yield Installed(
                name=called,
                version=version,
                by="conda",
                build=build if isinstance(build, str) else "",
                channel=_TOKEN.sub("/t/…/", channel) if isinstance(channel, str) else "",
            )


def _conda_lines(root: MachineRoot, prefix: Path, package: Installed) -> Iterator[str]:
    file = f"{prefix}/conda-meta/{package.name}-{package.version}-{package.build}.json"
    found = _json(root.text(file, max_bytes=_JSON_BYTES))
    needs = found.get("depends")
    yield f"{package.name} {package.version} {package.build}"
    yield f"channel: {package.channel or 'unknown'}"
    if isinstance(found.get("license"), str):
        yield f"license: {found['license']}"
    yield f"needs: {', '.join(map(str, needs)) if isinstance(needs, list) and needs else 'nothing'}"


def _json(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
