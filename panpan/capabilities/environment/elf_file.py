"""One ELF file: its machine, the libraries and symbol versions that it needs, and where they are looked for.

The rule: a damaged file is a finding, whatever is wrong with it. pyelftools trusts what it reads and raises errors of
many kinds, so all of them are one here, and the amounts that a file may claim are bounded before it believes them.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, BinaryIO

from panpan.errors import ToolError
from panpan.python_environments.machine_root import MachineRoot
from panpan.types.dataclass import dataclass

_MACHINES: Mapping[int, str] = {3: "i686", 21: "ppc64le", 22: "s390x", 40: "armv7l", 62: "x86_64", 183: "aarch64"}
"""`e_machine` (elf.h) as `uname -m` says it; others are named by their number."""
_MAX_SECTIONS = 500
_MAX_TAGS = 5_000
_MAX_VERSIONS = 2_000
_STRINGS_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class ElfFile:
    """A program or a shared library."""

    machine: str
    needed: tuple[str, ...] = ()
    """Names of the libraries that it is linked with (DT_NEEDED)."""
    search: tuple[str, ...] = ()
    """Folders that it looks for them in (DT_RUNPATH, or else DT_RPATH), as they are written."""
    versions_needed: tuple[tuple[str, str], ...] = ()
    """Libraries with a version of symbols that it needs of them, such as `libc.so.6` with `GLIBC_2.28`."""
    versions_defined: tuple[str, ...] = ()
    """Versions of symbols that it has itself."""


def read_elf(stream: BinaryIO) -> ElfFile | None:
    """Return the parsed headers of an ELF file; None if it is not one, such as a linker script.

    Raises:
        ToolError: It is damaged.
    """
    header = _header(stream)
    if header is None:
        return None
    try:
        return _read(_parsed(stream), _machine(header))
    except Exception as exc:  # pyelftools raises nearly anything on a damaged file
        raise ToolError("it is not a complete ELF file") from exc


def section_bytes(stream: BinaryIO, name: str) -> bytes:
    """Return the raw content of a section of an ELF file; empty if there is no such section.

    `name`: such as `.dynstr`.

    Raises:
        ToolError: It is damaged, or the section is larger than 64 MB.
    """
    if _header(stream) is None:
        return b""
    try:
        section = _parsed(stream).get_section_by_name(name)
        if section is None:
            return b""
        if section["sh_size"] <= _STRINGS_BYTES:
            stream.seek(section["sh_offset"])
            return stream.read(section["sh_size"])
    except Exception as exc:  # pyelftools raises nearly anything on a damaged file
        raise ToolError("it is not a complete ELF file") from exc
    raise ToolError(f"its section {name} is larger than {_STRINGS_BYTES:,} bytes")


def _parsed(stream: BinaryIO) -> Any:
    from elftools.elf.elffile import ELFFile

    constructor: Any = ELFFile  # the package has no types
    return constructor(stream)


def _header(stream: BinaryIO) -> bytes | None:
    """Return the first bytes of an ELF file; None where it is none, or claims more than a library ever has."""
    try:
        stream.seek(0)
        header = stream.read(64)
    except OSError as exc:
        raise ToolError(f"it cannot be read: {exc.strerror}") from exc
    if not header.startswith(b"\x7fELF"):
        return None
    if len(header) < 52 or header[4] not in (1, 2) or header[5] not in (1, 2):
        raise ToolError("it is not a complete ELF file")
    count_at, table_at = (60, 40) if header[4] == 2 else (48, 32)
    order = "<" if header[5] == 1 else ">"
    if len(header) < count_at + 2:
        raise ToolError("it is not a complete ELF file")
    (sections,) = struct.unpack_from(f"{order}H", header, count_at)
    (table,) = struct.unpack_from(f"{order}I", header, table_at)
    if sections > _MAX_SECTIONS or (table and not sections):
        raise ToolError(f"it is not a library: it has more than {_MAX_SECTIONS} sections")
    return header


def _machine(header: bytes) -> str:
    (number,) = struct.unpack_from("<H" if header[5] == 1 else ">H", header, 18)
    return _MACHINES.get(number, f"machine {number}")


def _read(elf: Any, machine: str) -> ElfFile:
    needed: list[str] = []
    search: dict[str, str] = {}
    for segment in elf.iter_segments("PT_DYNAMIC"):
        for tag in islice(segment.iter_tags(), _MAX_TAGS):
            kind = tag.entry.d_tag
            if kind == "DT_NEEDED":
                needed.append(str(tag.needed))
            elif kind == "DT_RUNPATH":
                search[kind] = str(tag.runpath)
            elif kind == "DT_RPATH":
                search[kind] = str(tag.rpath)
    folders = search.get("DT_RUNPATH") or search.get("DT_RPATH") or ""
    return ElfFile(
        machine,
        tuple(needed),
        tuple(folder for folder in folders.split(":") if folder),
        tuple(islice(_versions_needed(elf), _MAX_VERSIONS)),
        tuple(islice(_versions_defined(elf), _MAX_VERSIONS)),
    )


def _versions_needed(elf: Any) -> Iterator[tuple[str, str]]:
    section = elf.get_section_by_name(".gnu.version_r")
    if section is not None and hasattr(section, "iter_versions"):
        for library, versions in islice(section.iter_versions(), _MAX_VERSIONS):
            for version in islice(versions, _MAX_VERSIONS):
                yield str(library.name), str(version.name)


def _versions_defined(elf: Any) -> Iterator[str]:
    section = elf.get_section_by_name(".gnu.version_d")
    if section is not None and hasattr(section, "iter_versions"):
        for _, names in islice(section.iter_versions(), _MAX_VERSIONS):
            yield from (str(name.name) for name in islice(names, 1))  # the first is its own, the others are its parents


def newest(versions: Sequence[str], family: str) -> tuple[int, ...]:
    """Return the highest version of a family of symbols, `GLIBC` or `GLIBCXX`; empty where there is none."""
    start = f"{family}_"
    found = (version[len(start) :].split(".") for version in versions if version.startswith(start))
    return max((tuple(map(int, parts)) for parts in found if all(_is_number(part) for part in parts)), default=())


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < 6


# Where to find a shared library: in the folders that a binary names, in those of the machine, or in the environment.
#
# The order is that of ld.so(8): DT_RPATH or DT_RUNPATH with `$ORIGIN`, LD_LIBRARY_PATH, the folders of ld.so.conf(5),
# the usual ones. A library elsewhere in the environment counts as found, too: packages such as PyTorch load their
# libraries before the modules that need them, and the loader does not load a library twice.

_USUAL = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
_OF_WSL = "/usr/lib/wsl/lib"
"""Folder in which Windows puts the driver's libraries."""
_MAX_CONFIGURED = 200


