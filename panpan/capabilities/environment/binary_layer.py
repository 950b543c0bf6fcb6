"""The layer of binaries: the compiled modules and libraries of the packages, and what they are linked with."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from panpan.capabilities.environment.elf_file import ElfFile, LibrarySearch, read_elf, section_bytes
from panpan.capabilities.environment.layers import Finding
from panpan.capabilities.environment.python_layer import PythonLayer
from panpan.errors import ToolError
from panpan.python_environments.machine_root import MachineRoot
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_BINARIES = 4_000
_LIBRARY = compile_late(r".+\.so(?:\.[\w.]+)?")
_TAGGED = compile_late(r"(.+?)\.((?:cpython|pypy)[\w-]*|abi3)\.so")
_NUMPY_BUDGET_BYTES = 400_000_000
_OLD_STRING = compile_late(rb"\0_ZNK?3c10[\w.]*Ss\0")
_NEW_STRING = compile_late(rb"\0_ZNK?3c10[\w.]*NSt7__cxx1112basic_string")
"""Names of functions of PyTorch's `c10` that take a `std::string`, as GCC's two ABIs write it: `Ss`, or in `__cxx11`
(Itanium C++ ABI; "Dual ABI" in the manual of libstdc++)."""


@dataclass(frozen=True, slots=True)
class Binary:
    """One file of a package that the loader loads."""

    path: str
    shown: str
    """Its path below the folder of the packages."""
    elf: ElfFile
    is_module: bool
    """True if Python imports it; False for a library that modules need."""
    tag: str = ""
    """The interpreter in its name, such as `cpython-311-x86_64-linux-gnu`, or `abi3`; empty where it fits any."""
    missing: tuple[str, ...] = ()
    missing_symbols: tuple[tuple[str, str], ...] = ()
    """Versions of symbols that it needs and that the library that is found does not have, after that library."""
    has_new_strings: bool | None = None
    """True if it is linked with PyTorch and uses GCC's newer string ABI; None if unknown or not linked with PyTorch."""

    @property
    def package(self) -> str:
        """The folder or file right below that of the packages, in which it lies."""
        return self.shown.partition("/")[0]

    @property
    def stem(self) -> str:
        """Path below the folder of the packages, without the suffix and its tag."""
        match = _TAGGED.fullmatch(self.shown)
        return match[1] if match else self.shown.removesuffix(".so")


@dataclass(frozen=True, slots=True)
class BinaryLayer:
    """All binaries of an environment."""

    binaries: tuple[Binary, ...]
    damaged: tuple[tuple[str, str], ...]
    skipped: int
    built_for_numpy_1: tuple[str, ...]
    """Modules that know only the C API of NumPy 1; looked for where NumPy 2 is installed."""
    search: LibrarySearch
    _linked: Mapping[str, Set[str]]
    """Files of the environment that are loaded with each module."""

    @property
    def modules(self) -> Sequence[Binary]:
        """The binaries that Python imports."""
        return [binary for binary in self.binaries if binary.is_module]

    def modules_over(self, paths: Set[str]) -> Sequence[Binary]:
        """Return the modules that are, or are linked with, some of these files, over whatever libraries."""
        return [module for module in self.modules if module.path in paths or self._linked[module.path] & paths]

    def needed(self) -> Mapping[str, str]:
        """Return every library that is needed, with one of those that need it."""
        return {name: binary.shown for binary in self.binaries for name in binary.elf.needed}


def inspect_binaries(root: MachineRoot, prefix: str, python: PythonLayer, library_path: str) -> BinaryLayer:
    """Return the binaries of an environment."""
    found = [(site, folder, name) for site in python.site_folders for folder, name in root.walk(site) if ".so" in name]
    files = sorted((f"{folder}/{name}", site) for site, folder, name in found if _LIBRARY.fullmatch(name))
    places = {name: f"{prefix}/lib/{name}" for name in root.names(f"{prefix}/lib") if ".so" in name}
    places |= {path.rpartition("/")[2]: path for path, _ in reversed(files)}
    search, versions = LibrarySearch(root, places, library_path, python.library_folders), _DefinedVersions(root)
    binaries: list[Binary] = []
    damaged: list[tuple[str, str]] = []
    for path, site in files[:MAX_BINARIES]:
        shown = path.removeprefix(f"{site}/")
        try:
            binary = _read_binary(root, path, shown, python.machine, search, versions)
        except ToolError as exc:
            damaged.append((shown, str(exc)))
            continue
        if binary is not None:
            binaries.append(binary)
    numpy = python.package("numpy")
    old = _built_for_numpy_1(root, binaries) if numpy is not None and numpy.version.startswith("2.") else ()
    linked = _linked(binaries, search)
    return BinaryLayer(tuple(binaries), tuple(damaged), max(0, len(files) - MAX_BINARIES), old, search, linked)


