"""Requirements in a file, with all files that it includes ("Requirements File Format", pip's documentation)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from posixpath import dirname, join, normpath

from panpan.python_environments.project_files import Declaration, PackageRequirement, ProjectFiles, Unclear
from panpan.types.pattern import compile_late

_COMMENT = compile_late(r"(?:^|(?<=\s))#.*")
NESTED = compile_late(r"(?P<option>-r|-c|--requirement|--constraint)(?:\s*=?\s*)(?P<path>\S.*)")
"""A line that names another such file."""
_HASHES = compile_late(r"(?:\s+--hash[=\s]\s*[\w-]+:[0-9a-fA-F]+)+")

Line = tuple[int, str]
"""Its number, from 1 on, and what it says."""


def requirement_lines(text: str) -> Sequence[Line]:
    """Return the lines without comments, those that go on in the next one put together; a comment never goes on."""
    joined, begun, start = list[Line](), "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            begun += line.strip("\\")
        else:
            joined.append((start, f"{begun} {line}" if is_comment else begun + line))
            begun, start = "", 0
    return without_comments((*joined, (start, begun)))


def without_comments(lines: Iterable[Line]) -> Sequence[Line]:
    """Return the lines that say something, without their comments."""
    return [(number, bare) for number, line in lines if (bare := _COMMENT.sub("", line).strip())]


def without_hashes(line: str) -> str:
    """Return a requirement without the digests that pip holds its files against."""
    first = re.search(r"\s--hash", line)
    if first is None or not _HASHES.fullmatch(line, first.start()):
        return line
    return line[: first.start()].rstrip()


ADDRESS = compile_late(r"(?:git\+)?[a-z][a-z0-9+.-]*://[^\s'\"]+", re.IGNORECASE)


def without_login(address: str) -> str:
    """Return an address without what could be a key in it."""
    head, slashes, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{head}{slashes}{authority.rpartition('@')[2]}{slash}{path}"


def without_logins(text: str) -> str:
    """Return a text, in all addresses of which user names and passwords are left out."""
    for address in ADDRESS.findall(text):
        text = text.replace(address, without_login(address))
    return text


MAX_DEPTH = 20
"""Files that include one another; pip has no bound."""
_EDITABLE = compile_late(r"(?:-e|--editable)(?:\s*=?\s*)(?P<place>\S.*)")
_OWN = compile_late(r"(?:file:)?\.?/?(?:\[[\w,. -]*\])?")
"""The folder itself, also with its extras."""
_EGG = compile_late(r"#(?:.*&)?egg=(?P<name>[A-Za-z0-9][\w.-]*)")
"""The name that an address says of its package."""
_MAX_LINE_CHARS = 1_000
_MAX_SHOWN_CHARS = 100
CONSTRAINT = ("-c", "--constraint")
"""Options that name a file which only says versions."""


def file_requirements(
    files: ProjectFiles, name: str, *, included_by: str = "", is_bound: bool = False, depth: int = 0
) -> Iterator[PackageRequirement | Unclear]:
    """Yield what a file asks for; nothing if it was read before.

    `included_by`: the file that led here. `is_bound`: True if it only says versions.
    """
    text = files.text(name, is_named=True) if depth < MAX_DEPTH else None
    if depth == MAX_DEPTH:
        yield Unclear(name, f"more than {MAX_DEPTH} files include one another")
    for number, line in requirement_lines(text or ""):
        source = f"{name}:{number}"
        if len(line) <= _MAX_LINE_CHARS and (nested := NESTED.fullmatch(line)):
            path = nested["path"].strip("\"'")
            if "://" in path:
                yield Unclear(source, "it is on a server and was not fetched", without_logins(line))
                continue
            yield from file_requirements(
                files,
                normpath(join(dirname(name), path)),
                included_by=included_by or name,
                is_bound=is_bound or nested["option"] in CONSTRAINT,
                depth=depth + 1,
            )
        elif said := line_requirement(line, source, included_by, is_bound=is_bound):
            yield said


def line_requirement(
    line: str, source: str, included_by: str = "", *, is_bound: bool = False
) -> PackageRequirement | Unclear | None:
    """Return what a line asks for; None if that is no package, or the project itself.

    `line`: without a comment. `included_by`: the file that led to that of the source. `is_bound`: True if it only says
    a version.
    """
    line = without_hashes(line)
    if len(line) > _MAX_LINE_CHARS:
        return Unclear(source, "it is too long", f"{line[:_MAX_SHOWN_CHARS]}…")
    editable = _EDITABLE.fullmatch(line)
    place = editable["place"] if editable else line
    if line.startswith("-") and not editable:
        return None
    if _OWN.fullmatch(place):
        return None
    if editable or place.startswith((".", "/")) or ("://" in place and " @ " not in place):
        if egg := _EGG.search(place):
            return PackageRequirement(egg["name"], source, included_by, is_bound=is_bound)
        return Unclear(source, "it has no name to look for", without_logins(line))
    return PackageRequirement(without_logins(line), source, included_by, is_bound=is_bound)


MAX_FILES = 20
_NAMES = {"": compile_late(r"[\w.-]*requirements?[\w.-]*\.txt"), "requirements": compile_late(r"[\w.-]+\.txt")}
"""Names of files of requirements, by the folder that they are in."""


def optional_requirements(files: ProjectFiles, *, are_all: bool) -> Iterator[Declaration]:
    """Yield what is asked for in files that no manifest names, which nobody has to install.

    `are_all`: True if nothing else says what the project needs. Then a single one is the project's, and of several
    nobody knows which one is meant.
    """
    names = [name for name in _names_in(files) if not files.was_read(name)][:MAX_FILES]
    for name in names:
        if are_all and len(names) == 1:
            yield from file_requirements(files, name)
            continue
        if are_all:
            yield Unclear(name, f"it is one of {len(names)} such files, and nothing says which is meant")
        said = file_requirements(files, name)
        yield from (replace(one, group=name) for one in said if isinstance(one, PackageRequirement))


def _names_in(files: ProjectFiles) -> Iterator[str]:
    for folder, usual in _NAMES.items():
        for name in files.names(folder):
            if usual.fullmatch(name):
                yield f"{folder}/{name}".lstrip("/")
