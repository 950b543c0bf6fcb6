"""Whether what is asked for is there: requirements (PEP 508) and ranges, held against an environment."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from panpan.capabilities.environment.facts import Facts
from panpan.capabilities.environment.metadata import normalised

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_REQUIREMENT_CHARS = 1_000


def fits_python(specifier: str, version: str) -> bool | None:
    """Return whether a version is in a range; None where the range cannot be read, or the patch level decides."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(specifier[:_REQUIREMENT_CHARS])
    except (InvalidSpecifier, RecursionError):
        return None
    known = [version] if version.count(".") == 2 else [f"{version}.0", f"{version}.99"]
    answers = {allowed.contains(one, prereleases=True) for one in known}
    return answers.pop() if len(answers) == 1 else None


def applying(text: str, markers: Mapping[str, str]) -> "Requirement | None":
    """Return what is asked for; None where it is not asked for here, or cannot be read."""
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
    """Return what is there in the place of what is asked for; empty where that is met, None where nobody can tell."""
    from packaging.version import InvalidVersion, Version

    version = versions.get(normalised(requirement.name))
    if version is None:
        return "it is not installed"
    try:
        is_met = requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return None if requirement.specifier else ""
    return "" if is_met else f"it is {version}"


def marker_values(facts: Facts) -> Mapping[str, str]:
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
