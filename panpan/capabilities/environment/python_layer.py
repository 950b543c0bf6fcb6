"""The uppermost layer: the interpreter, and the packages that it can import."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from panpan.capabilities.environment.elf_file import ElfFile, read_elf, with_origin
from panpan.capabilities.environment.layers import Constraint, Finding, make_constraint
from panpan.errors import ToolError
from panpan.python_environments.find_environment import (
    Environment,
    Interpreter,
    interpreter_of,
    package_folders,
    program_of,
)
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import (
    Package,
    applying,
    conda_records,
    fits_python,
    leftovers,
    normalise_name,
    read_packages,
    unmet,
)
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.capabilities.environment.env_doctor import Facts


Minor: TypeAlias = tuple[int, int]

_OF_SYSTEM = ("/usr/local", "/usr")


@dataclass(frozen=True, slots=True)
class PythonLayer:
    """An interpreter with its packages."""

    version: str
    """Version as far as files tell: `3.11.9`, `3.11`, or empty."""
    minor: Minor | None
    abi: str
    """The tag of its binary interface, such as `cp311` or `cp313t`; empty where it is not known, or not CPython."""
    program: str
    """Real path of the environment's `python`; empty if it leads nowhere."""
    elf: ElfFile | None
    site_folders: tuple[str, ...]
    packages: tuple[Package, ...]
    of_conda: tuple[tuple[str, str], ...]
    """Names and versions of the packages that conda recorded as installed."""

    @property
    def machine(self) -> str:
        """Machine that the interpreter was built for, as in `uname -m`; empty if unknown."""
        return self.elf.machine if self.elf else ""

    @property
    def library_folders(self) -> Sequence[str]:
        """Folders in which the interpreter looks for its own libraries."""
        return with_origin(self.elf.search, self.program) if self.elf else ()

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the packages by their normalised names; of several the one that is imported."""
        return {package.name: package.version for package in reversed(self.packages)}

    def package(self, name: str) -> Package | None:
        """Return an installed package by its normalised name."""
        return next((package for package in self.packages if package.name == name), None)


def inspect_python(root: MachineRoot, environment: Environment) -> PythonLayer:
    """Return the interpreter of an environment and its packages."""
    prefixes = _prefixes(root, environment)
    found = interpreter_of(root, prefixes)
    minor, free_threaded = found.minor, "t" if found.is_free_threaded else ""
    site_folders = package_folders(root, [*prefixes, *_of_system_too(found.settings)], minor)
    is_cpython = found.settings.get("implementation", "CPython") == "CPython"
    return PythonLayer(
        version=_version(root, prefixes, found),
        minor=None if minor is None else (3, minor),
        abi=f"cp3{minor}{free_threaded}" if minor is not None and is_cpython else "",
        program=found.program,
        elf=_elf(root, found.program) if found.program else None,
        site_folders=site_folders,
        packages=tuple(read_packages(root, site_folders)),
        of_conda=conda_records(root, prefixes[0]) if environment.kind == "conda" else (),
    )


def python_findings(python: PythonLayer) -> list[Finding]:
    """Return the findings of the layer: the interpreter, and each package with the tag of its wheel."""
    found = [
        Finding(layer="python", name="python", value=python.version or "unknown", source=python.program),
        Finding(layer="python", name="ABI tag", value=python.abi or "unknown"),
        Finding(layer="python", name="packages", value=str(len(python.packages)), source=" ".join(python.site_folders)),
    ]
    for package in python.packages:
        value = " ".join((package.version or "unknown", *package.origin.tags[:1]))
        found.append(Finding(layer="python", name=package.name, value=value, source=package.folder))
    return found


def _elf(root: MachineRoot, program: str) -> ElfFile | None:
    with root.opened(program) as stream:
        try:
            return read_elf(stream) if stream is not None else None
        except ToolError:
            return None


def _prefixes(root: MachineRoot, environment: Environment) -> list[str]:
    """Return the prefixes of an environment; Debian's own interpreter has packages in /usr and in /usr/local."""
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


