"""What stands between the scrollback and the input besides the turn: what was sent and waits."""

from collections.abc import Sequence

from panpan.system.terminal_text import clean_for_terminal
from panpan.types.messages import UserMessage
from panpan.ui.repl.rendering.cells import cut
from panpan.ui.repl.theme import Theme
from panpan.ui.repl.typed_text import typed_text

_MAX_SHOWN = 5
_MAX_READ_CHARS = 2_000


def queue_lines(
    steering: Sequence[UserMessage], queued: Sequence[UserMessage], width: int, theme: Theme
) -> Sequence[str]:
    """Return a row for each message that waits, and how to take the last one back."""
    rows = [_row("next round", message, width) for message in steering]
    rows += [_row("after the turn", message, width) for message in queued]
    if not rows:
        return ()
    hidden = len(rows) - _MAX_SHOWN
    more = [f"  … and {hidden} more"] if hidden > 0 else []
    return [
        theme.paint("dim", row) for row in [*rows[:_MAX_SHOWN], *more, cut("  alt+up takes the last one back", width)]
    ]


def _row(when: str, message: UserMessage, width: int) -> str:
    first = clean_for_terminal(typed_text(message)[:_MAX_READ_CHARS]).strip().split("\n")[0]
    return cut(f"  ↳ {when}: {first}", width)
