"""What a change has broken: packages whose needs what is installed now does not meet."""

from panpan.tools.environment.metadata import normalised
from panpan.tools.packages.changes import Changes
from panpan.tools.packages.installed import python_needs
from panpan.tools.packages.target import Target

_MOST = 20


def broken_by(target: Target, changes: Changes) -> list[str]:
    """Return a sentence for each need that is not met, of packages that were changed or of what was changed.

    Args:
        target: The environment, as it is now.
        changes: What was changed in it.
    """
    from packaging.markers import default_environment
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion

    if not changes:
        return []
    touched = (*changes.added, *changes.removed, *(after for _, after in changes.changed))
    names = {normalised(package.name) for package in touched}
    needs = list(python_needs(target.prefix))
    versions = {name: version for name, version, _ in needs}
    about: dict[str, str] = {**{name: str(value) for name, value in default_environment().items()}, "extra": ""}
    if target.python:
        about |= {"python_version": target.python.rstrip("t"), "python_full_version": f"{target.python.rstrip('t')}.0"}
    said: list[str] = []
    for name, version, texts in needs:
        for text in texts:
            try:
                requirement = Requirement(text)
                wanted = normalised(requirement.name)
                if not {name, wanted} & names or (requirement.marker and not requirement.marker.evaluate({**about})):
                    continue
                found = versions.get(wanted)
                is_met = found is not None and requirement.specifier.contains(found, prereleases=True)
            except (InvalidRequirement, InvalidVersion):
                continue
            if not is_met:
                has = f"{wanted} {found} is installed" if found else "that is not installed"
                said.append(f"now broken: {name} {version} needs {requirement.name}{requirement.specifier}, but {has}")
    return [*said[:_MOST], *([f"and {len(said) - _MOST} more"] if len(said) > _MOST else [])]
