"""Code with its syntax in colours, line by line while it arrives.

A lexer can only begin where it knows what it is in. So what was shown already is kept from the last place where a
statement seems to begin, up to a bound, and is read again before the lines that are new: the work for a line does not
grow with the code before it. Where a text or comment is longer than the bound, the rest stays without colours.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from pygments.lexer import Lexer
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Token as CodeToken
from pygments.token import _TokenType

from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass
from panpan.types.role import Role

GROUP_LINES = 16
"""Lines that are finished together: what a line means, one of the next may tell."""
GROUP_CHARS = 2_000
_CONTEXT_CHARS = 3_000

_ROLES: Mapping[_TokenType, Role] = {
    CodeToken.Comment: "comment",
    CodeToken.Keyword: "keyword",
    CodeToken.Keyword.Constant: "number",
    CodeToken.Operator.Word: "keyword",
    CodeToken.Name.Function: "name",
    CodeToken.Name.Class: "name",
    CodeToken.Name.Decorator: "name",
    CodeToken.Name.Tag: "name",
    CodeToken.Name.Builtin: "name",
    CodeToken.Literal.String: "string",
    CodeToken.Literal.Number: "number",
    CodeToken.Generic.Inserted: "added",
    CodeToken.Generic.Deleted: "removed",
    CodeToken.Generic.Heading: "hunk",
    CodeToken.Generic.Subheading: "hunk",
    CodeToken.Generic.Prompt: "dim",
    CodeToken.Generic.Output: "dim",
}


def lexer_for(language: str) -> Lexer | None:
    """Return what reads a language, by any of its usual names; None where nothing is known of it."""
    name = language.strip().strip("{}.").lower()
    for _, aliases, _, _ in get_all_lexers(plugins=False):  # plug-ins would be searched for in every package
        if name in aliases:
            return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    return None


@dataclass(slots=True)
class OpenCode:
    """A block of code whose end has not come yet. Lines go in, harmless and without tabs; painted lines come out."""

    theme: Theme
    lexer: Lexer | None
    """None: all of it in one colour."""
    lines: tuple[str, ...] = ()
    """Those that are not returned yet."""
    context: tuple[str, ...] = ()
    """Those before them that the lexer has to read first."""

    def add(self, line: str) -> list[str]:
        """Take one line, and return those that are finished with it."""
        self.lines += (line.rstrip(" "),)
        if len(self.lines) >= GROUP_LINES or sum(map(len, self.lines)) >= GROUP_CHARS:
            return self.ended()
        return []

    def ended(self) -> list[str]:
        lines, self.lines = self.lines, ()
        if self.lexer is None or not self.theme.has_colour:
            return [self.theme.paint("code", line) for line in lines]
        read = (*self.context, *lines)
        painted, restart = _painted(read, self.lexer, self.theme)
        self.context = read[restart:]
        if sum(map(len, self.context)) > _CONTEXT_CHARS:
            self.lexer, self.context = None, ()
        return painted[len(read) - len(lines) :] if lines else []


_SPANNING = frozenset({CodeToken.Literal.String, CodeToken.Comment.Multiline})


def _painted(lines: Sequence[str], lexer: Lexer, theme: Theme) -> tuple[list[str], int]:
    """Return the lines in colours, and the index of the line from which the lexer may begin the next time."""
    text = "\n".join(lines) + "\n"
    try:
        tokens = [(kind, value) for kind, value in lexer.get_tokens(text) if value]
    except Exception:  # some lexers fail on some text, and code without colours is still code
        tokens = []
    if "".join(value for _, value in tokens) != text:
        tokens = [(CodeToken.Text, text)]
    painted = [""]
    inside: set[int] = set()
    """Lines that begin within a text or comment."""
    for kind, value in tokens:
        role = _role(kind)
        for index, part in enumerate(value.split("\n")):
            if index:
                painted.append("")
                if not _SPANNING.isdisjoint(kind.split()):
                    inside.add(len(painted) - 1)
            painted[-1] += theme.paint(role, part) if part.strip() else part
    return painted[: len(lines)], _restart(lines, inside)


def _restart(lines: Sequence[str], inside: set[int]) -> int:
    """Return the last line that is as far left as any near the end: there a statement begins, most probably."""
    left = list(accumulate((len(line) + 1 for line in reversed(lines)), initial=0))
    best, best_indent = 0, 1_000
    for index in reversed(range(len(lines))):
        line = lines[index]
        if best_indent < 1_000 and left[len(lines) - index - 1] > _CONTEXT_CHARS:
            break
        indent = len(line) - len(line.lstrip(" "))
        if line.strip() and line.lstrip(" ")[0] not in ")]}" and index not in inside and indent < best_indent:
            best, best_indent = index, indent
    return best


def _role(kind: _TokenType) -> Role | None:
    at: _TokenType | None = kind
    while at is not None and at is not Token:
        if at in _ROLES:
            return _ROLES[at]
        at = at.parent
    return None
