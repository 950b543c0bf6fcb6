"""Which Python an environment has, and where the packages lie that it finds, as files tell.

The rule: of several versions below `lib`, as an upgrade leaves them, only that of the interpreter counts.
"""

import re
from collections.abc import Mapping, Sequence

from panpan.capabilities.environment.find_environment import library_folders
from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.capabilities.environment.metadata import conda_records
from panpan.types.dataclass import dataclass

_VERSION = re.compile(r"3\.(\d{1,2})(?:\.\d{1,3})?")
_KEY = re.compile(r"^([\w-]+) *= *(.*?) *$", re.MULTILINE)
_NAMED = re.compile(r"/python(3\.\d{1,2})t?$")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python of an environment."""

    version: str
    """As far as it is said: `3.11.9`, `3.11`, or nothing."""
    minor: int | None
    """Of `3.11` the 11; None where there is no Python, or nobody says which."""
    is_free_threaded: bool
    program: str
    """Where `python` of the environment really lies; empty where it leads nowhere."""
    settings: Mapping[str, str]
    """What `pyvenv.cfg` says."""


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
    """Return where `python` of these folders really lies; empty where there is none, or it leads nowhere."""
    for program in (f"{prefix}/bin/{name}" for prefix in prefixes for name in ("python", "python3")):
        if root.exists(program):
            return root.resolve(program) or ""
    return ""


def package_folders(root: MachineRoot, prefixes: Sequence[str], minor: int | None) -> tuple[str, ...]:
    """Return the folders of packages that are there.

    Args:
        root: The machine.
        prefixes: Folders with a `lib`.
        minor: Of the interpreter; None: of any.
    """
    folders: dict[str, None] = {}
    for prefix in prefixes:
        libraries = [folder for folder, number, _ in library_folders(root, prefix) if minor in (None, number)]
        places = [f"{folder}/{name}" for folder in libraries for name in ("site-packages", "dist-packages")]
        debian = [f"{prefix}/lib/python3/dist-packages"]  # shared by all of Debian's own interpreters
        folders |= dict.fromkeys(place for place in (*places, *debian) if root.exists(place))
    return tuple(folders)
