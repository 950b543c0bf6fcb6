"""What a file of requirements asks for, with all that it includes ("Requirements File Format", pip's documentation)."""

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from panpan.capabilities.environment.project.addresses import without_logins
from panpan.capabilities.environment.project.project_files import ProjectFiles
from panpan.capabilities.environment.project.requirement_lines import NESTED, requirement_lines, without_hashes
from panpan.capabilities.environment.project.wish import Unclear, Wish

MAX_DEPTH = 20
"""Files that include one another; pip has no bound."""
_EDITABLE = re.compile(r"(?:-e|--editable)(?:\s*=?\s*)(?P<place>\S.*)")
_OWN = re.compile(r"(?:file:)?\.?/?(?:\[[\w,. -]*\])?")
"""The folder itself, also with its extras."""
_EGG = re.compile(r"#(?:.*&)?egg=(?P<name>[A-Za-z0-9][\w.-]*)")
"""The name that an address says of its package."""
_MAX_LINE_CHARS = 1_000
_MAX_SHOWN_CHARS = 100
CONSTRAINT = ("-c", "--constraint")
"""Options that name a file which only says versions."""


def requirement_wishes(
    files: ProjectFiles, name: str, *, included_by: str = "", is_bound: bool = False, depth: int = 0
) -> Iterator[Wish | Unclear]:
    """Yield what a file asks for; nothing where it was read before.

    Args:
        files: The project.
        name: The file, below the project.
        included_by: The file that led here.
        is_bound: Whether it only says versions.
        depth: How many files led here.
    """
    text = files.text(name, is_named=True) if depth < MAX_DEPTH else None
    if depth == MAX_DEPTH:
        yield Unclear(name, f"more than {MAX_DEPTH} files include one another")
    for number, line in requirement_lines(text or ""):
        source = f"{name}:{number}"
        if len(line) <= _MAX_LINE_CHARS and (nested := NESTED.fullmatch(line)):
            path = nested["path"].strip("\"'")
            if "://" in path:
                yield Unclear(source, "it lies on a server and is not fetched", without_logins(line))
                continue
            yield from requirement_wishes(
                files,
                normpath(join(dirname(name), path)),
                included_by=included_by or name,
                is_bound=is_bound or nested["option"] in CONSTRAINT,
                depth=depth + 1,
            )
        elif said := wish_of(line, source, included_by, is_bound=is_bound):
            yield said


def wish_of(line: str, source: str, included_by: str = "", *, is_bound: bool = False) -> Wish | Unclear | None:
    """Return what a line asks for; None where that is no package, or the project itself.

    Args:
        line: Without a comment.
        source: Where it stands.
        included_by: The file that led to that of the source.
        is_bound: Whether it only says a version.
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
            return Wish(egg["name"], source, included_by, is_bound=is_bound)
        return Unclear(source, "it has no name to look for", without_logins(line))
    return Wish(without_logins(line), source, included_by, is_bound=is_bound)
