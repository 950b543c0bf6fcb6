r"""Regular expressions as ripgrep reads them, for Python's `re`: what both know, as far as it can be translated.

The rule: what cannot be translated is refused with a sentence, never guessed at, since a pattern that means something
else finds the wrong lines.
"""

import re
import warnings

from panpan.errors import ToolError

_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}

_ESCAPES = {"z": r"\Z", "<": r"\b(?=\w)", ">": r"\b(?<=\w)", "a": r"\x07", "h": r"[\t ]"}
"""Escapes that have another name in Python, outside of brackets."""

_WORD_ENDS = {"start": r"\b(?=\w)", "end": r"\b(?<=\w)", "start-half": r"(?<!\w)", "end-half": r"(?!\w)"}


def compile_pattern(pattern: str, *, ignore_case: bool, is_multiline: bool) -> re.Pattern[str]:
    """Return `pattern` compiled for Python.

    Raises:
        ToolError: It is no regular expression, or one that Python cannot do.
    """
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if is_multiline else 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what a pattern may mean one day
            return re.compile(_Translation(pattern).run(), flags)
    except (re.error, OverflowError, RecursionError, Warning) as exc:
        raise ToolError(str(exc)) from exc


class _Translation:
    """One walk over a pattern."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._closers: list[str] = []
        """For each open group, what its `)` becomes."""

    def run(self) -> str:
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "\\":
                self._escape()
            elif character == "[":
                self._bracket()
            elif character == "(":
                self._group()
            else:
                if character == ")" and self._closers:
                    character = self._closers.pop()
                self._out.append(character)
                self._at += 1
        return "".join(self._out)

    def _take(self, regex: str) -> re.Match[str] | None:
        found = re.compile(regex).match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _escape(self) -> None:
        if found := self._take(r"\\b\{([a-z-]+)\}"):
            if found[1] not in _WORD_ENDS:
                raise ToolError(f"{found[0]} is not known")
            self._out.append(_WORD_ENDS[found[1]])
        elif not self._common_escape():
            name = self._text[self._at + 1 : self._at + 2]
            self._out.append(_ESCAPES.get(name, "\\" + name))
            self._at += 2

    def _common_escape(self) -> bool:
        """Translate an escape that is the same inside and outside of brackets."""
        if found := self._take(r"\\[xuU]\{([0-9A-Fa-f]{1,8})\}"):
            self._out.append(_character(found[1]))
        elif self._text.startswith(("\\p", "\\P"), self._at):
            raise ToolError("Unicode classes such as \\p{L} need ripgrep, which is not installed; name the characters")
        elif found := self._take(r"\\([-/\"'#&~%,:;=@_` !])"):
            self._out.append(re.escape(found[1]))
        else:
            return False
        return True

    def _bracket(self) -> None:
        found = self._take(r"\[\^?\]?")
        if found is None:
            raise AssertionError("called at a bracket")
        self._out.append(found[0].replace("]", "\\]"))
        while self._at < len(self._text):
            if self._take(r"\]"):
                self._out.append("]")
                return
            if found := self._take(r"\[:(\^?)([a-z]+):\]"):
                if found[1] or found[2] not in _POSIX_CLASSES:
                    raise ToolError(f"the class {found[0]} is not known")
                self._out.append(_POSIX_CLASSES[found[2]])
            elif self._take(r"&&|--|~~|\["):
                raise ToolError("classes inside classes need ripgrep, which is not installed; escape [ as \\[")
            elif not (self._text[self._at] == "\\" and self._common_escape()):
                step = 2 if self._text[self._at] == "\\" else 1
                self._out.append(self._text[self._at : self._at + step])
                self._at += step
        raise ToolError("unclosed character class: a [ has no ]")

    def _group(self) -> None:
        if found := self._take(r"\(\?<([A-Za-z_]\w*)>"):
            self._out.append(f"(?P<{found[1]}>")
            self._closers.append(")")
        elif found := self._take(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?\)"):
            # For the rest of the group that it stands in; Python wants a group of its own for that.
            self._out.append(_flags(found[1], found[2]))
            self._extend_closer()
        elif found := self._take(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?:"):
            self._out.append(_flags(found[1], found[2]))
            self._closers.append(")")
        else:
            self._out.append("(")
            self._at += 1
            self._closers.append(")")

    def _extend_closer(self) -> None:
        if self._closers:
            self._closers[-1] += ")"
        else:
            self._text += ")"
            self._closers.append(")")


def _flags(switched_on: str, switched_off: str | None) -> str:
    known = {"i", "m", "s", "u"}
    if not set(switched_on) <= known or not set(switched_off or "") <= known - {"u"}:
        raise ToolError(f"the flags {switched_on}{'-' if switched_off else ''}{switched_off or ''} need ripgrep")
    on, off = switched_on.replace("u", ""), switched_off or ""
    return f"(?{on}{'-' if off else ''}{off}:"


def _character(digits: str) -> str:
    code = int(digits, 16)
    if code > 0x10FFFF:
        raise ToolError(f"there is no character {digits}")
    return f"\\U{code:08x}"
