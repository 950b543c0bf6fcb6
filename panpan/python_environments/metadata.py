"""Packages that are installed, as the records beside them tell; nothing of them is run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from panpan.python_environments.machine_root import MachineRoot
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from packaging.requirements import Requirement


# The metadata that installers leave beside packages, and its head: name, version, requirements.
#
# The format is "Recording installed projects" (packaging.python.org). setuptools and conda still write egg-info.

_OF_CONDA = compile_late(r"(.+)-([^-]+)-[^-]+\.json")
_HEAD_BYTES = 256_000
"""Most bytes that are read of metadata: only its head is needed, which comes before the description."""


@dataclass(frozen=True, slots=True)
class Head:
    """Lines such as `Name: numpy`."""

    lines: tuple[str, ...]

    def all(self, key: str) -> Iterator[str]:
        """Yield what is said of a key, such as each `Requires-Dist`."""
        start = f"{key}: "
        return (line[len(start) :].strip() for line in self.lines if line.startswith(start))

    def first(self, key: str) -> str:
        """Return what is said of a key first; empty if nothing is."""
        return next(self.all(key), "")


def records_in(root: MachineRoot, folder: str) -> Iterator[tuple[str, Head | None]]:
    """Yield where each record in a folder of packages lies, with its head; None if that cannot be read.

    What pip renamed to take a package away, and never deleted, is none.
    """
    for name in root.names(folder):
        place = f"{folder}/{name}"
        if name.startswith("~"):
            continue
        if name.endswith(".dist-info"):
            yield place, read_head(root, f"{place}/METADATA")
        elif name.endswith(".egg-info"):  # a folder with PKG-INFO, or that file itself
            yield place, read_head(root, f"{place}/PKG-INFO") or read_head(root, place)


def conda_records(root: MachineRoot, prefix: str) -> tuple[tuple[str, str], ...]:
    """Return names and versions of all that conda says it installed in an environment, as its files are called."""
    matches = (_OF_CONDA.fullmatch(name) for name in root.names(f"{prefix}/conda-meta"))
    return tuple((match[1], match[2]) for match in matches if match)


def read_head(root: MachineRoot, path: str) -> Head | None:
    """Return the head of a file of metadata; None if it cannot be read."""
    text = root.text(path, max_bytes=_HEAD_BYTES)
    return None if text is None else Head(tuple(text.replace("\r\n", "\n").partition("\n\n")[0].split("\n")))


def normalise_name(name: str) -> str:
    """Return a name as all spellings of it are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


# The installed packages according to their `*.dist-info` folders; nothing of them is run.
#
# The format of these folders is "Recording installed projects" (packaging.python.org), defined by PEP 376, 427, 610 and
# 627.

MAX_PACKAGES = 5_000
_RECORD_BYTES = 8_000_000
_NAME = compile_late(r"[A-Z0-9](?:[A-Z0-9._-]{0,200}[A-Z0-9])?", re.IGNORECASE)
_TOP_LEVEL = compile_late(r"^([^/,\"\n.][^/,\"\n]*/__init__\.py|[^/,\"\n.][^/,\"\n]*\.(?:py|so)),", re.MULTILINE)
"""Modules and packages that can be imported, in RECORD."""


_SHARED = {"tests", "test", "docs", "examples", "benchmarks", "scripts"}
"""Folders that several packages bring along by mistake, so that one takes them away from the others."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Installation of a package."""

    tags: tuple[str, ...] = ()
    """Tags of its wheel, such as `cp311-cp311-manylinux_2_28_x86_64`; empty if they are not recorded."""
    installer: str = ""
    """Program that installed it, such as pip, uv or conda; empty if it is not recorded."""
    wheel: str = ""
    """File that it was installed from, if that was named by its address (PEP 610)."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that is installed, whole or in part."""

    name: str
    """Normalised, as in PEP 503."""
    version: str
    folder: str
    """Its `*.dist-info` or `*.egg-info`."""
    requires_python: str = ""
    requires: tuple[str, ...] = ()
    origin: Origin = Origin()
    damage: str = ""


def read_packages(root: MachineRoot, site_folders: Sequence[str]) -> list[Package]:
    """Return all packages in these folders, whole or damaged; what pip left of some is none."""
    return [package for folder in site_folders for package in _packages_in(root, folder)][:MAX_PACKAGES]


