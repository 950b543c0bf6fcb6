"""Parser from the bytes of a terminal to keys.

The rules: only an ESC that nothing follows before `flush` is Escape. An ESC before a character is Alt with it. An
unknown sequence, such as a late answer, is dropped whole. prompt_toolkit's own parser takes such a sequence for Escape
and letters, and Escape stops the turn. Its table of sequences is shared by all inputs of a process, so it is only read
here. Lines that come faster than anybody types are one paste, even if the terminal does not mark it; otherwise each
would be sent.

The grammar is that of ECMA-48, section 5.4, and of xterm (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html).
"""

import re
from collections.abc import Callable

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress, _Flush
from prompt_toolkit.keys import Keys

from panpan.types.pattern import compile_late

SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""Sequences of Shift+Enter: CSI u (kitty's protocol, an option in iTerm2 and others) and xterm's modifyOtherKeys."""

_ESCAPE = "\x1b"
_NEW_LINE = KeyPress(Keys.ControlJ, "\n")
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"

_STRING = compile_late(r"\x1b[\]P_^X][^\x00-\x1f\x9c]*(?:\x07|\x1b\\|\x9c)")
"""OSC, DCS, APC, PM and SOS: answers of terminals, up to BEL or ST."""
_SEQUENCE = compile_late(
    r"""
    \x1b\x1b?                           # twice: with Alt, as some terminals have it
    (?: \[ (?: \[[@-~]                  # function keys of Linux's console
             | M[^\x00-\x1f]{3}         # a mouse that another program left on
             | (?![\[M])[0-?]*[ -/]*[@-~] )
      | O[0-9;]*[@-~] )
    """,
    re.VERBOSE,
)
_BEGUN = compile_late(
    r"""
    (?: \x1b[\]P_^X][^\x00-\x1f\x9c]*
      | \x1b\x1b? (?: \[ (?: \[ | M[^\x00-\x1f]{0,2} | [0-?]*[ -/]* ) | O[0-9;]* )?
    )
    """,
    re.VERBOSE,
)
"""A sequence, or the beginning of one."""
_KEY = compile_late(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Control characters that do not occur in a paste of text."""
_FAST_LINES = 4
"""Lines in one read that make it a paste: more than anybody types, even ahead while panpan is busy."""
_FAST_CHARS = 200
"""Characters that make two lines a paste."""
_STRING_INTRODUCERS = "]P_^X"
_INTRODUCER_CHARS = 2
"""Length of a sequence that is Alt with a character if nothing follows."""


def use_key_parser(keyboard: Vt100Input) -> None:
    """Make `keyboard` use this parser; nothing may have been read from it yet."""
    keyboard.vt100_parser = KeyParser(keyboard.vt100_parser.feed_key_callback)


class KeyParser(Vt100Parser):
    """Parses input of a terminal; sequences and pastes may come in pieces.

    Alt with a key is passed on as Escape and the key, as bindings name it. Escape alone is followed by a mark that no
    other key belongs to it, so that no binding waits for one.
    """

    def __init__(self, feed_key_callback: Callable[[KeyPress], None]) -> None:
        super().__init__(feed_key_callback)
        self._held = ""
        """Undecided input: the beginning of a sequence, or maybe of the end of a paste."""
        self._late = ""
        """Beginning of an answer whose end has not come in time; it may still come."""
        self._pasted: list[str] | None = None
        """Parts of a paste; None outside of one."""
        self._unmarked: list[str] = []
        """Parts of a paste from a terminal that does not mark it."""

    def feed(self, data: str) -> None:
        if self._late:
            data = self._after_late(data)
        if self._unmarked and _KEY.search(data):
            self._end_unmarked()
        if self._unmarked or (not self._held and self._pasted is None and _is_pasted(data)):
            self._unmarked.append(data)
            return
        data, self._held = self._held + data, ""
        at = 0
        while at < len(data):
            at = self._next(data, at) if self._pasted is None else self._paste_on(data, at)

    def flush(self) -> None:
        """Decide about held input, since nothing followed for a while."""
        if self._unmarked:
            self._end_unmarked()
        if self._pasted is not None:
            return
        held, self._held = self._held, ""
        while held == _ESCAPE or (held.startswith(_ESCAPE * 2) and len(held) <= _INTRODUCER_CHARS + 1):
            self._press_escape()
            held = held[1:]
        if len(held) == _INTRODUCER_CHARS:
            self._press_alt(held[1])
        elif held and held[1] in _STRING_INTRODUCERS:
            self._late = held

    def _next(self, data: str, at: int) -> int:
        """Handle the next key or sequence, and return the index of its end."""
        if data[at] != _ESCAPE:
            self._press(data[at])
            return at + 1
        if answer := _STRING.match(data, at):
            return answer.end()
        if sequence := _SEQUENCE.match(data, at):
            self._press_sequence(sequence[0])
            return sequence.end()
        begun = _BEGUN.match(data, at)
        assert begun is not None, "an ESC begins one"
        end = begun.end()
        if end == len(data) or (data[end:] == _ESCAPE and data[at + 1] in _STRING_INTRODUCERS):  # maybe an ST
            self._held = data[at:]
            return len(data)
        return self._broken(data, at, end)

    def _broken(self, data: str, at: int, end: int) -> int:
        """Handle input that is no sequence: Alt with a character, or a broken sequence, which is dropped."""
        if end - at > _INTRODUCER_CHARS:
            return end
        if data[at + 1] == _ESCAPE:
            self._press_escape()
            return at + 1
        self._press_alt(data[at + 1])
        return at + _INTRODUCER_CHARS

    def _press(self, char: str) -> None:
        key = ANSI_SEQUENCES.get(char, char)
        assert not isinstance(key, tuple), "only sequences are several keys"
        self.feed_key_callback(KeyPress(key, char))

    def _press_sequence(self, sequence: str) -> None:
        if sequence == _ESCAPE + _PASTE_BEGINS:  # nobody pastes with Alt
            self._press_escape()
            self._pasted = []
        elif sequence == _PASTE_BEGINS:
            self._pasted = []
        elif sequence in SHIFT_ENTER:
            self.feed_key_callback(_NEW_LINE)
        else:
            for key in _keys(sequence):
                self.feed_key_callback(KeyPress(key, ""))

    def _press_alt(self, char: str) -> None:
        if (known := ANSI_SEQUENCES.get(_ESCAPE + char)) is not None:
            assert isinstance(known, Keys)
            self.feed_key_callback(KeyPress(known, ""))
            return
        self.feed_key_callback(KeyPress(Keys.Escape, ""))
        self._press(char)

    def _press_escape(self) -> None:
        self.feed_key_callback(KeyPress(Keys.Escape, _ESCAPE))
        self.feed_key_callback(_Flush)

    def _paste_on(self, data: str, at: int) -> int:
        """Add to a paste, and return the index of its end."""
        assert self._pasted is not None
        end = data.find(_PASTE_ENDS, at)
        if end < 0:
            held_from = max(at, len(data) - len(_PASTE_ENDS) + 1)
            self._pasted.append(data[at:held_from])
            self._held = data[held_from:]
            return len(data)
        text, self._pasted = "".join((*self._pasted, data[at:end])), None
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, text))
        return end + len(_PASTE_ENDS)

    def _end_unmarked(self) -> None:
        text = "".join(self._unmarked)
        self._unmarked.clear()
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, text))

    def _after_late(self, data: str) -> str:
        """Return the input after the end of the late answer; all of it if the end is not in it."""
        late, self._late = self._late, ""
        answer = _STRING.match(late + data)
        return data if answer is None else data[answer.end() - len(late) :]


def _is_pasted(data: str) -> bool:
    """Return True if the input of one read is a paste: several lines, which would be sent one by one."""
    lines = sum(bool(line.strip()) for line in data.split("\r"))  # a line feed sends nothing
    return (lines >= _FAST_LINES or (lines > 1 and len(data) >= _FAST_CHARS)) and not _KEY.search(data)


def _keys(sequence: str) -> tuple[Keys, ...]:
    """Return the keys of a sequence; empty if it is unknown."""
    if (known := ANSI_SEQUENCES.get(sequence)) is not None:
        return known if isinstance(known, tuple) else (known,)
    plain = ANSI_SEQUENCES.get(sequence[1:]) if sequence.startswith(_ESCAPE * 2) else None
    return (Keys.Escape, plain) if isinstance(plain, Keys) else ()
