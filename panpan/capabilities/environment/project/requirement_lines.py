"""The lines of a file of requirements, as pip reads them ("Requirements File Format", pip's documentation)."""

import re
from collections.abc import Iterable, Sequence

_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
NESTED = re.compile(r"(?P<option>-r|-c|--requirement|--constraint)(?:\s*=?\s*)(?P<path>\S.*)")
"""A line that names another such file."""
_HASHES = re.compile(r"(?:\s+--hash[=\s]\s*[\w-]+:[0-9a-fA-F]+)+")

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
