"""How long panpan waits for language servers."""

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds after which something is given up."""

    start_s: float = 30.0
    """A start."""
    answer_s: float = 30.0
    """One question."""
    reading_s: float = 20.0
    """Waiting until a server has read the project; the question is asked then all the same."""
    idle_s: float = 900.0
    """A server that nobody asks anything, for what it holds of memory."""
    silence_s: float = 2.0
    """A server that tells of one text in several pieces, such as syntax first and types then: it says nowhere which was
    the last."""
    first_s: float = 5.0
    """A server that says nothing of a text, but has told of one before: some are silent where nothing is new."""
    first_pause_s: float = 1.0
    """Before a server that has failed is started again; doubled with each failure in a row."""


PATIENCE = Patience()
