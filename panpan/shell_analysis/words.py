"""Words as bash reads them: where one ends, what is left of it after quote removal, and the words that braces make."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod

from panpan.shell_analysis.facts import Word
from panpan.system.files.canonical import user_home
from panpan.types.pattern import compile_late

ANSI_C = compile_late(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)

_ESCAPE = compile_late(
    r"\\(?:(?P<letter>[abefnrtvE\\'\"?])|(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|x\{(?P<braced>[0-9a-fA-F]*)\}"
    r"|[uU](?P<point>(?<=u)[0-9a-fA-F]{1,4}|(?<=U)[0-9a-fA-F]{1,8})|c(?P<control>[@-_a-z?])|(?P<other>.))",
    re.DOTALL,
)
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def decode_ansi_c(body: str) -> tuple[str, bool]:
    """Return the text that `$'body'` means, and whether that is certain."""
    text = b""
    position, is_certain = 0, True
    for found in _ESCAPE.finditer(body):
        text += _bytes_of(body[position : found.start()])
        position = found.end()
        meaning = _meaning(found)
        is_certain = is_certain and found.lastgroup in ("letter", "octal", "hex")
        if meaning == b"\0":  # the end of a C string
            return _text_of(text, is_certain)
        text += meaning
    return _text_of(text + _bytes_of(body[position:]), is_certain)


def with_ansi_c_decoded(source: str) -> str:
    """Return a word, as written in a line, with each `$'…'` in it replaced by its probable text."""
    return ANSI_C.sub(lambda found: decode_ansi_c(found[1])[0], source)


def _meaning(found: re.Match[str]) -> bytes:
    kind, value = found.lastgroup, found[found.lastgroup or 0]
    match kind:
        case "letter":
            return _bytes_of(_LETTERS.get(value, value))
        case "octal":
            return bytes([int(value, 8) & 0xFF])
        case "hex" | "braced":
            return bytes([int(value or "0", 16) & 0xFF])
        case "control":
            return b"\x7f" if value == "?" else bytes([ord(value.upper()) & 0x1F])
        case "point" if int(value, 16) <= 0x10FFFF:
            return _bytes_of(chr(int(value, 16)))
        case _:
            return _bytes_of(found[0])


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_of(encoded: bytes, is_certain: bool) -> tuple[str, bool]:
    text = encoded.decode("utf-8", "replace")
    return text, is_certain and text.encode("utf-8", "replace") == encoded


_END = frozenset(" \t\n|&;<>)")
"""Metacharacters that end a word (bash, "Definitions"); an opening parenthesis, too, but never in a simple command."""

_BARE = compile_late(r"""[^ \t\n|&;<>()'"\\$`*?\[{~]+""")
_DOUBLE_QUOTED_PLAIN = compile_late(r"""[^"\\$`]+""")
_PARAMETER = compile_late(r"(?:[A-Za-z_][A-Za-z_0-9]*|[0-9@*#?$!-]|\{(?:[A-Za-z_][A-Za-z_0-9]*|[0-9]+|[@*#?$!-])\})")
"""Text behind a `$`: parameters that are only looked up; other forms in braces may assign or run something."""
_SPECIAL_IN_PATTERN = compile_late(r"[\\*?\[\]!^-]")


class NotPlainError(Exception):
    """The text is not a plain word or line, or not one that can be read for certain.

    Args:
        position: Where it stops being plain, in characters.
    """

    def __init__(self, position: int) -> None:
        super().__init__(f"not plain at {position}")
        self.position = position


def word_at(text: str, start: int) -> Word:
    """Return the word that begins at `start`; its source is what it takes up of the text.

    Raises:
        NotPlainError: There is none, or something in it may run, assign or is not known here.
    """
    bare = _BARE.match(text, start)
    if bare and (bare.end() == len(text) or text[bare.end()] in _END):
        return Word(bare[0], bare[0])  # most words are like this
    return _WordReader(text, start).read()


def word_of(source: str) -> Word:
    """Return `source` as a word; without a text where it is not certain that it is exactly one."""
    try:
        word = word_at(source, 0)
    except NotPlainError:
        return Word(source, None)
    return word if word.source == source else Word(source, None)


class _WordReader:
    """One walk over one word."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = self._at = start
        self._fixed = ""
        self._pattern = ""
        self._is_expanded = self._has_glob = self._has_brace = self._is_at_home = False
        self._bracket: int | None = None
        """Position of the first live `[`; None without one."""

    def read(self) -> Word:
        while self._at < len(self._text) and self._text[self._at] not in _END:
            if not self._take_bare():
                self._take_special()
        source = self._text[self._start : self._at]
        if not source:
            raise NotPlainError(self._start)
        if self._is_expanded or (self._has_brace and _may_be_braces(source)):
            return Word(source, None)
        has_glob = self._has_glob or self._has_closed_bracket()
        if self._is_at_home:
            return Word(source, None, at_home="" if has_glob else self._fixed)
        if has_glob:
            return Word(source, None, is_glob=True, pattern=self._pattern)
        return Word(source, self._fixed)

    def _take_bare(self) -> bool:
        found = _BARE.match(self._text, self._at)
        if found:
            self._at = found.end()
            self._fixed += found[0]
            self._pattern += found[0]
        return found is not None

    def _take_special(self) -> None:
        match self._text[self._at]:
            case "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise NotPlainError(self._at)
                self._add_quoted(self._text[self._at + 1 : end], upto=end + 1)
            case '"':
                self._take_double_quoted()
            case "\\":
                self._take_escape()
            case "$":
                self._take_dollar(is_quoted=False)
            case "*" | "?" | "[" | "{" | "~" as character:
                self._take_live(character)
            case _:  # a backtick or an opening parenthesis
                raise NotPlainError(self._at)

    def _add_quoted(self, characters: str, *, upto: int) -> None:
        self._fixed += characters
        self._pattern += _SPECIAL_IN_PATTERN.sub(r"\\\g<0>", characters)
        self._at = upto

    def _take_escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "\n":
            # A continuation line: harmless if the word ends here; else it may join an operator or a number.
            if self._at == self._start or self._text[self._at + 2 : self._at + 3] not in (" ", "\t"):
                raise NotPlainError(self._at)
            self._at += 2
        elif following:
            self._add_quoted(following, upto=self._at + 2)
        else:
            raise NotPlainError(self._at)

    def _take_live(self, character: str) -> None:
        if character == "[":
            self._bracket = self._at if self._bracket is None else self._bracket
        elif character in "*?":
            self._has_glob = True
        elif character == "{":
            self._has_brace = True
        elif self._at == self._start and self._text[self._at + 1 : self._at + 2] in ("", "/", *_END):
            self._is_at_home = True
        elif not self._fixed or self._fixed.endswith(("=", ":")):
            self._is_expanded = True  # a tilde, also if bash takes the word for an assignment
        self._fixed += character
        self._pattern += character
        self._at += 1

    def _has_closed_bracket(self) -> bool:
        """True if a `[` is live: without a closing bracket it means itself, as in the command `[`."""
        return self._bracket is not None and "]" in self._text[self._bracket : self._at]

    def _take_double_quoted(self) -> None:
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return
            if character == "`":
                raise NotPlainError(self._at)
            if found := _DOUBLE_QUOTED_PLAIN.match(self._text, self._at):
                self._add_quoted(found[0], upto=found.end())
            elif character == "$":
                self._take_dollar(is_quoted=True)
            else:
                self._take_escape_in_double_quotes()
        raise NotPlainError(self._start)

    def _take_escape_in_double_quotes(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "\n":
            self._at += 2
        else:
            self._add_quoted(following if following in '"\\$`' else f"\\{following}", upto=self._at + 2)

    def _take_dollar(self, *, is_quoted: bool) -> None:
        behind = self._at + 1
        if found := _PARAMETER.match(self._text, behind):
            self._is_expanded = True
            self._at = found.end()
        elif not is_quoted and (found := ANSI_C.match(self._text, self._at)):
            plain, is_certain = decode_ansi_c(found[1])
            if not is_certain:
                raise NotPlainError(self._at)
            self._add_quoted(plain, upto=found.end())
        elif self._text.startswith(("(", "{", "[", "\\\n") if is_quoted else ("(", "{", "[", "\\\n", "'", '"'), behind):
            raise NotPlainError(self._at)
        else:
            self._add_quoted("$", upto=behind)


def _may_be_braces(source: str) -> bool:
    """True if bash may expand braces in it; `{}` and `@{0}` mean themselves."""
    inside = source[source.find("{") + 1 : source.rfind("}")]
    return "," in inside or ".." in inside


MOST_WORDS = 64
"""Most words that brace expansion may make of one."""

_GROUP = compile_late(r"\{([^{},]*(?:,[^{},]*)+)\}")
_NOT_PLAIN = compile_late(r"""['"\\$`]""")


def with_braces_expanded(word: Word) -> Sequence[Word]:
    """Return what bash makes of the braces in an argument; the word itself where it has none that are plain."""
    if "{" not in word.source or _NOT_PLAIN.search(word.source):
        return (word,)
    *pieces, rest = _GROUP.split(word.source)
    texts, groups = pieces[::2], [group.split(",") for group in pieces[1::2]]
    if not groups or any("{" in text or "}" in text for text in (*texts, rest)):
        return (word,)
    if prod(map(len, groups)) > MOST_WORDS:
        return (word,)
    made = [
        "".join(part for pair in zip(texts, chosen, strict=True) for part in pair) + rest for chosen in product(*groups)
    ]
    return [word_of(source) for source in made] if all(made) else (word,)


_SPECIAL = compile_late(r"(?<!\\)(?:\\\\)*[*?\[]")
_PATH_ESCAPE = compile_late(r"\\(.)", re.DOTALL)


def paths_of(words: Sequence[Word]) -> list[str]:
    """Return words as paths in the resolver's writing; a glob is its folder."""
    return [folder_of(word.pattern) if word.is_glob else word.home_path or as_path(word.text or "") for word in words]


def home_for(words: Iterable[Word]) -> Mapping[str, str]:
    """Return the home that was assumed for the tildes in these words, as an environment; empty if there are none."""
    return {"HOME": str(user_home())} if any(word.at_home for word in words) else {}


def as_path(text: str) -> str:
    """Return a text that is no tilde's as a path in the resolver's writing."""
    # The resolver would expand a tilde to the home; here it is a character.
    return f"./{text}" if text.startswith("~") else text


def folder_of(pattern: str) -> str:
    """Return the folder in which the names that fit a pattern lie, or below which."""
    special = _SPECIAL.search(pattern)
    fixed = _PATH_ESCAPE.sub(r"\1", pattern[: special.start()] if special else pattern)
    folder = fixed.rpartition("/")[0]
    return as_path(folder) if folder else ("/" if fixed.startswith("/") else ".")


def in_folder(folder: str | None, path: str) -> str:
    """Return a path as it is from where the folder starts; as it is where there is no folder."""
    return path if folder is None else posixpath.join(folder, path)