def marker_values(facts: "Facts") -> Mapping[str, str]:
    """Return the values of environment markers on that machine (PEP 508), not on the one that panpan runs on."""
    python, driver = facts.python, facts.driver
    is_mac = driver.kind == "macos"
    minor = ".".join(map(str, python.minor or (3,)))
    full = python.version if python.version.count(".") == 2 else f"{minor}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": python.machine or ("arm64" if is_mac else "x86_64"),
        "platform_python_implementation": "CPython",
        "platform_release": driver.kernel,
        "platform_system": "Darwin" if is_mac else "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": minor,
        "sys_platform": "darwin" if is_mac else "linux",
        "extra": "",
    }


def python_constraints(facts: "Facts") -> Iterator[Constraint]:
    """Yield the packages' constraints on the interpreter and on each other."""
    yield from _required_python(facts)
    yield from _whole_packages(facts)
    yield from _one_version_each(facts)
    yield from _dependencies(facts)


def interpreter_constraints(facts: "Facts") -> Iterator[Constraint]:
    """Yield a broken constraint if there is no interpreter."""
    python = facts.python
    if not python.program:
        has = f"bin/python of {facts.environment.path} leads to nothing"
        yield make_constraint("interpreter", "broken", "an interpreter", has)


def _required_python(facts: "Facts") -> Iterator[Constraint]:
    version = facts.python.version
    asking = [package for package in facts.python.packages if package.requires_python]
    if not version or not asking:
        return
    refused = 0
    for package in asking:
        fits = fits_python(package.requires_python, version)
        if fits is not True:
            refused += 1
            needs = f"{package.name} {package.version} needs Python {package.requires_python}"
            yield make_constraint("requires-python", "unknown" if fits is None else "broken", needs, f"it is {version}")
    if not refused:
        needs = f"the Python that packages ask for ({len(asking)} say which)"
        yield make_constraint("requires-python", "holds", needs, f"{version} suits all")


def _whole_packages(facts: "Facts") -> Iterator[Constraint]:
    for package in [one for one in facts.python.packages if one.damage]:
        yield make_constraint("damaged-package", "broken", f"{package.name} {package.version} whole", package.damage)
    for folder in leftovers(facts.root, facts.python.site_folders):
        yield make_constraint("leftover", "risk", "no half-deleted packages", folder)


def _one_version_each(facts: "Facts") -> Iterator[Constraint]:
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for package in facts.python.packages:
        versions[package.folder.rpartition("/")[0], package.name].add(package.version)
    for (_, name), several in list(versions.items()):
        if len(several) > 1:
            yield make_constraint("two-versions", "broken", f"one version of {name}", " and ".join(sorted(several)))
    by_conda = {normalise_name(name): version for name, version in facts.python.of_conda}
    for package in facts.python.packages:
        said = by_conda.get(package.name)
        if said and said != package.version and package.origin.installer != "conda":
            has = f"it is {package.version}, by {package.origin.installer or 'something else'}"
            yield make_constraint("conda-and-pip", "risk", f"{package.name} {said}, which conda recorded", has)


def _dependencies(facts: "Facts") -> Iterator[Constraint]:
    """Yield unmet dependencies as `pip check` does: without extras, if the marker is true on this machine."""
    installed = facts.python.versions
    markers = marker_values(facts)
    asked = missed = 0
    for package in facts.python.packages:
        for text in package.requires:
            requirement = applying(text, markers)
            if requirement is None:
                continue
            asked += 1
            has = unmet(requirement, installed)
            if has:
                missed += 1
                needs = f"{package.name} {package.version} needs {requirement.name}{requirement.specifier}"
                is_runtime = normalise_name(requirement.name).startswith("nvidia-")
                yield make_constraint("gpu-dependency" if is_runtime else "dependency", "broken", needs, has)
    if asked and not missed:
        yield make_constraint("dependency", "holds", f"what packages ask for ({asked} times)", "all of it is there")
