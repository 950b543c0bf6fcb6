r"""Which commands a rule such as `Bash(npm run *)` speaks of.

`*` stands for any words or characters, at any place; ` *` or `:*` at the end also for nothing at all; `\*` for a star.
Without a star the rule means exactly these words.
"""

import re

from panpan.services.permissions.command_words import command_parts

_BLANK, _STAR = object(), object()
_Token = str | object
_ESCAPE = re.compile(r"\\([*\\])")


class CommandPattern:
    """The words of a rule for Bash.

    Args:
        text: What stands in the parentheses of the rule.

    Raises:
        ValueError: The text is no pattern; says why.
    """

    def __init__(self, text: str) -> None:
        self._raw = _ESCAPE.sub(r"\1", text.strip())
        tokens = _tokens(text[:-2] + " *" if text.endswith(":*") else text)
        if not tokens:
            raise ValueError("names no command")
        self.is_everything = all(token is _STAR for token in tokens)
        self._has_wildcard = _STAR in tokens
        self._program = _leading_program(tokens)
        self._strict = _segments(tokens, blank="\0")
        self._loose = _segments(tokens, blank=" ")

    def matches_words(self, words: tuple[str, ...]) -> bool:
        """Return whether an allowance for this pattern opens the simple command of these words."""
        return _fits("\0".join(words), self._strict, blank="\0")

    def matches_exactly(self, command: str) -> bool:
        """Return whether the whole line, shell syntax and all, is the text of the rule."""
        return not self._has_wildcard and command.strip() == self._raw

    def restricts(self, command: str) -> bool:
        """Return whether a restriction of this pattern holds for anything that the line may run."""
        if self.is_everything or self.matches_exactly(command):
            return True
        texts = [command, *(" ".join(part.words) for part in command_parts(command))]
        return any(_fits(" ".join(text.split()), self._loose, blank=" ") for text in texts)

    def may_restrict(self, command: str) -> bool:
        """Return whether the line has words, known only when it runs, that this pattern might restrict."""
        return any(
            part.is_program_unknown
            or (part.are_arguments_unknown and (self._program is None or part.words[0] == self._program))
            for part in command_parts(command)
        )


def exact_pattern(command: str) -> str:
    """Return the pattern that means this line and no other."""
    return command.strip().replace("\\", "\\\\").replace("*", "\\*")


def _tokens(text: str) -> list[_Token]:
    """Return the characters of the pattern, after quote removal, with marks for blanks and stars."""
    tokens: list[_Token] = []
    quote = ""
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and text[position : position + 1] in ("*", "\\"):
            tokens.append(text[position])
            position += 1
        elif quote and char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif not quote and char in " \t":
            if tokens and tokens[-1] is not _BLANK:
                tokens.append(_BLANK)
        else:
            tokens.append(_STAR if char == "*" else char)
    if quote:
        raise ValueError(f"has an opening {quote} without its closing one")
    if tokens and tokens[-1] is _BLANK:
        tokens.pop()
    return tokens


def _segments(tokens: list[_Token], *, blank: str) -> list[str]:
    """Return the literal texts between the stars; one more than there are stars."""
    segments = [""]
    for token in tokens:
        if token is _STAR:
            segments.append("")
        else:
            segments[-1] += blank if token is _BLANK else str(token)
    return segments


def _fits(text: str, segments: list[str], *, blank: str) -> bool:
    """Return whether `text` is the segments with anything between them, in linear time."""
    first, *middle = segments
    if not middle:
        return text == first
    if len(segments) == 2 and segments[1] == "" and first.endswith(blank) and text == first[:-1]:
        return True  # `npm run *` means `npm run`, too
    *middle, last = middle
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    position, end = len(first), len(text) - len(last)
    for segment in middle:
        found = text.find(segment, position, end)
        if found < 0:
            return False
        position = found + len(segment)
    return True


def _leading_program(tokens: list[_Token]) -> str | None:
    """Return the first word, or None where it has a wildcard."""
    name = ""
    for token in tokens:
        if token is _BLANK:
            return name
        if token is _STAR:
            return None
        name += str(token)
    return name
