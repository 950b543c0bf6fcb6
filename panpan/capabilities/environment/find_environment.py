"""Which environment is looked at: the one that is named, the project's own, or the one that is active."""

import re
from collections.abc import Mapping
from typing import Literal

from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.types.dataclass import dataclass

_OF_PROJECTS = (".venv", "venv", "env", ".pixi/envs/default")
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
LIBRARY_FOLDER = re.compile(r"(?:python|pypy)3\.(\d{1,2})(t?)")
"""A folder of an interpreter's packages below `lib`; its minor version, and whether it is free-threaded."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder with packages for one interpreter."""

    path: str
    kind: Literal["venv", "conda", "python"]
    """The last is an interpreter's own, such as /usr/local."""
    why: str
    """Why it is looked at."""


def find_environment(root: MachineRoot, place: str, variables: Mapping[str, str]) -> Environment | None:
    """Return the environment that `place` is, or that belongs to the project there, or else the one that is active.

    Args:
        root: The machine.
        place: An environment, or the folder of a project; absolute.
        variables: Environment variables; an active environment is named by VIRTUAL_ENV or CONDA_PREFIX.
    """
    place = place.rstrip("/")
    if kind := _kind(root, place):
        return Environment(place or "/", kind, "the folder is one itself")
    for name in _OF_PROJECTS:
        if kind := _kind(root, f"{place}/{name}"):
            return Environment(f"{place}/{name}", kind, "it is the project's")
    for variable in _ACTIVE:
        path = variables.get(variable, "").rstrip("/")
        if path.startswith("/") and (kind := _kind(root, path)):
            return Environment(path, kind, f"{variable} names it")
    return None


def project_of(place: str, environment: Environment | None, here: str) -> str:
    """Return the folder of the project that an environment is for; empty: there is none.

    Args:
        place: An environment, or the folder of a project; absolute.
        environment: What was found for it.
        here: The folder that is worked in, to which an environment belongs that lies in no project.
    """
    place = place.rstrip("/")
    if environment is None or environment.path != place:
        return place
    usual = (place.removesuffix(f"/{name}") for name in _OF_PROJECTS if place.endswith(f"/{name}"))
    return next(usual, "" if here == place else here)


def library_folders(root: MachineRoot, prefix: str) -> list[tuple[str, int, bool]]:
    """Return the folders `lib/python3.N` of a prefix with N, newest first, and whether they are free-threaded."""
    found: dict[str | None, tuple[str, int, bool]] = {}
    for lib in ("lib", "lib64"):
        for name in root.names(f"{prefix}/{lib}"):
            if match := LIBRARY_FOLDER.fullmatch(name):
                folder = f"{prefix}/{lib}/{name}"
                found.setdefault(root.resolve(folder), (folder, int(match[1]), bool(match[2])))
    return sorted(found.values(), key=lambda one: -one[1])


def _kind(root: MachineRoot, path: str) -> Literal["venv", "conda", "python"] | None:
    if root.exists(f"{path}/pyvenv.cfg"):
        return "venv"
    if root.exists(f"{path}/conda-meta"):
        return "conda"
    folders = [*(folder for folder, _, _ in library_folders(root, path)), f"{path}/lib/python3"]  # Debian's own
    if any(root.exists(f"{folder}/{name}") for folder in folders for name in ("site-packages", "dist-packages")):
        return "python"
    return None
