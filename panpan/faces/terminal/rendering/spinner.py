"""The sign that something goes on."""

from panpan.faces.terminal.screen.theme import Theme

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_S = 10


def spinner(now_s: float, theme: Theme) -> str:
    """Return the sign for a moment, one cell wide; where the terminal is dumb, it does not move.

    Args:
        now_s: Seconds of any clock that only grows.
        theme: How it looks.
    """
    return FRAMES[int(now_s * _FRAMES_PER_S) % len(FRAMES)] if theme.has_sequences else "*"
