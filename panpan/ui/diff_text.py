"""The lines of a diff, for faces that only print lines."""

from collections.abc import Sequence


def diff_text(diff: str) -> Sequence[str]:
    """Return the lines of a unified diff from its first hunk on; the names of the files stand in a heading."""
    lines = diff.split("\n")
    begin = next((index for index, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return lines[begin:-1] if lines[-1] == "" else lines[begin:]
