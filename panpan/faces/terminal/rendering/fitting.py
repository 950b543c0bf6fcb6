"""Short texts that stand side by side in one row, whole or not at all."""

from collections.abc import Sequence

from panpan.faces.terminal.rendering.cells import cell_width


def fitting(parts: Sequence[tuple[str, int]], width: int, separator: str) -> list[int]:
    """Return the indices of the texts that are shown, in their order; the least important are left out.

    Args:
        parts: Each text, which may have SGR sequences, and its rank; the lowest is left out last.
        width: Cells of the row.
        separator: What stands between two of them.
    """
    room = width
    kept: list[int] = []
    for index in sorted(range(len(parts)), key=lambda index: parts[index][1]):
        needed = cell_width(parts[index][0]) + (cell_width(separator) if kept else 0)
        if needed <= room:
            kept.append(index)
            room -= needed
    return sorted(kept)


def fitted(parts: Sequence[tuple[str, int]], width: int, separator: str) -> str:
    """Return the texts that fit, in one row; empty where none does."""
    return separator.join(parts[index][0] for index in fitting(parts, width, separator))
