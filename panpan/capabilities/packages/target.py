"""The environment that a call is about: its prefix, its interpreter, and whether it is the system's own.

The rule: nothing of the project is run to find it. What its files say is enough: pyvenv.cfg, conda-meta, lib/python3.N.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from panpan.errors import ToolError
from panpan.python_environments.find_environment import (
    Environment,
    find_environment,
    interpreter_of,
    library_folders,
)
from panpan.python_environments.machine_root import MachineRoot
from panpan.system.files.canonical import is_below
from panpan.system.files.paths import PathResolver
from panpan.types.dataclass import dataclass

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
    """Whether conda itself lives there."""
    is_externally_managed: bool = False
    elsewhere: tuple[Path, ...] = ()
    """Where folders of it really lie that are links out of it; canonical."""

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        python = self.prefix / "bin" / "python"
        return python if python.exists() else self.prefix / "bin" / "python3"

    @property
    def is_system(self) -> bool:
        """Whether others than this project rely on what is installed there."""
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
            raise ToolError(f"{environment} is no environment; create it first, or name another one")
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
        raise ToolError(f"{target.prefix} {what}; create an environment; `system` of pip is for users who ask for it")


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
        elsewhere=_led_away(prefix, [Path(folder) for folder in libraries]),
    )


def _led_away(prefix: Path, libraries: Sequence[Path]) -> tuple[Path, ...]:
    """Return where links lead that stand in place of folders which package managers write into."""
    folders = [prefix / name for name in ("bin", "lib", "lib64", "include", "share", "etc", "conda-meta")]
    folders += [place for folder in libraries for place in (folder, folder / "site-packages", folder / "dist-packages")]
    places = dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders if folder.exists())
    return tuple(place for place in places if not is_below(place, prefix))


def find_program(names: tuple[str, ...], variables: Mapping[str, str], paths: PathResolver) -> Path | None:
    """Return where the first of these programs is that is found, never in the workspace; None where none is.

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
                continue  # a folder of PATH that leads nowhere
    return None
