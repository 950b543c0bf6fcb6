"""What the tags of wheels ask of the interpreter and of the system.

They are those of "Platform compatibility tags" (packaging.python.org): PEP 425, 600 (manylinux), 656 (musllinux).
"""

import re
from collections.abc import Iterator

from panpan.capabilities.environment.advice import judged
from panpan.capabilities.environment.cuda_facts import dotted
from panpan.capabilities.environment.facts import Facts
from panpan.capabilities.environment.layers import Constraint
from panpan.types.dataclass import dataclass

_PLATFORM = re.compile(r"(manylinux|musllinux|linux|macosx)(1|2010|2014|_\d{1,3}_\d{1,3})?_([a-z]\w*)")
_OLD_NAMES = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
"""Versions of glibc that the first names stand for (PEP 600)."""
_TAG_CHARS = 300


@dataclass(frozen=True, slots=True)
class _Fault:
    rule: str
    needs: str
    has: str


def wheel_constraints(facts: Facts) -> Iterator[Constraint]:
    """Yield what the wheels of packages ask for, one constraint a package that does not get it."""
    tagged = [package for package in facts.python.packages if package.tags]
    pairs = _pairs(facts)
    unfit = 0
    for package in tagged:
        faults = [_fault(tag, pairs, facts) for tag in package.tags[:200] if len(tag) <= _TAG_CHARS]
        if not faults or None in faults:
            continue
        first = next(fault for fault in faults if fault is not None)
        unfit += 1
        needs = f"{package.name} {package.version} was built for {first.needs}"
        yield judged(first.rule, "broken", needs, first.has)
    if tagged and not unfit and pairs:
        yield judged("python-abi", "holds", f"what wheels were built for ({len(tagged)} say it)", "all fit here")


def _pairs(facts: Facts) -> frozenset[tuple[str, str]]:
    """Return tags of interpreters with tags of ABIs that this Python takes; none where it is not known."""
    from packaging.tags import compatible_tags, cpython_tags

    python = facts.python
    if python.minor is None or not python.abi:
        return frozenset()
    tags = [*cpython_tags(python.minor, [python.abi], ["any"])]
    tags += compatible_tags(python.minor, python.abi.rstrip("t"), ["any"])
    return frozenset((tag.interpreter, tag.abi) for tag in tags)


def _fault(tag: str, pairs: frozenset[tuple[str, str]], facts: Facts) -> _Fault | None:
    """Return what is wrong with one tag here; None where nothing is, or nobody can tell."""
    parts = tag.split("-")
    if len(parts) != 3:
        return None
    interpreters, abis, platforms = (part.split(".") for part in parts)
    if pairs and not any((one, abi) in pairs for one in interpreters for abi in abis):
        return _Fault("python-abi", f"{parts[0]}-{parts[1]}", f"the interpreter is {facts.python.abi}")
    faults = [_platform_fault(platform, facts) for platform in platforms]
    return None if None in faults else faults[0]


def _platform_fault(platform: str, facts: Facts) -> _Fault | None:
    if platform.startswith("win"):
        return _Fault("architecture", "Windows", f"the system is {facts.driver.system or 'another'}")
    match = _PLATFORM.fullmatch(platform)
    if match is None:
        return None
    family, level, machine = match.groups()
    driver = facts.driver
    if driver.kind and (family == "macosx") != (driver.kind == "macos"):
        return _Fault("architecture", platform, f"the system is {driver.system or driver.kind}")
    known = facts.python.machine
    if known and family != "macosx" and machine != known:
        return _Fault("architecture", machine, f"the interpreter is for {known}")
    if family == "manylinux" and driver.libc == "musl":
        return _Fault("c-library", f"glibc ({platform})", "the system has musl")
    if family == "musllinux" and driver.libc == "glibc":
        return _Fault("c-library", f"musl ({platform})", "the system has glibc")
    if family == "manylinux" and level and driver.glibc:
        needed = _OLD_NAMES.get(level) or tuple(map(int, level.strip("_").split("_")))
        if needed > driver.glibc:
            return _Fault(
                "glibc", f"glibc {dotted(needed)} ({platform})", f"the system has glibc {dotted(driver.glibc)}"
            )
    return None