def leftovers(root: MachineRoot, site_folders: Sequence[str]) -> list[str]:
    """Return the folders that pip renamed to take a package away, and that it never deleted: `~umpy` of `numpy`."""
    return [f"{folder}/{name}" for folder in site_folders for name in root.names(folder) if name.startswith("~")]


def _packages_in(root: MachineRoot, folder: str) -> Iterator[Package]:
    for place, head in records_in(root, folder):
        yield _of_dist_info(root, place, head) if place.endswith(".dist-info") else _of_egg_info(place, head)


def _of_dist_info(root: MachineRoot, folder: str, head: Head | None) -> Package:
    named, _, version = folder.rpartition("/")[2].removesuffix(".dist-info").partition("-")
    if head is None:
        return Package(normalise_name(named), version, folder, damage="its METADATA is missing or cannot be read")
    name, said = head.first("Name"), head.first("Version")
    if not _NAME.fullmatch(name) or not said:
        return Package(normalise_name(named), version, folder, damage="its METADATA has no name or no version")
    wheel = read_head(root, f"{folder}/WHEEL")
    return Package(
        normalise_name(name),
        said,
        folder,
        requires_python=head.first("Requires-Python"),
        requires=tuple(head.all("Requires-Dist")),
        origin=Origin(
            tuple(wheel.all("Tag")) if wheel else (),
            (root.text(f"{folder}/INSTALLER", max_bytes=100) or "").strip(),
            _wheel_name(root.text(f"{folder}/direct_url.json", max_bytes=10_000)),
        ),
        damage=_missing_modules(root, folder),
    )


def _of_egg_info(place: str, found: Head | None) -> Package:
    named, _, version = place.rpartition("/")[2].removesuffix(".egg-info").partition("-")
    head = found or Head(())
    name, said = head.first("Name") or named, head.first("Version") or version.partition("-")[0]
    damage = "" if found else "its PKG-INFO is missing or cannot be read"
    requires = tuple(head.all("Requires-Dist"))
    return Package(normalise_name(name), said, place, head.first("Requires-Python"), requires, damage=damage)


def _wheel_name(direct_url: str | None) -> str:
    if not direct_url:
        return ""
    try:
        found = json.loads(direct_url)
    except (ValueError, RecursionError):
        return ""
    url = found.get("url") if isinstance(found, dict) else None
    if not isinstance(url, str):
        return ""
    name = url.partition("#")[0].rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")
    return name if name.endswith(".whl") else ""


def _missing_modules(root: MachineRoot, folder: str) -> str:
    record = root.text(f"{folder}/RECORD", max_bytes=_RECORD_BYTES) or ""
    above = folder.rpartition("/")[0]
    listed = (name for name in _TOP_LEVEL.findall(record) if name.partition("/")[0] not in _SHARED)
    missing = [name for name in listed if not root.exists(f"{above}/{name}")]
    return f"{missing[0]} is missing, which its RECORD lists" if missing else ""


_REQUIREMENT_CHARS = 1_000


def fits_python(specifier: str, version: str) -> bool | None:
    """Return whether a version is in a range; None if the range cannot be read, or the patch level decides."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(specifier[:_REQUIREMENT_CHARS])
    except (InvalidSpecifier, RecursionError):
        return None
    known = [version] if version.count(".") == 2 else [f"{version}.0", f"{version}.99"]
    answers = {allowed.contains(one, prereleases=True) for one in known}
    return answers.pop() if len(answers) == 1 else None


def applying(text: str, markers: Mapping[str, str]) -> "Requirement | None":
    """Return what is asked for; None if it is not asked for here, or cannot be read."""
    from packaging.requirements import Requirement

    if len(text) > _REQUIREMENT_CHARS:
        return None
    try:
        requirement = Requirement(text)
        applies = requirement.marker is None or requirement.marker.evaluate(dict(markers))
    except (ValueError, KeyError, RecursionError):
        return None
    return requirement if applies else None


def is_requirement(text: str) -> bool:
    """Return whether a text can be read as a requirement."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text[:_REQUIREMENT_CHARS])
    except (InvalidRequirement, RecursionError):
        return False
    return len(text) <= _REQUIREMENT_CHARS


def unmet(requirement: "Requirement", versions: Mapping[str, str]) -> str | None:
    """Return the reason that a requirement is not met; empty if it is met, None if it cannot be told."""
    from packaging.version import InvalidVersion, Version

    version = versions.get(normalise_name(requirement.name))
    if version is None:
        return "it is not installed"
    try:
        is_met = requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return None if requirement.specifier else ""
    return "" if is_met else f"it is {version}"
