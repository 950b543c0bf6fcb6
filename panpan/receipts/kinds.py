"""Kind of a command, by what came of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from panpan.receipts.digests import Content
from panpan.receipts.receipt import CommandKind, TestCounts

_COMPILED = (
    b"\x7fELF",
    b"!<arch>\n",
    b"\0asm",
    b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",  # Mach-O
)  # fmt: skip
_BY_ENDING: Mapping[bytes, tuple[str, ...]] = {
    b"\xca\xfe\xba\xbe": (".class", ".dylib", ".so", ".o", ""),  # of Java, or Mach-O for several processors
    b"MZ": (".exe", ".dll", ".pyd", ".sys"),
    b"PK\x03\x04": (".whl", ".jar", ".war", ".ear", ".apk", ".aar", ".nupkg", ".vsix"),
    b"\x1f\x8b": (".crate", ".gem", ".tgz"),
}
"""Beginnings that other files have, too, with the endings of names that settle it."""
_DOCUMENT = b"%PDF-"


def is_compiled(path: str, content: Content) -> bool:
    """Return True if a file is a program, a library or a package that was made from sources."""
    if content.head.startswith(_COMPILED):
        return True
    ending = _ending(path)
    return any(content.head.startswith(head) and ending in endings for head, endings in _BY_ENDING.items())


def built_files(outputs: Mapping[str, Content]) -> list[str]:
    """Return the files that look like what a build makes: programs, libraries, packages and documents."""
    return [
        path for path, content in outputs.items() if is_compiled(path, content) or content.head.startswith(_DOCUMENT)
    ]


def kind_of(
    tests: Sequence[TestCounts],
    outputs: Mapping[str, Content],
    inputs: Iterable[Content],
    *,
    only_looks: bool,
    is_copied: Collection[str] = (),
) -> CommandKind:
    """Return the kind of a command.

    Args:
        tests: Its test reports.
        outputs: Files that it wrote, by path.
        inputs: Files that it read and did not write; an output with the content of one is a copy, and was not built.
        only_looks: True if it is known to change nothing.
        is_copied: Outputs that came from elsewhere, such as those that git tracks.
    """
    if any(one.ran + one.skipped for one in tests):
        return "tests"
    known = {content.sha256 for content in inputs if content.sha256}
    if any(outputs[path].sha256 not in known and path not in is_copied for path in built_files(outputs)):
        return "build"
    return "look" if only_looks and not outputs else "run"


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""
