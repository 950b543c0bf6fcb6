"""Every simple command in the syntax tree of a command line, however deep, and every odd construct.

The rule: it may name a command that does not run, and never leaves out one that does unless it also names an oddity.
"""

from dataclasses import field
from typing import TYPE_CHECKING

from panpan.shell_analysis.facts import Redirect, SimpleCommand, TooNestedError, Word
from panpan.shell_analysis.languages import words_of_conditional
from panpan.shell_analysis.plain_line import RESERVED_WORDS, is_harmless_assignment, may_assign
from panpan.shell_analysis.shell_changes import may_change_shell
from panpan.shell_analysis.words import NotPlainError, with_braces_expanded, word_at, word_of
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node


_PLAIN_KINDS = frozenset({
    "ansi_c_string", "binary_expression", "brace_expression", "command", "command_name", "comment",
    "compound_statement", "concatenation", "declaration_command", "expansion", "extglob_pattern", "file_descriptor",
    "file_redirect", "list", "negated_command", "number", "parenthesized_expression", "pipeline", "program",
    "raw_string", "redirected_statement", "regex", "simple_expansion", "special_variable_name", "string",
    "string_content", "subshell", "test_command", "test_operator", "unary_expression", "unset_command",
    "variable_assignment", "variable_name", "word",
})  # fmt: skip
"""Plain, or judged below."""

_ODD_KINDS = {
    "arithmetic_expansion": "arithmetic",
    "array": "an array",
    "c_style_for_statement": "a loop",
    "case_statement": "a case",
    "command_substitution": "a command substitution",
    "for_statement": "a loop",
    "function_definition": "a function",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "if_statement": "an if",
    "process_substitution": "a process substitution",
    "translated_string": "a translated string",
    "while_statement": "a loop",
}
_PARTS_OF_ODD = frozenset({
    "case_item", "do_group", "elif_clause", "else_clause", "heredoc_body", "heredoc_content", "heredoc_end",
    "heredoc_start", "postfix_expression", "subscript", "ternary_expression", "variable_assignments",
})  # fmt: skip
"""Nodes that are always part of something odd, and are reported with that."""

_LOOKED_UP = frozenset({"${", "}", "variable_name", "special_variable_name"})
"""Nodes of an expansion in braces that only looks up a variable."""


def oddity_of(node: "Node") -> str | None:
    """Return what a node is called if it is odd by its kind; None if it is plain, or part of something odd."""
    kind = node.type
    if not node.is_named:
        return "a command in the background" if kind == "&" else None
    if kind in _PLAIN_KINDS or kind in _PARTS_OF_ODD:
        if kind == "expansion" and any(child.type not in _LOOKED_UP for child in node.children):
            return "an expansion that does more than look up"
        if kind == "compound_statement" and node.children[0].type == "((":
            return "arithmetic"
        return None
    return _ODD_KINDS.get(kind, f"a {kind.replace('_', ' ')}")


_MOST_READINGS = 100
"""Most readings of a command with reserved words before it."""
MAX_NODES = 10_000
"""Nodes that are looked at, about 20 µs each; a line of 10 kB rarely has 5,000."""
MAX_QUOTED_CHARS = 30
"""Longest quotation of text that could not be parsed."""

_COMMAND_KINDS = frozenset({"command", "test_command", "declaration_command", "unset_command"})
_READING = frozenset({"<", "<&"})


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """Commands and constructs in a syntax tree. Positions are in bytes."""

    commands: tuple[SimpleCommand, ...]
    oddities: tuple[str, ...]
    word_starts: frozenset[int]
    """Starts of the words of commands and of the targets of redirects, but for those inside `[ … ]`."""
    command_starts: frozenset[int]
    tests: tuple[range, ...]
    """Range of each `[ … ]`, from behind its bracket on."""
    here: tuple[str, ...]
    """Texts of here-documents and here-strings."""


def walk_tree(root: "Node") -> TreeFacts:
    """Return the commands and the odd constructs of a syntax tree."""
    walk = _Walk()
    walk.over(root)
    return TreeFacts(
        tuple(walk.commands),
        tuple(walk.oddities),
        frozenset(walk.word_starts),
        frozenset(walk.command_starts),
        tuple(walk.tests),
        tuple(walk.here),
    )


@dataclass(slots=True)
class _Redirected:
    """Redirects and words that a redirected statement adds to the last command of its body."""

    redirects: list[Redirect] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    """Words of the command behind a redirect; the grammar takes them for more targets."""


