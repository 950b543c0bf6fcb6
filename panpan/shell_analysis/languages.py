"""The small languages in which some programs take their arguments: of find, test, `[[ … ]]`, formats, sed and jq.

The rule: only what is understood to the end passes; everything else raises `NotHarmlessError`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from panpan.shell_analysis.facts import Word
from panpan.shell_analysis.words import NotPlainError, word_at
from panpan.types.pattern import compile_late

_FUNCTIONS = frozenset({
    "IN", "INDEX", "GROUP_BY", "UNIQUE_BY", "abs", "add", "all", "any", "arrays", "ascii", "ascii_downcase",
    "ascii_upcase", "booleans", "bsearch", "builtins", "capture", "ceil", "combinations", "contains", "debug",
    "del", "delpaths", "empty", "endswith", "env", "error", "explode", "fabs", "finites", "first", "flatten",
    "floor", "format", "from_entries", "fromdate", "fromdateiso8601", "fromjson", "fromstream", "getpath", "gmtime",
    "group_by", "gsub", "halt", "halt_error", "has", "have_decnum", "have_literal_numbers", "implode", "in",
    "index", "indices", "infinite", "input", "input_filename", "input_line_number", "inputs", "inside", "isempty",
    "isinfinite", "isnan", "isnormal", "isvalid", "iterables", "join", "keys", "keys_unsorted", "last",
    "leaf_paths", "length", "limit", "localtime", "log", "log10", "log2", "ltrimstr", "ltrim", "map", "map_values",
    "match", "max", "max_by", "min", "min_by", "mktime", "nan", "normals", "not", "now", "nth", "null", "nulls",
    "numbers", "objects", "path", "paths", "pick", "pow", "range", "recurse", "repeat", "reverse", "rindex",
    "round", "rtrimstr", "rtrim", "scalars", "scan", "select", "setpath", "skip", "sort", "sort_by", "split",
    "splits", "sqrt", "startswith", "stderr", "strflocaltime", "strftime", "strings", "strptime", "sub", "test",
    "toarray", "toboolean", "to_entries", "todate", "tojson", "tonumber", "tostream", "tostring", "transpose",
    "trim", "trimstr", "true", "false", "trunc", "truncate_stream", "type", "unique", "unique_by", "until",
    "utf8bytelength", "values", "walk", "while", "with_entries", "and", "or", "then", "elif", "else",
    "as", "reduce", "foreach", "try", "catch", "label", "break",
})  # fmt: skip
_TOKEN = compile_late(
    r"""(?P<blank>[ \t\n]+) | (?P<open>[(\[{]|if\b) | (?P<close>[)\]}]|end\b) | (?P<quote>")
      | (?P<name>[A-Za-z_]\w*)
      | (?:\.[A-Za-z_]\w*|\$[A-Za-z_]\w*|@[a-z0-9]+|[0-9]+(?:\.[0-9]+)?|[-.|,:;?+*/%=<>!])""",
    re.VERBOSE | re.ASCII,
)
_IN_STRING = compile_late(r'(?P<text>(?:[^"\\]|\\["\\/bfnrtu])+)|(?P<open>\\\()|(?P<quote>")')
_CLOSING = {"(": ")", "[": "]", "{": "}", "\\(": ")", "if": "end"}


def only_computes(program: str) -> bool:
    """True if the program reads nothing but its input."""
    around: list[str] = []
    """Brackets, strings and expressions in strings that are open here."""
    at, before = 0, ""
    while at < len(program):
        found = (_IN_STRING if around[-1:] == ['"'] else _TOKEN).match(program, at)
        if found is None:
            return False
        at, token = found.end(), found[0]
        match found.lastgroup:
            case "blank":
                continue
            case "open":
                around.append(token)
            case "close":
                if not around or _CLOSING[around.pop()] != token:
                    return False
            case "quote" if around[-1:] == ['"']:
                around.pop()
            case "quote":
                around.append(token)
            case "name":
                is_key = around[-1:] == ["{"] and before in ("{", ",")
                if not is_key and token not in _FUNCTIONS:
                    return False
        before = token
    return not around


class NotHarmlessError(Exception):
    """The arguments are not among those that are known to be harmless; says which, as part of a sentence."""


JQ_PROGRAM = "jq-program"
"""Kind of a jq program in the table; no regular expression can check one."""


def fits(value: str, kind: str) -> bool:
    """Return whether `value` is, as a whole, what the table asks for: a regular expression, or `JQ_PROGRAM`."""
    return only_computes(value) if kind == JQ_PROGRAM else _compiled(kind).fullmatch(value) is not None


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)


def fixed_text(word: Word) -> str:
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
        word = fixed_text(waiting.pop())
        if word not in expression:
            raise NotHarmlessError(f"with {word}")
        for regex in expression[word]:
            if not waiting:
                raise NotHarmlessError(f"with {word} and nothing behind it")
            value = waiting.pop()
            if regex == "path":
                fixed_text(value)
                read.append(value)
            elif not fits(fixed_text(value), regex):
                raise NotHarmlessError(f"with {word} {value.source}")
    return starts, read


_LOOKED_UP = compile_late(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]|\{(?:\w+|[@*#?$!-])\})", re.ASCII)
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
    text = fixed_text(operands[0])
    if not fits(text, regex) or (text.startswith("-") and operands is words):
        raise NotHarmlessError(f"with {operands[0].source}")
    return printed_globs(operands[1:])


PRINTF_FORMAT = r"(?:[^%]|%%|%[-+ #0']*(?:\*|[0-9]{1,4})?(?:\.(?:\*|[0-9]{1,4})?)?[diouxXeEfFgGaAcsbq]|%\([^()]*\)T)*+"
"""A format of bash's printf that only prints, as a regular expression.

Left out are `%n`, which assigns, and the modifiers `h`, `j`, `l`, `L`, `t` and `z`, which change nothing else.
"""


def without_bracket(name: str, words: Sequence[Word]) -> Sequence[Word]:
    """Return the words of `test`, without the closing bracket if it is called `[`.

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
    texts = [word.at_home or fixed_text(word) for word in words]
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


_BLANKS = compile_late(r"[ \t]+")
_OPERATOR = compile_late(r"(?:&&|\|\||[()<>])(?=[ \t])")
_JOINTS = frozenset({"&&", "||"})
_COMPARES_TEXT = frozenset({"=", "==", "!=", "=~", "<", ">"})
_COMPARES_NUMBERS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_PLAIN_NUMBER = compile_late(r"-?[0-9]{1,18}")
_FLAG = compile_late(r"-[A-Za-z]")


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
            if not _PLAIN_NUMBER.fullmatch(fixed_text(word)):
                raise NotHarmlessError(f"with {word.source}, which the shell evaluates")
        return 3
    if len(words) > 2 and second in _COMPARES_TEXT:
        return 3
    if first in (*_JOINTS, ")", "<", ">"):
        raise NotHarmlessError(f"with {first}")
    return 1


def _add_path(word: Word, paths: list[Word]) -> None:
    if word.at_home or fixed_text(word):
        paths.append(word)
