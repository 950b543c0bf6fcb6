"""The diff of a file in words and lines, for faces that only print lines."""

from collections.abc import Sequence

from panpan.types.display import FileDiff


def counts_text(file: FileDiff) -> str:
    """Return how many lines were added and removed, such as "+3 -1", or why there are none to count."""
    if file.added or file.removed:
        return f"+{file.added} -{file.removed}"
    return "empty" if file.is_new or file.is_deleted else "no line changed"


def diff_text(diff: str) -> Sequence[str]:
    """Return the lines of a unified diff from its first hunk on; the names of the files stand in a heading."""
    lines = diff.split("\n")
    begin = next((index for index, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return lines[begin:-1] if lines[-1] == "" else lines[begin:]
