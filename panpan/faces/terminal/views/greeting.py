"""What is said when a session opens: where it is, which model was taken and why, and what is not as usual."""

from collections.abc import Sequence

from panpan.faces.terminal.rendering.cells import wrapped
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.session import Session
from panpan.system.text.terminal_text import printable
from panpan.version import __version__


def greeting(session: Session, width: int, theme: Theme) -> Sequence[str]:
    """Return the rows for a session that has just been opened."""
    info = session.info
    count = len(session.conversation.messages)
    resumed = f"goes on after {count} message{'s' * (count != 1)}: " if count else ""
    title = f"{resumed}{session.title}" if session.title else resumed.removesuffix(": ")
    rows = [
        f"{theme.paint('accent', 'panpan')} {theme.paint('dim', f'{__version__} in {printable(str(info.cwd))}')}",
        theme.paint("dim", printable(info.choice)),
        theme.paint("dim", printable(title)),
    ]
    if session.model_note:
        rows.append(theme.paint("warn", printable(session.model_note)))
    if session.permission_mode != "default":  # which nobody may have set today
        rows.append(theme.paint("warn", f"permission mode: {session.permission_mode}"))
    return [part for row in rows if row for part in wrapped(row, width)]
