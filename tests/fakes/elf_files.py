"""Small ELF files: shared libraries with a machine, dependencies and symbols, but no code."""

import struct
from collections.abc import Mapping, Sequence

MACHINES = {"x86_64": 62, "aarch64": 183}
_DYNSTR, _VERNEED, _VERDEF, _RODATA, _DYNAMIC, _NAMES = range(1, 7)


def elf_file(
    machine: str = "x86_64",
    *,
    needed: Sequence[str] = (),
    runpath: str = "",
    versions: Mapping[str, Sequence[str]] | None = None,
    defined: Sequence[str] = (),
    symbols: Sequence[str] = (),
    texts: bytes = b"",
) -> bytes:
    """Return a 64-bit shared library.

    Args:
        machine: Machine as in `uname -m`.
        needed: Libraries that it is linked with.
        runpath: Search path for them.
        versions: Versions of symbols that it needs, by library.
        defined: Versions of symbols that it has.
        symbols: Names in its table of symbols.
        texts: Contents of its `.rodata`.
    """
    strings = _Strings()
    tags = [(1, strings.at(name)) for name in needed] + ([(29, strings.at(runpath))] if runpath else [])
    need = b"".join(_needs(strings, versions or {}))
    have = b"".join(_defines(strings, defined))
    for symbol in symbols:
        strings.at(symbol)
    names = _Strings()
    titles = [".dynstr", ".gnu.version_r", ".gnu.version_d", ".rodata", ".dynamic", ".shstrtab"]
    titles_at = [names.at(title) for title in titles]
    start = 64 + 2 * 56
    parts = [strings.data, need, have, texts]
    places = [start + sum(map(len, parts[:index])) for index in range(4)]
    tags += [(5, places[0]), (10, len(strings.data)), (0, 0)]
    dynamic_at = start + sum(map(len, parts))
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    names_at = dynamic_at + len(dynamic)
    sections_at = names_at + len(names.data)
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 3, MACHINES[machine], 1, 0, 64, sections_at, 0, 64, 56, 2, 64, 7, _NAMES)
    )
    segments = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, sections_at, sections_at, 4096)
    segments += struct.pack("<IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    kinds = [3, 0x6FFFFFFE, 0x6FFFFFFD, 1, 6, 3]
    at = [*places, dynamic_at, names_at]
    sizes = [*map(len, parts), len(dynamic), len(names.data)]
    counts = [0, len(versions or {}), len(defined), 0, 0, 0]
    links = [0, _DYNSTR, _DYNSTR, 0, _DYNSTR, 0]
    sections = bytes(64)
    for index in range(6):
        entry = 16 if index + 1 == _DYNAMIC else 0
        sections += struct.pack(
            "<IIQQQQIIQQ", titles_at[index], kinds[index], 2, at[index], at[index], sizes[index], links[index],
            counts[index], 1, entry,
        )  # fmt: skip
    return header + segments + b"".join(parts) + dynamic + names.data + sections


class _Strings:
    """A table of strings that end with a NUL."""

    def __init__(self) -> None:
        self.data = b"\0"

    def at(self, text: str) -> int:
        place = len(self.data)
        self.data += text.encode() + b"\0"
        return place


def _needs(strings: _Strings, versions: Mapping[str, Sequence[str]]) -> Sequence[bytes]:
    parts = []
    for number, (library, names) in enumerate(versions.items(), 1):
        size = 16 * (len(names) + 1)
        following = 0 if number == len(versions) else size
        parts.append(struct.pack("<HHIII", 1, len(names), strings.at(library), 16, following))
        for index, name in enumerate(names, 1):
            parts.append(struct.pack("<IHHII", 0, 0, index, strings.at(name), 0 if index == len(names) else 16))
    return parts


def _defines(strings: _Strings, names: Sequence[str]) -> Sequence[bytes]:
    parts = []
    for index, name in enumerate(names, 1):
        parts.append(struct.pack("<HHHHIII", 1, 0, index, 1, 0, 20, 0 if index == len(names) else 28))
        parts.append(struct.pack("<II", strings.at(name), 0))
    return parts
