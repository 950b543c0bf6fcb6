"""Rules for compiled modules: their needs of the interpreter, of libraries, of PyTorch and of NumPy."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from panpan.capabilities.environment.binary_layer import Binary
from panpan.capabilities.environment.driver_layer import version_text
from panpan.capabilities.environment.layers import Constraint, State, make_constraint
from panpan.capabilities.environment.toolkit_layer import GPU_LIBRARY, Framework, local_platform
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.capabilities.environment.env_doctor import Facts

# What wheel tags require of the interpreter and the system.
#
# Source: "Platform compatibility tags" (packaging.python.org), which are PEP 425, 600 (manylinux) and 656 (musllinux).

_PLATFORM = compile_late(r"(manylinux|musllinux|linux|macosx)(1|2010|2014|_\d{1,3}_\d{1,3})?_([a-z]\w*)")
_OLD_NAMES = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
"""Versions of glibc that the older names mean (PEP 600)."""
_TAG_CHARS = 300


@dataclass(frozen=True, slots=True)
class _Fault:
    rule: str
    needs: str
    has: str


def wheel_constraints(facts: "Facts") -> Iterator[Constraint]:
    """Yield the needs of the packages' wheels, one constraint for each package whose needs are not met."""
    tagged = [package for package in facts.python.packages if package.origin.tags]
    pairs = _pairs(facts)
    unfit = 0
    for package in tagged:
        faults = [_fault(tag, pairs, facts) for tag in package.origin.tags[:200] if len(tag) <= _TAG_CHARS]
        if not faults or None in faults:
            continue
        first = next(fault for fault in faults if fault is not None)
        unfit += 1
        needs = f"{package.name} {package.version} was built for {first.needs}"
        yield make_constraint(first.rule, "broken", needs, first.has)
    if tagged and not unfit and pairs:
        yield make_constraint(
            "python-abi", "holds", f"what wheels were built for ({len(tagged)} say it)", "all fit here"
        )


def _pairs(facts: "Facts") -> frozenset[tuple[str, str]]:
    """Return tags of interpreters with tags of ABIs that this Python takes; none where it is not known."""
    from packaging.tags import compatible_tags, cpython_tags

    python = facts.python
    if python.minor is None or not python.abi:
        return frozenset()
    tags = [*cpython_tags(python.minor, [python.abi], ["any"])]
    tags += compatible_tags(python.minor, python.abi.rstrip("t"), ["any"])
    return frozenset((tag.interpreter, tag.abi) for tag in tags)


def _fault(tag: str, pairs: frozenset[tuple[str, str]], facts: "Facts") -> _Fault | None:
    """Return the reason why one tag does not fit here; None if it fits or cannot be judged."""
    parts = tag.split("-")
    if len(parts) != 3:
        return None
    interpreters, abis, platforms = (part.split(".") for part in parts)
    if pairs and not any((one, abi) in pairs for one in interpreters for abi in abis):
        return _Fault("python-abi", f"{parts[0]}-{parts[1]}", f"the interpreter is {facts.python.abi}")
    faults = [_platform_fault(platform, facts) for platform in platforms]
    return None if None in faults else faults[0]


def _platform_fault(platform: str, facts: "Facts") -> _Fault | None:
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
                "glibc",
                f"glibc {version_text(needed)} ({platform})",
                f"the system has glibc {version_text(driver.glibc)}",
            )
    return None


_OF_THE_DRIVER = compile_late(r"lib(cuda|nvidia-[\w-]+|nvcuvid|nvoptix|dxcore)\.so[\d.]*")
"""Libraries that come with the driver; rules about it judge them."""
_BUNDLED = compile_late(r"[-.][0-9a-f]{8}\.so")
"""Libraries that auditwheel has put into a wheel: they have a hash in their names, and are nowhere else."""
_OF_MUSL = compile_late(r"libc\.musl-\w+\.so\.1|ld-musl-\w+\.so\.1")
_MODULE_TAG = compile_late(r"cpython-3(\d+)(t?)\b")
_BUILT_FOR = compile_late(r"cu(\d{2})\d*torch(\d+\.\d+)(?:\.\d+)*cxx11abi(TRUE|FALSE)", re.IGNORECASE)
"""Wheel names of FlashAttention, Mamba and others (setup.py of Dao-AILab/flash-attention)."""
_BUILT_FOR_PT = compile_late(r"\+pt(\d)(\d+)(?:cu(\d{2})\d+|cpu)?")
"""Wheel names of PyTorch Geometric's libraries (data.pyg.org)."""


