from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.environment.elf_file import newest, read_elf, section_bytes
from panpan.errors import ToolError
from tests.fakes.elf_files import elf_file

WHOLE = elf_file(
    needed=["libc10.so", "libc.so.6"],
    runpath="$ORIGIN/lib:/opt/lib",
    versions={"libc.so.6": ["GLIBC_2.14", "GLIBC_2.34"], "libm.so.6": ["GLIBC_2.29"]},
    defined=["MINE_1", "MINE_2"],
    symbols=["_Z3fnv"],
    texts=b"\0hello\0",
)


def test_elf_needs_and_definitions_are_read() -> None:
    elf = read_elf(BytesIO(WHOLE))

    assert elf is not None
    assert elf.machine == "x86_64"
    assert elf.needed == ("libc10.so", "libc.so.6")
    assert elf.search == ("$ORIGIN/lib", "/opt/lib")
    assert elf.versions_needed == (
        ("libc.so.6", "GLIBC_2.14"),
        ("libc.so.6", "GLIBC_2.34"),
        ("libm.so.6", "GLIBC_2.29"),
    )
    assert elf.versions_defined == ("MINE_1", "MINE_2")


def test_sections_are_read_as_they_stand() -> None:
    assert section_bytes(BytesIO(WHOLE), ".rodata") == b"\0hello\0"
    assert b"\0_Z3fnv\0" in section_bytes(BytesIO(WHOLE), ".dynstr")
    assert section_bytes(BytesIO(WHOLE), ".none") == b""


@pytest.mark.parametrize("content", [b"", b"INPUT(libm.so.6)\n", b"\xcf\xfa\xed\xfe" + bytes(100)])
def test_file_that_is_no_elf_is_none(content: bytes) -> None:
    assert read_elf(BytesIO(content)) is None
    assert section_bytes(BytesIO(content), ".rodata") == b""


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=9), st.booleans())
def test_damaged_elf_is_read_or_refused(at: int, damage: bytes, is_cut: bool) -> None:
    content = WHOLE[:at] if is_cut else WHOLE[:at] + damage + WHOLE[at + len(damage) :]

    for read in (read_elf, lambda stream: section_bytes(stream, ".dynstr")):
        with suppress(ToolError):
            read(BytesIO(content))


def test_elf_with_too_many_sections_is_refused() -> None:
    content = bytearray(WHOLE)
    content[60:62] = b"\0\0"  # none in the header: the count would be in the first section, and could be 2⁶⁴

    with pytest.raises(ToolError, match="sections"):
        read_elf(BytesIO(bytes(content)))


def test_newest_version_of_a_family_is_found_by_number() -> None:
    versions = ["GLIBC_2.9", "GLIBC_2.34", "GLIBC_PRIVATE", "GLIBC_2.4.1", "GLIBCXX_3.4.30"]

    assert newest(versions, "GLIBC") == (2, 34)
    assert newest(versions, "GLIBCXX") == (3, 4, 30)
    assert newest(versions, "CXXABI") == ()
