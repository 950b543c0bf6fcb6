"""Requirements (PEP 508) and ranges of versions, held against what is installed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from panpan.python_environments.metadata import normalised

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
