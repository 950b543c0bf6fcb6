r"""How a prompt gets a second line: a backslash before Enter, Ctrl+J, and Shift+Enter where the terminal sends it.

The rule: whatever way is used, prompt_toolkit sees Ctrl+J. It knows one spelling of Shift+Enter, which it takes for
Enter, and takes the other for six keys. Its table of sequences belongs to the module, so to all inputs of a process,
and the table of prefixes computed from it is filled once; so a parser of ours rewrites what comes in, and no table
changes.
"""

import re
from collections.abc import Callable

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress

SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""What terminals send: CSI u (kitty's protocol, also set up by hand in iTerm2 and others), xterm's modifyOtherKeys."""

_UNKNOWN = re.compile(r"\x1b\[[0-9;:]+u")
"""Keys in kitty's protocol that prompt_toolkit does not know: it would take them for ESC and some letters."""

_BEGUN = re.compile(r"\x1b(?:\[[0-9;:]*)?\Z")

_NEW_LINE = "\n"


def with_line_break(text: str, cursor: int) -> tuple[str, int] | None:
    r"""Return text and cursor after Enter behind a backslash, which becomes a line break; None where Enter is Enter.

    Two backslashes are one that is meant, and no line break.

    Args:
        text: What is typed.
        cursor: Where the caret is, in characters.
    """
    before = text[:cursor]
    backslashes = len(before) - len(before.rstrip("\\"))
    if backslashes % 2 == 0:
        return None
    return f"{before[:-1]}\n{text[cursor:]}", cursor


def use_shift_enter(keyboard: Vt100Input) -> None:
    """Let `keyboard` tell Shift+Enter from Enter: it comes as Ctrl+J.

    Args:
        keyboard: As from `create_input`; nothing may have been read from it.
    """
    keyboard.vt100_parser = ShiftEnterParser(keyboard.vt100_parser.feed_key_callback)


class ShiftEnterParser(Vt100Parser):
    """Parses what a terminal sends, with Shift+Enter as Ctrl+J; a sequence may come in pieces.

    Args:
        feed_key_callback: Given each key.
    """

    def __init__(self, feed_key_callback: Callable[[KeyPress], None]) -> None:
        super().__init__(feed_key_callback)
        # Not the parent's own methods: `feed` calls itself for what stands behind a paste.
        self._parser = Vt100Parser(feed_key_callback)
        self._held = ""
        """The beginning of what may become Shift+Enter: until more comes or `flush`, as a lone ESC anyway."""

    def feed(self, data: str) -> None:
        data = _rewritten(self._held + data)
        end = len(data) - _begun(data)
        self._held = data[end:]
        self._parser.feed(data[:end])

    def flush(self) -> None:
        held, self._held = self._held, ""
        self._parser.feed(held)
        self._parser.flush()


def _rewritten(data: str) -> str:
    for sequence in SHIFT_ENTER:
        data = data.replace(sequence, _NEW_LINE)
    return _UNKNOWN.sub("", data)


def _begun(data: str) -> int:
    """Return how much at the end of `data` may become one of these sequences."""
    begun = _BEGUN.search(data)
    return len(begun[0]) if begun is not None else 0
