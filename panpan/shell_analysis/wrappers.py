"""Programs that run the program which their arguments name, such as `timeout 5 make`."""

import re
from collections.abc import Mapping, Sequence

from panpan.shell_analysis.facts import Word
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What a wrapper runs."""

    words: tuple[Word, ...]
    """The program first; empty where that is not known."""
    is_transparent: bool = False
    """Whether it does nothing of its own, so that the whole is as harmless as what is run."""
    adds_words: bool = False
    """Whether it is given further words that are only known when it runs."""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """How a wrapper's own words end."""

    valued: str = ""
    """Letters of flags with a value in the next word."""
    operands: int = 0
    """Own operands before the program."""
    takes_assignments: bool = False
    opaque: str = ""
    """Letters of flags with which what is run is not to be seen, or nothing is."""


WRAPPERS: Mapping[str, _Wrapper] = {
    "builtin": _Wrapper(),
    "command": _Wrapper(opaque="vV"),
    "doas": _Wrapper("uC", opaque="s"),
    "env": _Wrapper("uC", takes_assignments=True, opaque="S"),
    "exec": _Wrapper("a"),
    "ionice": _Wrapper("cnPu", opaque="pP"),
    "nice": _Wrapper("n"),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(),
    "stdbuf": _Wrapper("ioe"),
    "sudo": _Wrapper("ugCDhpRrTtU", takes_assignments=True, opaque="eilsvKV"),
    "time": _Wrapper("of"),
    "timeout": _Wrapper("ks", operands=1),
    "xargs": _Wrapper("EILPadns"),
}
"""How each of them is told what to run."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_DURATION = re.compile(r"\d{1,6}(?:\.\d+)?[smhd]?")


def unwrapped(name: str, words: Sequence[Word]) -> Wrapped | None:
    """Return what `name` would run when it is given `words`; None where it is no wrapper."""
    wrapper = WRAPPERS.get(name)
    if wrapper is None:
        return None
    position = _behind_flags(wrapper, words)
    if position is None:
        return Wrapped(())
    inner = tuple(words[position + wrapper.operands :])
    if name == "timeout":
        # Only in its plainest form is nothing of it left to misread.
        is_plain = position == 0 and bool(inner) and _DURATION.fullmatch(words[0].text or "") is not None
        return Wrapped(inner, is_transparent=is_plain)
    return Wrapped(inner or (() if name != "xargs" else (Word("echo", "echo"),)), adds_words=name == "xargs")


def _behind_flags(wrapper: _Wrapper, words: Sequence[Word]) -> int | None:
    """Return where the wrapper's own flags and assignments end, None where that cannot be told."""
    position = 0
    while position < len(words):
        text = words[position].text
        if text is None:
            return None
        if text == "--":
            position += 1
            break
        if wrapper.takes_assignments and _ASSIGNMENT.match(text):
            position += 1
            continue
        if not text.startswith("-"):
            break
        if not text.startswith("--") and any(letter in wrapper.opaque for letter in text[1:]):
            return None
        if text.startswith("--") and "=" not in text and len(text) > len("--"):
            return None  # it may take the next word
        position += 2 if text[-1] in wrapper.valued and len(text) == 2 else 1
    while wrapper.takes_assignments and position < len(words) and _ASSIGNMENT.match(words[position].text or ""):
        position += 1
    return position
