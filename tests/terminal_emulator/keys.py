"""The bytes that terminals send for keys (xterm's, and CSI u for those that it has no own for)."""

ENTER = "\r"
ESCAPE = "\x1b"
TAB = "\t"
SHIFT_TAB = "\x1b[Z"
BACKSPACE = "\x7f"
DELETE = "\x1b[3~"
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
HOME, END = "\x1b[H", "\x1b[F"
ALT_ENTER = "\x1b\r"
ALT_UP = "\x1b[1;3A"
SHIFT_ENTER = "\x1b[13;2u"


def ctrl(letter: str) -> str:
    """Return what Ctrl and a letter send."""
    return chr(ord(letter.upper()) - 64)


def alt(key: str) -> str:
    """Return what Alt and a key send."""
    return ESCAPE + key
