"""The uppermost layer: the interpreter, and the packages that it can import."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from panpan.capabilities.environment.elf_file import ElfFile, read_elf, with_origin
from panpan.capabilities.environment.layers import Finding
from panpan.errors import ToolError
from panpan.python_environments.find_environment import (
    Environment,
    Interpreter,
    interpreter_of,
    package_folders,
    program_of,
)
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import Package, conda_records, leftovers, read_packages
from panpan.types.dataclass import dataclass

Minor: TypeAlias = tuple[int, int]

_OF_SYSTEM = ("/usr/local", "/usr")


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

    @property
    def versions(self) -> Mapping[str, str]:
        """Those of the packages, by their normalised names; of several the one that is imported."""
        return {package.name: package.version for package in reversed(self.packages)}

    def package(self, name: str) -> Package | None:
        """Return an installed package by its normalised name."""
        return next((package for package in self.packages if package.name == name), None)


def look_at_python(root: MachineRoot, environment: Environment) -> PythonLayer:
    """Return the interpreter of an environment and its packages."""
    prefixes = _prefixes(root, environment)
    found = interpreter_of(root, prefixes)
    minor, free_threaded = found.minor, "t" if found.is_free_threaded else ""
    site_folders = package_folders(root, [*prefixes, *_of_system_too(found.settings)], minor)
    is_cpython = found.settings.get("implementation", "CPython") == "CPython"
    elf = _elf(root, found.program) if found.program else None
    return PythonLayer(
        version=_version(root, prefixes, found),
        minor=None if minor is None else (3, minor),
        abi=f"cp3{minor}{free_threaded}" if minor is not None and is_cpython else "",
        program=found.program,
        machine=elf.machine if elf else "",
        library_folders=tuple(with_origin(elf.search, found.program)) if elf else (),
        site_folders=site_folders,
        packages=tuple(read_packages(root, site_folders)),
        leftovers=tuple(leftovers(root, site_folders)),
        of_conda=conda_records(root, prefixes[0]) if environment.kind == "conda" else (),
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
    return [*_OF_SYSTEM] if is_of_system and not program_of(root, ["/usr/local"]) else [prefix]


def _of_system_too(settings: Mapping[str, str]) -> Sequence[str]:
    """Return the folders of the interpreter that a virtual environment was made from, where it sees its packages."""
    if settings.get("include-system-site-packages", "").lower() != "true":
        return ()
    base = settings.get("home", "").rpartition("/")[0]
    return [base] if base != "/usr" else _OF_SYSTEM


def _version(root: MachineRoot, prefixes: Sequence[str], found: Interpreter) -> str:
    """Return the version of an interpreter as exactly as anybody says; its headers know where nobody else does."""
    if found.minor is None or found.version.count(".") == 2:
        return found.version
    place = f"include/python3.{found.minor}/patchlevel.h"
    headers = (root.text(f"{prefix}/{place}", max_bytes=10_000) for prefix in prefixes)
    match = re.search(r'#define\s+PY_VERSION\s+"(3\.\d+\.\d+)', next(filter(None, headers), ""))
    return match[1] if match else f"3.{found.minor}"
