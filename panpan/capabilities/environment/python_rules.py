"""What the uppermost layer asks of itself: an interpreter, and what packages ask of it and of each other."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from panpan.capabilities.environment.facts import Facts
from panpan.capabilities.environment.layers import Constraint, judged
from panpan.python_environments.metadata import applying, fits_python, normalised, unmet

if TYPE_CHECKING:
    pass


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


def python_constraints(facts: Facts) -> Iterator[Constraint]:
    """Yield what packages ask of the interpreter and of each other."""
    yield from _required_python(facts)
    yield from _whole_packages(facts)
    yield from _one_version_each(facts)
    yield from _dependencies(facts)


def interpreter_constraints(facts: Facts) -> Iterator[Constraint]:
    """Yield that there is no interpreter, where there is none."""
    python = facts.python
    if not python.program:
        has = f"bin/python of {facts.environment.path} leads to nothing"
        yield judged("interpreter", "broken", "an interpreter", has)


def _required_python(facts: Facts) -> Iterator[Constraint]:
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
            yield judged("requires-python", "unknown" if fits is None else "broken", needs, f"it is {version}")
    if not refused:
        needs = f"the Python that packages ask for ({len(asking)} say which)"
        yield judged("requires-python", "holds", needs, f"{version} suits all")


def _whole_packages(facts: Facts) -> Iterator[Constraint]:
    for package in [one for one in facts.python.packages if one.damage]:
        yield judged("damaged-package", "broken", f"{package.name} {package.version} whole", package.damage)
    for folder in facts.python.leftovers:
        yield judged("leftover", "risk", "no half-deleted packages", folder)


def _one_version_each(facts: Facts) -> Iterator[Constraint]:
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for package in facts.python.packages:
        versions[package.folder.rpartition("/")[0], package.name].add(package.version)
    for (_, name), several in list(versions.items()):
        if len(several) > 1:
            yield judged("two-versions", "broken", f"one version of {name}", " and ".join(sorted(several)))
    by_conda = {normalised(name): version for name, version in facts.python.of_conda}
    for package in facts.python.packages:
        said = by_conda.get(package.name)
        if said and said != package.version and package.installer != "conda":
            has = f"it is {package.version}, by {package.installer or 'something else'}"
            yield judged("conda-and-pip", "risk", f"{package.name} {said}, which conda recorded", has)


def _dependencies(facts: Facts) -> Iterator[Constraint]:
    """As `pip check` does: what packages need without extras, where its condition is true on this machine."""
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
                is_runtime = normalised(requirement.name).startswith("nvidia-")
                yield judged("gpu-dependency" if is_runtime else "dependency", "broken", needs, has)
    if asked and not missed:
        yield judged("dependency", "holds", f"what packages ask for ({asked} times)", "all of it is there")
