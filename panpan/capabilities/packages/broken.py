"""What a change has broken: needs of packages, and of the project, that what is installed now does not meet."""

from collections.abc import Iterator, Mapping

from panpan.capabilities.environment.metadata import normalised
from panpan.capabilities.environment.needs import applying, unmet
from panpan.capabilities.environment.project.project_wishes import ProjectWishes
from panpan.capabilities.environment.project.wish import Wish, is_for_conda
from panpan.capabilities.packages.changes import Changes
from panpan.capabilities.packages.installed import python_needs
from panpan.capabilities.packages.target import Target

_MOST = 20


def broken_by(target: Target, changes: Changes, wishes: ProjectWishes | None = None) -> list[str]:
    """Return a sentence for each need that is not met, of what was changed or about it.

    Args:
        target: The environment, as it is now.
        changes: What was changed in it.
        wishes: What the project asks for to which it belongs.
    """
    if not changes:
        return []
    touched = (*changes.added, *changes.removed, *(after for _, after in changes.changed))
    names = {normalised(package.name) for package in touched}
    packages = list(python_needs(target.prefix))
    versions = {name: version for name, version, _ in packages}
    of_packages = (
        (f"now broken: {name} {version} needs", text, name in names)
        for name, version, texts in packages
        for text in texts
    )
    of_project = (
        (f"not what the project asks for: {one.source} asks for", one.text, False) for one in _wished(wishes, target)
    )
    markers, said = _markers(target), list[str]()
    for who, text, is_touched in (*of_packages, *of_project):
        requirement = applying(text, markers)
        if requirement is None or not (is_touched or normalised(requirement.name) in names):
            continue
        if unmet(requirement, versions):
            found = versions.get(normalised(requirement.name))
            has = f"{normalised(requirement.name)} {found} is installed" if found else "that is not installed"
            said.append(f"{who} {requirement.name}{requirement.specifier}, but {has}")
    return [*said[:_MOST], *([f"and {len(said) - _MOST} more"] if len(said) > _MOST else [])]


def _wished(wishes: ProjectWishes | None, target: Target) -> Iterator[Wish]:
    """Yield what has to be in the environment, but for what conda has under names of its own."""
    for wish in wishes.packages if wishes is not None else ():
        if not (wish.group or wish.is_bound or wish.is_condas or (is_for_conda(wish.file) and target.kind != "conda")):
            yield wish


def _markers(target: Target) -> Mapping[str, str]:
    from packaging.markers import default_environment

    markers = {**{name: str(value) for name, value in default_environment().items()}, "extra": ""}
    minor = target.python.rstrip("t")
    return markers | ({"python_version": minor, "python_full_version": f"{minor}.0"} if minor else {})