def binary_constraints(facts: "Facts") -> Iterator[Constraint]:
    """Yield the constraints of the layer of binaries."""
    yield from wheel_constraints(facts)
    yield from _interpreters(facts)
    yield from _architectures(facts)
    yield from _damaged(facts)
    yield from _libraries(facts)
    yield from _symbol_versions(facts)
    yield from _torch_abi(facts)
    yield from _built_for_torch(facts)
    yield from _numpy_abi(facts)


def _interpreters(facts: "Facts") -> Iterator[Constraint]:
    """Yield modules built for other interpreters. One of several files of a module has to fit this interpreter."""
    abi = facts.python.abi
    if not abi:
        return
    by_stem: dict[str, list[Binary]] = defaultdict(list)
    for module in facts.binaries.modules:
        by_stem[module.stem].append(module)
    unfit = [several[0] for several in by_stem.values() if not any(_fits(one, abi) for one in several)]
    if unfit:
        needs = f"{_named(unfit)} built for {unfit[0].tag}"
        yield make_constraint("python-abi", "broken", needs, f"the interpreter is {abi}")


def _fits(module: Binary, abi: str) -> bool:
    match = _MODULE_TAG.match(module.tag)
    return f"cp3{match[1]}{match[2]}" == abi if match else not module.tag.startswith("pypy")


def _architectures(facts: "Facts") -> Iterator[Constraint]:
    machine = facts.python.machine
    others = [module for module in facts.binaries.modules if machine and module.elf.machine != machine]
    if others:
        yield make_constraint(
            "architecture",
            "broken",
            f"{_named(others)} built for {others[0].elf.machine}",
            f"the interpreter is for {machine}",
        )


def _damaged(facts: "Facts") -> Iterator[Constraint]:
    for path, reason in facts.binaries.damaged:
        yield make_constraint("damaged-binary", "broken", f"{path} whole", reason)
    if facts.binaries.skipped:
        has = f"{facts.binaries.skipped:,} more were not looked at"
        yield make_constraint("library", "unknown", f"what {len(facts.binaries.binaries):,} binaries need", has)


def _libraries(facts: "Facts") -> Iterator[Constraint]:
    """Yield missing libraries: broken if a package cannot be imported without one.

    It is only a risk if one module or plug-in of several needs it, which may never be used.
    """
    needing: dict[str, list[Binary]] = defaultdict(list)
    for binary in facts.binaries.binaries:
        for name in binary.missing:
            if not _OF_THE_DRIVER.fullmatch(name):
                needing[name].append(binary)
    idle = []
    for name, users in sorted(needing.items()):
        affected = facts.binaries.modules_over({user.path for user in users})
        if not affected:
            idle.append((name, users[0].shown))
            continue
        state: State = "broken" if _BUNDLED.search(name) or _is_all_of_a_package(affected, facts) else "risk"
        if (name == "libc.so.6" and facts.driver.libc == "musl") or _OF_MUSL.fullmatch(name):
            other = "glibc" if name == "libc.so.6" else "musl"
            has = f"the system has {facts.driver.libc or 'another'}"
            yield make_constraint("c-library", state, f"{_named(users)} linked with {other}", has)
            continue
        rule = "gpu-library" if GPU_LIBRARY.fullmatch(name) else "library"
        others = facts.binaries.search.all_named(f"{name.partition('.so')[0]}.so")
        has = f"there is {', '.join(list(others)[:3])}" if others else "it is nowhere"
        needs = f"{_named(users)} linked with {name}"
        yield make_constraint(rule, state, needs, has)
    if idle:
        needs = f"{len(idle)} libraries of plug-ins, such as {idle[0][0]} for {idle[0][1]}"
        yield make_constraint(
            "library", "risk", needs, "they are nowhere, and no module is linked with what needs them"
        )
    if facts.binaries.binaries and not needing:
        needs = f"the libraries that binaries are linked with (of {len(facts.binaries.binaries):,})"
        yield make_constraint("library", "holds", needs, "all are there")


def _is_all_of_a_package(affected: Sequence[Binary], facts: "Facts") -> bool:
    """True if all modules of some package are affected."""
    whole = Counter(module.package for module in facts.binaries.modules)
    return any(count == whole[package] for package, count in Counter(one.package for one in affected).items())