def _linked(binaries: Sequence[Binary], search: LibrarySearch) -> Mapping[str, Set[str]]:
    paths = {binary.path for binary in binaries}
    direct = {
        one.path: {search.find(name, of=one.path, search=one.elf.search) for name in one.elf.needed} & paths
        for one in binaries
    }
    return {binary.path: _reached(binary.path, direct) for binary in binaries if binary.is_module}


def _reached(start: str, direct: Mapping[str, Set[str]]) -> Set[str]:
    seen: set[str] = set()
    pending = [start]
    while pending:
        found = direct[pending.pop()] - seen
        seen |= found
        pending += found
    return seen


class _DefinedVersions:
    """The versions of symbols that libraries have, each read once."""

    def __init__(self, root: MachineRoot) -> None:
        self._root = root
        self._known: dict[str, frozenset[str]] = {}

    def of(self, place: str) -> frozenset[str]:
        """Return those of the library at `place`; none where it has no versions or cannot be read."""
        if place not in self._known:
            with self._root.opened(place) as stream:
                try:
                    elf = read_elf(stream) if stream is not None else None
                except ToolError:
                    elf = None
            self._known[place] = frozenset(elf.versions_defined) if elf else frozenset()
        return self._known[place]


def _read_binary(
    root: MachineRoot, path: str, shown: str, machine: str, search: LibrarySearch, versions: _DefinedVersions
) -> Binary | None:
    with root.opened(path) as stream:
        elf = read_elf(stream) if stream is not None else None
        if stream is None or elf is None:
            return None
        name = path.rpartition("/")[2]
        tagged = _TAGGED.fullmatch(name)
        # Some packages, such as debugpy, include helpers for other machines; Python never imports these.
        is_own = elf.machine == machine or not machine
        is_module = tagged is not None or (is_own and name.endswith(".so") and not name.startswith("lib"))
        uses_torch = name == "libc10.so" or any(one.startswith(("libc10.so", "libtorch")) for one in elf.needed)
        strings = _has_new_strings(section_bytes(stream, ".dynstr")) if uses_torch else None
    found = {name: search.find(name, of=path, search=elf.search) for name in elf.needed}
    missing = tuple(name for name, place in found.items() if not place)
    missing_symbols = tuple(
        (found[name], version)
        for name, version in elf.versions_needed
        if found.get(name) and versions.of(found[name]) and version not in versions.of(found[name])
    )
    return Binary(path, shown, elf, is_module, tagged[2] if tagged else "", missing, missing_symbols, strings)


def _has_new_strings(names: bytes) -> bool | None:
    new, old = _NEW_STRING.search(names) is not None, _OLD_STRING.search(names) is not None
    return None if new == old else new


def _built_for_numpy_1(root: MachineRoot, binaries: Sequence[Binary]) -> tuple[str, ...]:
    """Return modules that look for NumPy's C API where NumPy 1 has it, and not also where NumPy 2 has.

    What `import_array` of NumPy's headers imports is in the module as text: `numpy.core._multiarray_umath` with those
    of 1.x, and `numpy._core._multiarray_umath` before it with those of 2.x (numpy/_core/code_generators of NumPy).
    """
    old: list[str] = []
    left = _NUMPY_BUDGET_BYTES
    for binary in binaries:
        if not binary.is_module or left <= 0:
            continue
        with root.opened(binary.path) as stream:
            try:
                texts = section_bytes(stream, ".rodata") if stream is not None else b""
            except (ToolError, OSError):
                continue
        left -= len(texts)
        if b"numpy.core._multiarray_umath" in texts and b"numpy._core._multiarray_umath" not in texts:
            old.append(binary.shown)
    return tuple(old)


def binary_findings(layer: BinaryLayer) -> list[Finding]:
    """Return the findings of the layer: the number of binaries, and each module with its linked libraries."""
    machines = Counter(binary.elf.machine for binary in layer.binaries)
    counted = ", ".join(f"{count} {machine}" for machine, count in machines.most_common()) or "none"
    found = [Finding(layer="binary", name="binaries", value=counted)]
    for binary in layer.binaries:
        needs = ", ".join(f"{name} (missing)" if name in binary.missing else name for name in binary.elf.needed)
        found.append(Finding(layer="binary", name=binary.shown, value=needs or "no libraries", source=binary.path))
    return found
