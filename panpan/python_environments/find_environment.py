"""Finding the environment of a project, its Python, and the folders of its packages."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import conda_records
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

ENVIRONMENT_FOLDERS = (".venv", "venv", "env", ".pixi/envs/default")
"""Places of the environment of a project, below its root; the first that is there counts."""
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
LIBRARY_FOLDER = compile_late(r"(?:python|pypy)3\.(\d{1,2})(t?)")
"""A folder of an interpreter's packages below `lib`; its minor version, and whether it is free-threaded."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder with packages for one interpreter."""

    path: str
    kind: Literal["venv", "conda", "python"]
    """The last is an interpreter's own, such as /usr/local."""
    why: str


def find_environment(root: MachineRoot, place: str, variables: Mapping[str, str]) -> Environment | None:
    """Return the environment that `place` is, or that belongs to the project there, or else the one that is active.

    `place`: an environment, or the folder of a project; absolute. `variables`: environment variables; an active
    environment is named by VIRTUAL_ENV or CONDA_PREFIX.
    """
    place = place.rstrip("/")
    if kind := _kind(root, place):
        return Environment(place or "/", kind, "the folder is one itself")
    for name in ENVIRONMENT_FOLDERS:
        if kind := _kind(root, f"{place}/{name}"):
            return Environment(f"{place}/{name}", kind, "it is the project's")
    for variable in _ACTIVE:
        path = variables.get(variable, "").rstrip("/")
        if path.startswith("/") and (kind := _kind(root, path)):
            return Environment(path, kind, f"{variable} names it")
    return None


def project_of(place: str, environment: Environment | None, here: str) -> str:
    """Return the folder of the project that an environment is for; empty if there is none.

    `here`: the folder that is worked in, to which an environment belongs that lies in no project.
    """
    place = place.rstrip("/")
    if environment is None or environment.path != place:
        return place
    usual = (place.removesuffix(f"/{name}") for name in ENVIRONMENT_FOLDERS if place.endswith(f"/{name}"))
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


# If `lib` has several versions, as after an upgrade, only that of the interpreter counts.

_VERSION = compile_late(r"3\.(\d{1,2})(?:\.\d{1,3})?")
_KEY = compile_late(r"^([\w-]+) *= *(.*?) *$", re.MULTILINE)
_NAMED = compile_late(r"/python(3\.\d{1,2})t?$")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python of an environment."""

    version: str
    """Version as far as it is known: `3.11.9`, `3.11`, or nothing."""
    minor: int | None
    """Minor version, such as 11 of `3.11`; None if there is no Python, or its version is unknown."""
    is_free_threaded: bool
    program: str
    """Real path of the environment's `python`; empty if the link leads nowhere."""
    settings: Mapping[str, str]


def interpreter_of(root: MachineRoot, prefixes: Sequence[str]) -> Interpreter:
    """Return the Python of an environment, which is in one of these folders; the first one is the environment."""
    settings = dict(_KEY.findall(root.text(f"{prefixes[0]}/pyvenv.cfg", max_bytes=10_000) or ""))
    program = program_of(root, prefixes)
    named = _NAMED.search(program)
    by_conda = dict(conda_records(root, prefixes[0])).get("python")
    said = settings.get("version_info") or settings.get("version") or by_conda
    match = _VERSION.match(said or (named[1] if named else ""))
    folders = [one for prefix in prefixes for one in library_folders(root, prefix)]
    if match is not None:
        folders = [one for one in folders if one[1] == int(match[1])]
    return Interpreter(
        version=match[0] if match else "",
        minor=int(match[1]) if match else folders[0][1] if folders else None,
        is_free_threaded=bool(folders) and folders[0][2],
        program=program,
        settings=settings,
    )


def program_of(root: MachineRoot, prefixes: Sequence[str]) -> str:
    """Return where `python` of these folders really lies; empty if there is none, or it leads nowhere."""
    for program in (f"{prefix}/bin/{name}" for prefix in prefixes for name in ("python", "python3")):
        if root.exists(program):
            return root.resolve(program) or ""
    return ""


def package_folders(root: MachineRoot, prefixes: Sequence[str], minor: int | None) -> tuple[str, ...]:
    """Return the folders of packages that are there.

    `minor`: minor version of the interpreter; None for any.
    """
    folders: dict[str, None] = {}
    for prefix in prefixes:
        libraries = [folder for folder, number, _ in library_folders(root, prefix) if minor in (None, number)]
        places = [f"{folder}/{name}" for folder in libraries for name in ("site-packages", "dist-packages")]
        debian = [f"{prefix}/lib/python3/dist-packages"]  # all of Debian's own interpreters share it
        folders |= dict.fromkeys(place for place in (*places, *debian) if root.exists(place))
    return tuple(folders)
