"""The uppermost layer: the interpreter, and the packages that it can import."""

import re
from collections.abc import Sequence
from typing import TypeAlias

from panpan.errors import ToolError
from panpan.tools.environment.elf_file import ElfFile, read_elf
from panpan.tools.environment.find_environment import Environment, library_folders
from panpan.tools.environment.layers import Finding
from panpan.tools.environment.library_search import with_origin
from panpan.tools.environment.machine_root import MachineRoot
from panpan.tools.environment.packages import Package, leftovers, read_packages
from panpan.types.dataclass import dataclass

Minor: TypeAlias = tuple[int, int]

_VERSION = re.compile(r"3\.(\d{1,2})(?:\.\d{1,3})?")
_KEY = re.compile(r"^([\w-]+) *= *(.*?) *$", re.MULTILINE)
_NAMED = re.compile(r"/python(3\.\d{1,2})t?$")
_OF_SYSTEM = ("/usr/local", "/usr")
_CONDA_RECORD = re.compile(r"(.+)-([^-]+)-[^-]+\.json")


@dataclass(frozen=True, slots=True)
class PythonLayer:
    """An interpreter with its packages."""

    version: str
    """As far as files tell: `3.11.9`, `3.11`, or nothing."""
    minor: Minor | None
    abi: str
    """The tag of its binary interface, such as `cp311` or `cp313t`; empty where it is not known, or not CPython."""
    program: str
    """Where `python` of the environment really lies; empty where it leads nowhere."""
    machine: str
    """What the interpreter was built for, as in `uname -m`; empty where it is not known."""
    library_folders: tuple[str, ...]
    """Where the interpreter looks for its own libraries."""
    site_folders: tuple[str, ...]
    packages: tuple[Package, ...]
    leftovers: tuple[str, ...]
    of_conda: tuple[tuple[str, str], ...]
    """What conda says that it installed: names and versions."""

    def package(self, name: str) -> Package | None:
        """Return an installed package by its normalised name."""
        return next((package for package in self.packages if package.name == name), None)


def look_at_python(root: MachineRoot, environment: Environment) -> PythonLayer:
    """Return the interpreter of an environment and its packages."""
    prefixes = _prefixes(root, environment)
    settings = dict(_KEY.findall(root.text(f"{prefixes[0]}/pyvenv.cfg", max_bytes=10_000) or ""))
    conda = _conda_records(root, prefixes[0]) if environment.kind == "conda" else ()
    program = _program(root, prefixes)
    named = _NAMED.search(program)
    said = settings.get("version_info") or settings.get("version") or dict(conda).get("python", "")
    match = _VERSION.match(said or (named[1] if named else ""))
    folders = [one for prefix in prefixes for one in library_folders(root, prefix)]
    if match is not None:
        folders = [one for one in folders if one[1] == int(match[1])]
    minor = int(match[1]) if match else folders[0][1] if folders else None
    site_folders = _site_folders(root, prefixes, minor, settings)
    is_cpython = settings.get("implementation", "CPython") == "CPython"
    elf = _elf(root, program) if program else None
    free_threaded = "t" if folders and folders[0][2] else ""
    return PythonLayer(
        version=match[0] if match and match[0].count(".") == 2 else _header_version(root, prefixes, minor),
        minor=None if minor is None else (3, minor),
        abi=f"cp3{minor}{free_threaded}" if minor is not None and is_cpython else "",
        program=program,
        machine=elf.machine if elf else "",
        library_folders=tuple(with_origin(elf.search, program)) if elf else (),
        site_folders=site_folders,
        packages=tuple(read_packages(root, site_folders)),
        leftovers=tuple(leftovers(root, site_folders)),
        of_conda=conda,
    )


def python_findings(python: PythonLayer) -> list[Finding]:
    """Return what the layer has, for the report: the interpreter, and each package with the tag of its wheel."""
    found = [
        Finding(layer="python", name="python", value=python.version or "unknown", source=python.program),
        Finding(layer="python", name="ABI tag", value=python.abi or "unknown"),
        Finding(layer="python", name="packages", value=str(len(python.packages)), source=" ".join(python.site_folders)),
    ]
    for package in python.packages:
        value = " ".join((package.version or "unknown", *package.tags[:1]))
        found.append(Finding(layer="python", name=package.name, value=value, source=package.folder))
    return found


def _elf(root: MachineRoot, program: str) -> ElfFile | None:
    with root.opened(program) as stream:
        try:
            return read_elf(stream) if stream is not None else None
        except ToolError:
            return None


def _prefixes(root: MachineRoot, environment: Environment) -> list[str]:
    """Return where an environment lies; Debian's own interpreter has packages in /usr and in /usr/local."""
    prefix = environment.path.rstrip("/")
    is_of_system = environment.kind == "python" and prefix in _OF_SYSTEM
    return [*_OF_SYSTEM] if is_of_system and not _program(root, ["/usr/local"]) else [prefix]


def _program(root: MachineRoot, prefixes: Sequence[str]) -> str:
    for program in (f"{prefix}/bin/{name}" for prefix in prefixes for name in ("python", "python3")):
        if root.exists(program):
            return root.resolve(program) or ""
    return ""


def _site_folders(
    root: MachineRoot, of_environment: Sequence[str], minor: int | None, settings: dict[str, str]
) -> tuple[str, ...]:
    prefixes = [*of_environment]
    if settings.get("include-system-site-packages", "").lower() == "true":
        base = settings.get("home", "").rpartition("/")[0]
        prefixes += [base] if base != "/usr" else _OF_SYSTEM
    folders: dict[str, None] = {}
    for one in prefixes:
        libraries = [folder for folder, number, _ in library_folders(root, one) if minor in (None, number)]
        places = [f"{folder}/{name}" for folder in libraries for name in ("site-packages", "dist-packages")]
        debian = [f"{one}/lib/python3/dist-packages"]  # shared by all of Debian's own interpreters
        folders |= dict.fromkeys(place for place in (*places, *debian) if root.exists(place))
    return tuple(folders)


def _conda_records(root: MachineRoot, prefix: str) -> tuple[tuple[str, str], ...]:
    matches = (_CONDA_RECORD.fullmatch(name) for name in root.names(f"{prefix}/conda-meta"))
    return tuple((match[1], match[2]) for match in matches if match)


def _header_version(root: MachineRoot, prefixes: Sequence[str], minor: int | None) -> str:
    if minor is None:
        return ""
    headers = (root.text(f"{prefix}/include/python3.{minor}/patchlevel.h", max_bytes=10_000) for prefix in prefixes)
    header = next(filter(None, headers), "")
    match = re.search(r'#define\s+PY_VERSION\s+"(3\.\d+\.\d+)', header)
    return match[1] if match else f"3.{minor}"
