"""What is wrong with a definition, or of no effect in it."""

from panpan.system.text.terminal_text import printable
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that whoever wrote a definition should know."""

    text: str
    """Lower case, no full stop; may hold text of the file."""
    line: int = 0
    """Of the file, from 1; 0: it is not about one line."""
    is_error: bool = True
    """Whether the definition cannot be used; else it is used, and this has no effect or another than it seems."""
    source: str = ""
    """The file, or "--agents"."""

    @property
    def place(self) -> str:
        """Where it is, as `FILE:LINE`."""
        return f"{self.source}:{self.line}" if self.line else self.source

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.text}")