class _Walk:
    """One walk over a tree, in the order of the text."""

    def __init__(self) -> None:
        self.commands: list[SimpleCommand] = []
        self.oddities: dict[str, None] = {}
        self.word_starts: set[int] = set()
        self.command_starts: set[int] = set()
        self.tests: list[range] = []
        self.here: list[str] = []
        self._redirected_by_command: dict[int, _Redirected] = {}
        self._seen: set[int] = set()
        """Redirects and assignments that some command has taken."""

    def over(self, root: "Node") -> None:
        waiting = [(root, False)]
        count = 0
        while waiting:
            node, is_in_backticks = waiting.pop()
            count += 1
            if count > MAX_NODES or node.child_count > MAX_NODES:
                self._note("more parts than are looked at")
                return
            self._look_at(node, is_in_backticks)
            children = node.children
            is_in_backticks = is_in_backticks or (
                node.type == "command_substitution" and bool(children) and "`" in children[0].type
            )
            waiting += [(child, is_in_backticks) for child in reversed(children)]

    def _note(self, oddity: str) -> None:
        self.oddities[oddity] = None

    def _look_at(self, node: "Node", is_in_backticks: bool) -> None:
        kind = node.type
        if node.is_error or node.is_missing:
            self._note(f"what could not be parsed: `{_quoted(node)}`")
        elif oddity := oddity_of(node):
            self._note(oddity)
        if kind == "redirected_statement":
            self._look_at_redirected(node, is_in_backticks)
        elif kind in _COMMAND_KINDS:
            self._look_at_command(node, is_in_backticks)
        elif kind == "file_redirect" and node.id not in self._seen:
            self._look_at_lone_redirect(node, is_in_backticks)
        elif kind == "heredoc_body":
            self.here.append(_text(node))
        elif kind == "herestring_redirect":
            self.here += [word_of(_text(child)).text or _text(child) for child in node.named_children]
        elif kind == "for_statement":
            values = " ".join(map(_text, node.children_by_field_name("value")))
            name = "".join(map(_text, node.children_by_field_name("variable")))
            self.commands.append(SimpleCommand(f"for {name} in {values}", (), (), (name,), directories=None))
        elif kind == "variable_assignment" and node.id not in self._seen:
            self._note("an assignment")
            self.commands.append(SimpleCommand(_text(node), (), (), (_name(node),), directories=None))

    def _look_at_redirected(self, node: "Node", is_in_backticks: bool) -> None:
        found = _Redirected()
        for redirect in node.children_by_field_name("redirect"):
            self._take_redirect(redirect, found, is_in_backticks)
        body = node.child_by_field_name("body")
        while body is not None and body.type in ("list", "pipeline", "negated_command"):
            body = body.named_children[-1] if body.named_children else None
        if body is not None and body.type in _COMMAND_KINDS:
            known = self._redirected_by_command.setdefault(body.id, _Redirected())
            known.redirects += found.redirects
            known.words += found.words
        elif found.redirects:
            self.commands.append(SimpleCommand(_text(node), (), tuple(found.redirects), directories=None))

    def _word(self, node: "Node", is_in_backticks: bool) -> Word:
        source = _text(node)
        if source[:1].isspace():
            self._note(f"what could not be parsed: `{_cut(source)}`")  # the grammar read past a line end
        if is_in_backticks and "\\" in source:
            return Word(source, None)  # the shell removes backslashes before it reads the word
        return word_of(source)

    def _look_at_lone_redirect(self, node: "Node", is_in_backticks: bool) -> None:
        """Take a redirect that the grammar puts into something else, as behind `<<EOF`."""
        found = _Redirected()
        self._take_redirect(node, found, is_in_backticks)
        if found.redirects or found.words:
            self.commands.append(SimpleCommand(_text(node), (), tuple(found.redirects), directories=None))

    def _take_redirect(self, redirect: "Node", found: _Redirected, is_in_backticks: bool) -> None:
        self._seen.add(redirect.id)
        if redirect.type != "file_redirect":
            found.words += [self._word(word, is_in_backticks) for word in redirect.children_by_field_name("argument")]
            return
        targets = redirect.children_by_field_name("destination")
        operator = next((child.type for child in redirect.children if not child.is_named), "")
        is_closing = operator in ("<&-", ">&-")
        if is_closing:
            self._note("a closed stream")
        self.word_starts.update(target.start_byte for target in targets)
        words = [self._word(target, is_in_backticks) for target in targets]
        if is_closing or not words:
            found.words += words
            return
        target = words[0]
        found.words += words[1:]
        is_joint = operator in (">&", "<&") and target.text is not None and target.text.rstrip("-").isdigit()
        if not is_joint and target.text != "/dev/null":
            found.redirects.append(Redirect(target, is_write=operator not in _READING))

    def _look_at_command(self, node: "Node", is_in_backticks: bool) -> None:
        assignments: list[str] = []
        parts = _Redirected()
        for child in node.children:
            if child.type == "variable_assignment" and node.type == "command":
                self._seen.add(child.id)
                if not is_harmless_assignment(_text(child)):
                    self._note("an assignment")
                    assignments.append(_name(child))
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self._take_redirect(child, parts, is_in_backticks)
            elif node.type != "test_command":
                self._seen.add(child.id)
                word = self._word(child, is_in_backticks)
                parts.words += with_braces_expanded(word) if parts.words and not is_in_backticks else (word,)
                self.word_starts.add(child.start_byte)
        if node.type == "test_command":
            parts.words = self._words_of_test(node)
        if parts.words:
            self.command_starts.add(_first_word_start(node))
        behind = self._redirected_by_command.pop(node.id, _Redirected())
        redirects = (*parts.redirects, *behind.redirects)
        for words, assigned in self._readings(parts.words + behind.words):
            command = SimpleCommand(_text(node), words, redirects, (*assignments, *assigned), directories=None)
            if words and may_change_shell(command):
                self._note(f"`{_cut(words[0].source)}`, which may change what follows")
            self.commands.append(command)

    def _readings(self, words: list[Word]) -> list[tuple[tuple[Word, ...], tuple[str, ...]]]:
        """Return the words, and those behind each reserved word that the grammar takes for a program, such as `time`.

        Bash may take them for either: in `a | time b` the second, in `a |& time b` the first. What looks like an
        assignment behind them may be one, whose name is returned with the words, or a program.
        """
        readings: list[tuple[tuple[Word, ...], tuple[str, ...]]] = [(tuple(words), ())]
        assigned: tuple[str, ...] = ()
        while words:
            if len(readings) > _MOST_READINGS:
                raise TooNestedError
            first, options = words[0].source, 1
            if first in RESERVED_WORDS - {"[["}:
                if first != "time":
                    self._note(f"`{first}`")
                while first == "time" and options < len(words) and words[options].source in ("-p", "--"):
                    options += 1
            elif len(readings) > 1 and may_assign(first):
                self._note("an assignment")
                assigned = (*assigned, _assigned_name(first))
            else:
                break
            words = words[options:]
            if words or assigned:
                readings.append((tuple(words), assigned))
        return readings

    def _words_of_test(self, node: "Node") -> list[Word]:
        bracket = node.children[0]
        if bracket.type == "((":
            self._note("arithmetic")
        self.word_starts.add(bracket.start_byte)
        self.tests.append(range(bracket.end_byte, node.end_byte))
        return _words_in_brackets(_text(node), bracket.type)


def _words_in_brackets(text: str, bracket: str) -> list[Word]:
    """Return the words of a test with its brackets; one without a text for what cannot be read for certain."""
    words, at = [Word(bracket, bracket)], len(bracket)
    try:
        if bracket == "[[":
            return [*words, *words_of_conditional(text, at)[0]]
        while rest := text[at:].lstrip(" \t"):
            words.append(word_at(rest, 0))
            at = len(text) - len(rest) + len(words[-1].source)
    except NotPlainError:
        return [*words[:1], Word(text[len(bracket) :], None)]
    return words


def _name(assignment: "Node") -> str:
    return _assigned_name(_text(assignment))


def _assigned_name(assignment: str) -> str:
    return assignment.partition("=")[0].removesuffix("+")


def _first_word_start(node: "Node") -> int:
    if node.type == "command":
        name = node.child_by_field_name("name")
        return name.start_byte if name is not None else node.start_byte
    return node.start_byte


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "surrogatepass")


def _quoted(node: "Node") -> str:
    return _cut(_text(node) if not node.is_missing else f"{node.type} that is missing")


def _cut(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= MAX_QUOTED_CHARS else f"{first[:MAX_QUOTED_CHARS]}…"