class LibrarySearch:
    """Finds shared libraries by the names that binaries need them by.

    `of_environment`: libraries that lie in the environment: names, each with where it lies. `of_interpreter`: the
    folders that the interpreter itself is linked with, where its libraries are loaded from.
    """

    def __init__(
        self,
        root: MachineRoot,
        of_environment: Mapping[str, str],
        library_path: str = "",
        of_interpreter: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._of_environment = of_environment
        named = (*library_path.split(":"), *of_interpreter)
        self._named = [folder for folder in named if folder.startswith("/")]
        self._of_machine = {name: place for folder in self._folders() for name, place in self._libraries_in(folder)}
        self._exists: dict[str, bool] = {}

    def find(self, name: str, *, of: str = "", search: tuple[str, ...] = ()) -> str:
        """Return the path of a library; empty if there is none.

        `of`: the binary that needs it. `search`: the folders that this binary names.
        """
        for folder in (*with_origin(search, of), *self._named):
            if folder.startswith("/") and self._is_there(f"{folder}/{name}"):
                return f"{folder}/{name}"
        return self._of_machine.get(name) or self._of_environment.get(name, "")

    def all_named(self, start: str) -> Mapping[str, str]:
        """Return all libraries whose names begin so, of the environment and the machine: names, and where they lie."""
        both = {**self._of_machine, **self._of_environment}
        return {name: both[name] for name in sorted(both) if name.startswith(start)}

    def _is_there(self, path: str) -> bool:
        if path not in self._exists:
            self._exists[path] = self._root.exists(path)
        return self._exists[path]

    def _folders(self) -> Iterator[str]:
        """Yield the folders of the machine; what is looked at last counts most."""
        of_machines = [
            f"{top}/{name}" for top in ("/lib", "/usr/lib") for name in self._root.names(top) if "-linux-gnu" in name
        ]
        yield from reversed([*self._configured("/etc/ld.so.conf"), *of_machines, *_USUAL, _OF_WSL])

    def _libraries_in(self, folder: str) -> Iterator[tuple[str, str]]:
        return ((name, f"{folder}/{name}") for name in self._root.names(folder) if ".so" in name)

    def _configured(self, path: str) -> list[str]:
        """Return the folders of a file such as /etc/ld.so.conf, and of those that it includes from a folder beside."""
        folders: list[str] = []
        for line in (self._root.text(path, max_bytes=100_000) or "").splitlines():
            words = line.partition("#")[0].split()
            if words[:1] == ["include"] and len(words) == 2 and words[1].endswith("/*.conf"):
                beside = words[1].removesuffix("/*.conf")
                beside = beside if beside.startswith("/") else f"/etc/{beside}"
                for name in self._root.names(beside)[:_MAX_CONFIGURED]:
                    if name.endswith(".conf"):
                        text = self._root.text(f"{beside}/{name}", max_bytes=100_000) or ""
                        folders += [one.strip() for one in text.splitlines() if one.startswith("/")]
            elif words and words[0].startswith("/"):
                folders.append(words[0])
        return folders[:_MAX_CONFIGURED]


def with_origin(folders: Sequence[str], binary: str) -> list[str]:
    """Return folders as a binary names them, with the folder that it lies in for `$ORIGIN`."""
    origin = binary.rpartition("/")[0]
    return [folder.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for folder in folders]
