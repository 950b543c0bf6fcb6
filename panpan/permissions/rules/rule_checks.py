"""Checks of rules: against the examples beside them, and for those that can never matter.

They cannot where a stronger rule says the same of all they speak of, or no call has their form.

A rule is tried on samples, in which a word that nobody writes replaces each wildcard. What is true of the samples is
then true of all that the rule covers.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from panpan.config.settings_file import WrittenRule
from panpan.core.effects import Agent, Command, Effects, PathUse
from panpan.errors import ConfigError, ToolError
from panpan.permissions.reach.located import LocatedUse, locate_use
from panpan.permissions.rules.matching import allowing_rules, restriction
from panpan.permissions.rules.patterns import CommandPattern, DomainPattern, PathPattern
from panpan.permissions.rules.rules import EDIT_TOOLS, READ_TOOLS, NamePattern, Rule, RuleSource, parse_rule
from panpan.permissions.subject import Subject
from panpan.system.files.canonical import user_home
from panpan.system.files.paths import PathResolver
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.permission import Behaviour

_ANY = "panpan-any-word"
_ROOT = Path("/panpan-any-root")
_JOINT = compile_late(r"&&|\|\|?|;|[<>]|\$\(|`|^[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class ShadowedRule:
    """A rule that can never matter."""

    rule: Rule
    why: str
    """Ends the sentence "the rule … never matters: …"."""
    by: Rule | None = None
    """The stronger rule, where there is one."""

    def __str__(self) -> str:
        return f"{self.rule} never matters: {self.why}"


def shadowed_rules(
    allow: Sequence[Rule], ask: Sequence[Rule], deny: Sequence[Rule], *, within_files: bool = False
) -> Iterator[ShadowedRule]:
    """Yield the rules that can never matter beside the others.

    Args:
        allow: Rules that allow.
        ask: Rules that ask.
        deny: Rules that deny.
        within_files: Whether only rules of the same file are held against each other: what one file allows and another
            one tightens is meant so.
    """

    def wider(rule: Rule, stronger: Sequence[Rule]) -> Rule | None:
        candidates = (other for other in stronger if not within_files or _file(other) == _file(rule))
        return next((other for other in candidates if _holds_for_all(other, rule)), None)

    for rule in allow:
        if joint := _joint(rule):
            yield ShadowedRule(rule, f"with a * it is compared with one command at a time, and `{joint}` is in none")
        elif by := wider(rule, deny):
            yield ShadowedRule(rule, f"{by} denies all that it allows", by)
        elif by := wider(rule, ask):
            yield ShadowedRule(rule, f"{by} asks about all that it allows", by)
    for rule in ask:
        if by := wider(rule, deny):
            yield ShadowedRule(rule, f"{by} denies all that it asks about", by)


def _file(rule: Rule) -> str:
    return rule.source.rpartition(":")[0] or rule.source


def _joint(rule: Rule) -> str:
    """Return the part of a rule for commands that no simple command contains."""
    text = _specifier(rule)
    if not isinstance(rule.specifier, CommandPattern) or "*" not in text.replace("\\*", "") or {"'", '"'} & set(text):
        return ""
    found = _JOINT.search(text)
    return found[0] if found else ""


def _holds_for_all(other: Rule, rule: Rule) -> bool:
    """Return whether the restriction `other` holds for whatever `rule` speaks of."""
    if other.specifier is None:
        return all(tool in _tools(other) or other.is_for(tool) for tool in _tools(rule))
    if rule.specifier is None or other.tool not in (rule.tool, *_kinds(rule)):
        return False
    text = _specifier(rule)
    match other.specifier:
        case CommandPattern() as pattern:
            return all(pattern.restricts(sample) for sample in _commands(text))
        case PathPattern() as pattern:
            paths = _paths(text)
            return bool(paths) and all(pattern.restricts_file(path, _ROOT) for path in paths)
        case DomainPattern() as pattern:
            return pattern.restricts(f"https://{_filled(text.partition(':')[2].strip())}/")
        case NamePattern() as pattern:
            return pattern.matches([_filled(text)])


def _tools(rule: Rule) -> frozenset[str]:
    return {"Read": READ_TOOLS, "Edit": EDIT_TOOLS}.get(rule.tool, frozenset({rule.tool}))


def _kinds(rule: Rule) -> list[str]:
    """Return the rules that speak of all that this one does: `Read` of `Grep`, say."""
    return [kind for kind, tools in (("Read", READ_TOOLS), ("Edit", EDIT_TOOLS)) if rule.tool in tools]


def _specifier(rule: Rule) -> str:
    return rule.text.partition("(")[2].removesuffix(")")


def _filled(text: str) -> str:
    return text.replace("\\*", "\0").replace("*", _ANY).replace("\0", "*")


def _commands(text: str) -> list[str]:
    text = f"{text[:-2]} *" if text.endswith(":*") else text
    return [_filled(text), *([_filled(text[:-2])] if text.endswith(" *") else [])]


def _paths(text: str) -> list[Path]:
    """Return paths that a rule for paths names; none if its form is not understood."""
    if {"[", "\\"} & set(text):
        return []
    filled = text.replace("**", f"{_ANY}/{_ANY}").replace("*", _ANY).replace("?", "x")
    if filled.startswith("//"):
        return [Path(filled[1:])]
    if filled.startswith("~/"):
        return [user_home() / filled[2:]]
    if "/" not in text.strip("/") and not text.startswith(("/", "./")):
        return [_ROOT / filled, _ROOT / _ANY / filled, Path("/", _ANY, filled)]
    return [_ROOT / filled.removeprefix(".").lstrip("/")]


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
    except ToolError:  # not a path that any call could name
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
        uses = (locate_use(PathUse(example, "write" if is_edit else "read"), paths),)
        told = Effects(writes=(example,)) if is_edit else Effects(reads=(example,))
    elif rule.tool == "Bash":
        told = Effects(commands=(Command(example),))
    elif rule.tool == "WebFetch":
        told = Effects(urls=(example,))
    elif rule.tool == "Agent":
        told = Effects(agents=(Agent(example),))
    return Subject(tool=rule.tool, declared=told, uses=uses, root=paths.root, cwd=paths.cwd)
