"""The small languages in which some programs take their arguments: expressions of find and test, formats, sed scripts.

The rule: only what is understood to the end passes; everything else raises `NotHarmlessError`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from panpan.shell_analysis.facts import Word
from panpan.shell_analysis.jq_programs import only_computes


class NotHarmlessError(Exception):
    """The arguments are not among those that are known to be harmless; says which, as part of a sentence."""


JQ_PROGRAM = "jq-program"
"""Stands in the table for what no regular expression tells."""


def fits(value: str, kind: str) -> bool:
    """Return whether `value` is, as a whole, what the table asks for: a regular expression, or `JQ_PROGRAM`."""
    return only_computes(value) if kind == JQ_PROGRAM else _compiled(kind).fullmatch(value) is not None


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)


def fixed(word: Word) -> str:
    """Return the text of a word.

    Raises:
        NotHarmlessError: It is only known when the command runs.
    """
    if word.text is None:
        raise NotHarmlessError(f"with {word.source}, which is only known when it runs")
    return word.text


def split_find(words: Sequence[Word], expression: Mapping[str, Sequence[str]]) -> tuple[list[Word], list[Word]]:
    """Return where find starts, and the further files that its expression reads.

    Raises:
        NotHarmlessError: There is something in it beside what `expression` lists.
    """
    waiting = list(words)[::-1]
    starts: list[Word] = []
    while waiting and not (waiting[-1].text or waiting[-1].pattern).startswith(("-", "(", "!", ")", ",")):
        starts.append(waiting.pop())
    read: list[Word] = []
    while waiting:
        word = fixed(waiting.pop())
        if word not in expression:
            raise NotHarmlessError(f"with {word}")
        for regex in expression[word]:
            if not waiting:
                raise NotHarmlessError(f"with {word} and nothing behind it")
            value = waiting.pop()
            if regex == "path":
                fixed(value)
                read.append(value)
            elif not fits(fixed(value), regex):
                raise NotHarmlessError(f"with {word} {value.source}")
    return starts, read


_LOOKED_UP = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]|\{(?:\w+|[@*#?$!-])\})", re.ASCII)
"""Parameters that are only looked up."""


def printed_globs(words: Sequence[Word]) -> list[Word]:
    """Return the globs among words that are printed; a variable may be anything but a glob of its own.

    Raises:
        NotHarmlessError: A word may run something.
    """
    for word in words:
        unknown = "" if word.text is not None or word.is_glob else _LOOKED_UP.sub("", word.source)
        if any(character in unknown for character in "*?[{`("):
            raise NotHarmlessError(f"with {word.source}, which is only known when it runs")
    return [word for word in words if word.is_glob]


def formatted_globs(words: Sequence[Word], regex: str) -> list[Word]:
    """Return the globs among what printf prints by a format, which is the first of its words and fixed.

    Raises:
        NotHarmlessError: The format is not what `regex` asks for, or a word may run something.
    """
    operands = words[1:] if words and words[0].text == "--" else words
    if not operands:
        raise NotHarmlessError("without a format")
    text = fixed(operands[0])
    if not fits(text, regex) or (text.startswith("-") and operands is words):
        raise NotHarmlessError(f"with {operands[0].source}")
    return printed_globs(operands[1:])


PRINTF_FORMAT = r"(?:[^%]|%%|%[-+ #0']*(?:\*|[0-9]{1,4})?(?:\.(?:\*|[0-9]{1,4})?)?[diouxXeEfFgGaAcsbq]|%\([^()]*\)T)*+"
"""A format of bash's printf that only prints, as a regular expression.

Left out are `%n`, which assigns, and the modifiers `h`, `j`, `l`, `L`, `t` and `z`, which change nothing else.
"""


def without_bracket(name: str, words: Sequence[Word]) -> Sequence[Word]:
    """Return the words of `test`, as which they stand in brackets where it is called `[`.

    Raises:
        NotHarmlessError: The closing bracket is missing.
    """
    if name != "[":
        return words
    if not words or words[-1].text != "]":
        raise NotHarmlessError("without its closing bracket")
    return words[:-1]


_OLD_FLAGS = r"[a-zA-Z]*f"
"""A first word of tar without a dash, with the one letter that takes a value at its end."""


def with_dash(words: Sequence[Word]) -> Sequence[Word]:
    """Return the words of tar with a dash before its first one, which is a word of flags with and without it."""
    text = words[0].text if words else None
    return [Word(f"-{text}", f"-{text}"), *words[1:]] if text and fits(text, _OLD_FLAGS) else words


_OPERATORS = frozenset({"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "!", "(", ")", "-a", "-o"})
ASKS_TEXT = frozenset({"-n", "-z", "-t"})
"""Tests of one text; `-t` asks about a stream by its number."""
ASKS_FILE = frozenset(f"-{letter}" for letter in "bcdefghkprsuwxGLNOS")
"""Tests of one file."""
COMPARES_FILES = frozenset({"-nt", "-ot", "-ef"})
"""Tests of two files."""


def paths_of_test(words: Sequence[Word]) -> list[Word]:
    """Return the files that test asks about; more where it is not certain which of its words are files.

    Raises:
        NotHarmlessError: A word may be a test that is not listed here, such as `-v`, whose operand the shell evaluates.
    """
    texts = [word.at_home or fixed(word) for word in words]
    if len(texts) == 3 and texts[1] in _OPERATORS - {"-a", "-o"}:
        return []
    known = _OPERATORS | ASKS_TEXT | ASKS_FILE | COMPARES_FILES
    for text in texts:
        if text.startswith("-") and text not in known and not fits(text, "-[0-9]*"):
            raise NotHarmlessError(f"with {text}, which may be a test that does more than ask")
    return [word for word, text in zip(words, texts, strict=True) if text not in known and text]


_BODY = r"(?:[^\\\n\[{d}]|\\[^\n]|\[\^?\]?[^\]\\\n\[{d}]*\])*"
"""Between two delimiters. A delimiter in brackets is left out, since GNU and BSD read it differently."""
_DELIMITERS = ("/", r"\|", r"\#", r"\,")
_SUBSTITUTIONS = "|".join(
    rf"s{delimiter}{body}{delimiter}{body}{delimiter}[gpiI0-9]*"
    for delimiter, body in ((one, _BODY.format(d=one)) for one in _DELIMITERS)
)
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_BODY.format(d='/')}/I?)"
_COMMAND = rf"(?:{_ADDRESS}(?:,[ ]*(?:{_ADDRESS}|\+\d+))?)?[ ]*!?[ ]*(?:[pd=]|q|{_SUBSTITUTIONS})"
SED_SCRIPT = rf"[ ]*{_COMMAND}[ ]*(?:;[ ]*(?:{_COMMAND})?[ ]*)*"
"""A script that only prints, deletes and substitutes lines, as a regular expression."""
