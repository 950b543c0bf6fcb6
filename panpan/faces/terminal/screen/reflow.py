"""How many rows more what was drawn takes after the window has become narrower, in terminals that break long rows anew.

Without it the rows above would be left where they are, as a second copy. In a terminal that cuts rows off instead,
going up so far would erase what is no longer ours: so only those count that are known for it.
"""

from collections.abc import Mapping, Sequence

from panpan.types.dataclass import dataclass

_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "ghostty", "vscode", "Apple_Terminal", "tmux"})
_VARIABLES = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID")


def reflows(env: Mapping[str, str]) -> bool:
    """Return whether the terminal is known to break long rows anew when it becomes narrower."""
    return env.get("TERM_PROGRAM", "") in _PROGRAMS or any(env.get(name) for name in _VARIABLES)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What stands on the screen, down to the caret."""

    columns: int
    """Width of the terminal when it was drawn."""
    row_cells: Sequence[int] = ()
    """Cells of each row above the caret's."""
    caret_cell: int = 0

    def rows_more(self, columns: int) -> int:
        """Return how many rows more there are between the first one and the caret, now that a row has `columns`."""
        if columns >= self.columns or columns < 1:
            return 0
        return sum(max(cells - 1, 0) // columns for cells in self.row_cells) + self.caret_cell // columns