def _symbol_versions(facts: "Facts") -> Iterator[Constraint]:
    needing: dict[tuple[str, str], list[Binary]] = defaultdict(list)
    for binary in facts.binaries.binaries:
        for place, version in binary.missing_symbols:
            needing[place, version].append(binary)
    for (place, version), users in sorted(needing.items()):
        rule = "glibc" if version.startswith("GLIBC_") else "symbol-version"
        has = f"{place} has no {version}"
        if rule == "glibc" and facts.driver.glibc:
            has = f"the system has glibc {version_text(facts.driver.glibc)}"
        state: State = "broken" if facts.binaries.modules_over({user.path for user in users}) else "risk"
        yield make_constraint(rule, state, f"{_named(users)} built with {version}", has)


def _torch_abi(facts: "Facts") -> Iterator[Constraint]:
    known = [binary for binary in facts.binaries.binaries if binary.has_new_strings is not None]
    own = next((one for one in known if one.shown == "torch/lib/libc10.so"), None)
    others = [one for one in known if not one.shown.startswith("torch/")]
    if own is None or not others:
        return
    unfit = [one for one in others if one.has_new_strings != own.has_new_strings]
    if unfit:
        needs = f"{_named(unfit)} built with cxx11abi {_yes(unfit[0].has_new_strings)}"
        yield make_constraint(
            "torch-abi", "broken", needs, f"PyTorch was built with cxx11abi {_yes(own.has_new_strings)}"
        )
    else:
        yield make_constraint("torch-abi", "holds", f"{_named(others)} built with PyTorch's C++ ABI", "it is the same")


def _yes(is_new: bool | None) -> str:
    return "TRUE" if is_new else "FALSE"


def _built_for_torch(facts: "Facts") -> Iterator[Constraint]:
    torch = facts.python.package("torch")
    if torch is None:
        return
    framework = facts.toolkit.framework("torch")
    has_cuda = str(framework.runtime[0]) if framework and framework.platform == "cuda" and framework.runtime else ""
    for package in facts.python.packages:
        wanted, cuda = _said_torch(package.origin.wheel or package.version)
        if not wanted:
            continue
        fits = torch.version.partition("+")[0].split(".")[:2] == wanted.split(".")
        fits = fits and (not cuda or not has_cuda or cuda == has_cuda)
        needs = f"{package.name} was built for PyTorch {wanted}{f' with CUDA {cuda}' if cuda else ''}"
        has = f"it is {torch.version}{f' with CUDA {has_cuda}' if has_cuda else ''}"
        yield make_constraint("built-for-torch", "holds" if fits else "broken", needs, has)
    if framework is not None:
        yield from _built_beside_torch(framework, facts)


def _built_beside_torch(framework: Framework, facts: "Facts") -> Iterator[Constraint]:
    """PyTorch's own companions are built with it, and refuse another major version of the GPU's runtime."""
    for name in ("torchvision", "torchaudio"):
        package = facts.python.package(name)
        said = local_platform(package.version) if package else None
        if package is None or said is None:
            continue
        platform, runtime = said
        if (platform, runtime[:1]) != (framework.platform, framework.runtime[:1]):
            state: State = "risk" if "cpu" in (platform, framework.platform) else "broken"
            needs = f"{name} {package.version} was built for {_platform(platform, runtime)}"
            has = f"PyTorch was for {_platform(framework.platform, framework.runtime)}"
            yield make_constraint("built-for-torch", state, needs, has)


def _platform(platform: str, runtime: Sequence[int]) -> str:
    return {"cuda": "CUDA ", "rocm": "ROCm "}.get(platform, "the processor") + version_text(runtime)


def _said_torch(text: str) -> tuple[str, str]:
    """Return the PyTorch and the major version of CUDA that the name of a wheel says; empty where it says none."""
    if match := _BUILT_FOR.search(text):
        return match[2], match[1]
    if match := _BUILT_FOR_PT.search(text):
        return f"{match[1]}.{match[2]}", match[3] or ""
    return "", ""


def _numpy_abi(facts: "Facts") -> Iterator[Constraint]:
    numpy = facts.python.package("numpy")
    old = facts.binaries.built_for_numpy_1
    if numpy is not None and old:
        more = f" and {len(old) - 1} more modules" if len(old) > 1 else ""
        yield make_constraint("numpy-abi", "broken", f"{old[0]}{more} built for NumPy 1", f"it is {numpy.version}")


def _named(binaries: Sequence[Binary]) -> str:
    """Return the first of some binaries by its name, and how many more there are."""
    more = f" and {len(binaries) - 1} more are" if len(binaries) > 1 else " is"
    return f"{binaries[0].shown}{more}"
