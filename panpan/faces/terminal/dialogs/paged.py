"""A part of many rows, and whether all of them have been on the screen."""

from collections.abc import Sequence


class Page:
    """Which rows are shown where not all fit."""

    def __init__(self) -> None:
        self.was_all_seen = False
        """Whether every row has been on the screen."""
        self._seen = 0
        self._first = 0
        self._size = 1
        self._count = 0

    def of(self, rows: Sequence[str], size: int) -> Sequence[str]:
        """Return the rows that are shown where there is room for `size`."""
        if len(rows) != self._count:
            self._seen = 0  # they are other rows now, of another width
        self._size, self._count = size, len(rows)
        self._first = max(min(self._first, len(rows) - size), 0)
        return rows[self._first : self._first + size]

    def was_drawn(self) -> None:
        """What `of` returned last is on the screen."""
        if self._first <= self._seen:  # else some were skipped
            self._seen = max(self._seen, self._first + self._size)
        self.was_all_seen = self.was_all_seen or self._seen >= self._count

    def reveal(self, rows: range, size: int) -> None:
        """Let some rows be among those that are shown, the first of them where there is no room for all."""
        self._first = min(max(self._first, rows.stop - size), rows.start)

    def row_of(self, index: int) -> int | None:
        """Return where a row stands among those that are shown; None where it is not."""
        return index - self._first if self._first <= index < self._first + self._size else None

    def turn(self, key: str) -> None:
        """Show what comes next with `pagedown`, or what came before; one row stays, so that none is missed."""
        step = max(self._size - 1, 1)
        self._first = max(self._first + (step if key == "pagedown" else -step), 0)

    @property
    def is_cut(self) -> bool:
        """Whether some rows are not shown."""
        return self._count > self._size

    def note(self, *, is_folded: bool) -> str:
        """Return what is not shown, and the keys for it."""
        last = self._first + self._size
        if is_folded and last < self._count:
            return f"… {self._count - last} more lines: ctrl+o shows them"
        return f"lines {self._first + 1}-{last} of {self._count}: PgDn, PgUp"
