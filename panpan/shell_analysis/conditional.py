"""What stands between `[[` and `]]` ("Conditional Constructs" of the manual of bash): its words, and what it asks.

The rule: bash compares there as text, or asks about files; what it evaluates, such as the words beside `-eq`, is
harmless only where it is a plain number. No word is parted, and no pattern stands for the names of files.
"""

import re
from collections.abc import Sequence

from panpan.shell_analysis.facts import Word
from panpan.shell_analysis.languages import ASKS_FILE, ASKS_TEXT, COMPARES_FILES, NotHarmlessError, fixed
from panpan.shell_analysis.words import NotPlainError, word_at

_BLANKS = re.compile(r"[ \t]+")
_OPERATOR = re.compile(r"(?:&&|\|\||[()<>])(?=[ \t])")
_JOINTS = frozenset({"&&", "||"})
_COMPARES_TEXT = frozenset({"=", "==", "!=", "=~", "<", ">"})
_COMPARES_NUMBERS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,18}")
_FLAG = re.compile(r"-[A-Za-z]")


def words_of_conditional(text: str, start: int) -> tuple[Sequence[Word], int]:
    """Return the words behind a `[[` that ends at `start`, with the closing `]]`, and where that ends.

    Raises:
        NotPlainError: They cannot be read for certain: there is a line end, a word that may run something, or a
            parenthesis without blanks around it, as in patterns and regular expressions.
    """
    words: list[Word] = []
    at = start
    while not words or words[-1].source != "]]":
        blanks = _BLANKS.match(text, at)
        if blanks is None:
            raise NotPlainError(at)
        at = blanks.end()
        operator = _OPERATOR.match(text, at)
        if text.startswith("#", at):
            raise NotPlainError(at)  # a comment
        words.append(Word(operator[0], operator[0]) if operator else word_at(text, at))
        at += len(words[-1].source)
    return words, at


def paths_of_conditional(words: Sequence[Word]) -> list[Word]:
    """Return the files that the words behind `[[` ask about, `]]` among them.

    Raises:
        NotHarmlessError: A word would be evaluated, or the words are not understood.
    """
    paths: list[Word] = []
    at = depth = 0
    wants_term = True
    if not words or words[-1].source != "]]":
        raise NotHarmlessError("without its closing brackets")
    while at < len(words) - 1:
        source = words[at].source
        if wants_term and source not in ("!", "("):
            at += _take_term(words[at:-1], paths)
            wants_term = False
            continue
        if not wants_term and source not in _JOINTS and not (source == ")" and depth):
            raise NotHarmlessError(f"with {source}")
        depth += {"(": 1, ")": -1}.get(source, 0)
        wants_term = source != ")"
        at += 1
    if wants_term or depth:
        raise NotHarmlessError("without an end")
    return paths


def _take_term(words: Sequence[Word], paths: list[Word]) -> int:
    """Return how many words one test takes; adds to `paths` what it asks about."""
    first, second = words[0].source, words[1].source if len(words) > 1 else ""
    if _FLAG.fullmatch(first):
        if not second or second in _JOINTS or second in ("(", ")"):
            raise NotHarmlessError(f"with {first} and nothing behind it")
        if first in ASKS_FILE:
            _add_path(words[1], paths)
        elif first not in ASKS_TEXT:
            raise NotHarmlessError(f"with {first}")
        return 2
    if len(words) > 2 and second in COMPARES_FILES:
        _add_path(words[0], paths)
        _add_path(words[2], paths)
        return 3
    if len(words) > 2 and second in _COMPARES_NUMBERS:
        for word in (words[0], words[2]):
            if not _PLAIN_NUMBER.fullmatch(fixed(word)):
                raise NotHarmlessError(f"with {word.source}, which the shell evaluates")
        return 3
    if len(words) > 2 and second in _COMPARES_TEXT:
        return 3
    if first in (*_JOINTS, ")", "<", ">"):
        raise NotHarmlessError(f"with {first}")
    return 1


def _add_path(word: Word, paths: list[Word]) -> None:
    if word.at_home or fixed(word):
        paths.append(word)
