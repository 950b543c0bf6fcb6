"""The examples that a rule carries: what it must hold for, and what it must not.

A rule that allows must allow what `match` names by itself; one that asks or denies must hold for it. An example is a
command line, a path, an address or a name, as the rule has it in its parentheses.
"""

from collections.abc import Iterator, Sequence

from panpan.config.settings_file import WrittenRule
from panpan.core.effects import Agent, Command, Effects, PathUse
from panpan.errors import ConfigError, ToolError
from panpan.permissions.reach.located import LocatedUse, located
from panpan.permissions.rules.matching import allowing_rules, restriction
from panpan.permissions.rules.rules import EDIT_TOOLS, Rule, RuleSource, parse_rule
from panpan.permissions.subject import Subject
from panpan.system.files.paths import PathResolver
from panpan.types.dataclass import dataclass
from panpan.types.permission import Behaviour

_BEHAVIOURS: tuple[Behaviour, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class CheckedExample:
    """One example of a rule, and whether the rule does what it says."""

    rule: WrittenRule
    behaviour: Behaviour
    example: str
    is_match: bool
    """True if the rule should hold for it."""
    is_right: bool

    def __str__(self) -> str:
        verb = {"allow": "allow", "ask": "ask about", "deny": "deny"}[self.behaviour]
        should = "should" if self.is_match else "should not"
        but = "" if self.is_right else (", and does not" if self.is_match else ", and does")
        return f"{self.rule.place}: the rule {self.rule.text} {should} {verb} {self.example!r}{but}"


def checked_examples(sources: Sequence[RuleSource], paths: PathResolver) -> Iterator[CheckedExample]:
    """Yield every example of every rule.

    Args:
        sources: The rules.
        paths: Says where paths in examples lie.

    Raises:
        ConfigError: A rule cannot be read.
    """
    for source in sources:
        for behaviour in _BEHAVIOURS:
            for written in source.written(behaviour):
                rule = parse_rule(written.text, written.place)
                examples = [(text, True) for text in written.match] + [(text, False) for text in written.not_match]
                for text, is_match in examples:
                    is_right = _holds(rule, behaviour, text, paths) == is_match
                    yield CheckedExample(written, behaviour, text, is_match, is_right)


def check_examples(sources: Sequence[RuleSource], paths: PathResolver) -> None:
    """Refuse rules that do not do what their examples say.

    Raises:
        ConfigError: There is one, or a rule cannot be read.
    """
    for example in checked_examples(sources, paths):
        if not example.is_right:
            raise ConfigError(f"{example}; change the rule or the example")


def _holds(rule: Rule, behaviour: Behaviour, example: str, paths: PathResolver) -> bool:
    try:
        subject = _subject(rule, example, paths)
    except ToolError:  # no path that any call could name
        return False
    if behaviour == "allow":
        return allowing_rules([rule], subject) is not None
    return restriction(rule, subject) is not None


def _subject(rule: Rule, example: str, paths: PathResolver) -> Subject:
    """Return a call of the rule's tool about the example.

    Raises:
        ToolError: It is no usable path.
    """
    uses: tuple[LocatedUse, ...] = ()
    told = Effects(names=(example,))
    if rule.takes_paths:
        is_edit = rule.tool in EDIT_TOOLS
        uses = (located(PathUse(example, "write" if is_edit else "read"), paths),)
        told = Effects(writes=(example,)) if is_edit else Effects(reads=(example,))
    elif rule.tool == "Bash":
        told = Effects(commands=(Command(example),))
    elif rule.tool == "WebFetch":
        told = Effects(urls=(example,))
    elif rule.tool == "Agent":
        told = Effects(agents=(Agent(example),))
    return Subject(tool=rule.tool, told=told, uses=uses, root=paths.root, cwd=paths.cwd)
