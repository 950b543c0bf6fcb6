"""What the operations tell that only look: read from the disk, running nothing."""

from collections.abc import Sequence

from panpan.capabilities.packages.installed import read_installed, shown_package
from panpan.capabilities.packages.target import Target
from panpan.capabilities.packages.wanted import package_name, require_some


def looked_at(operation: str, packages: Sequence[str], target: Target) -> str:
    """Return what `show`, `freeze` or `list` tells of an environment. Synchronous.

    Args:
        operation: One of them.
        packages: What is to be shown, or parts of the names to be listed; none: all of them.
        target: The environment.

    Raises:
        ToolError: Nothing is named that could be shown, or what is named is no name.
    """
    prefix = target.prefix
    if operation == "show":
        require_some(packages)
        names = [package_name(text) for text in packages]
        return "\n\n".join(shown_package(prefix, name) or f"{name} is not installed in {prefix}" for name in names)
    found = read_installed(prefix)
    if operation == "freeze":
        return "\n".join(package.pin for package in found) or f"# nothing is installed in {prefix}"
    wanted = {text.lower() for text in packages}
    listed = [one for one in found if not wanted or any(word in one.name.lower() for word in wanted)]
    lines = [f"{package}{f' {package.build}' if package.build else ''}" for package in listed]
    return "\n".join([f"{len(listed)} packages in {target}", *lines])
