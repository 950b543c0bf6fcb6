"""Rules that can never matter: a stronger rule says the same of all they speak of, or no call has their form.

A rule is tried on samples, in which a word that nobody writes stands in the place of each wildcard. What is true of the
samples is then true of all that the rule speaks of.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from panpan.permissions.rules.patterns import CommandPattern, DomainPattern, PathPattern
from panpan.permissions.rules.rules import EDIT_TOOLS, READ_TOOLS, NamePattern, Rule
from panpan.system.files.canonical import user_home
from panpan.types.dataclass import dataclass

_ANY = "panpan-any-word"
_ROOT = Path("/panpan-any-root")
_JOINT = re.compile(r"&&|\|\|?|;|[<>]|\$\(|`|^[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class IdleRule:
    """A rule that can never matter."""

    rule: Rule
    why: str
    """Ends the sentence "the rule … never matters: …"."""
    by: Rule | None = None
    """The stronger rule, where there is one."""

    def __str__(self) -> str:
        return f"{self.rule} never matters: {self.why}"


def idle_rules(
    allow: Sequence[Rule], ask: Sequence[Rule], deny: Sequence[Rule], *, within_files: bool = False
) -> Iterator[IdleRule]:
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
            yield IdleRule(rule, f"with a * it is compared with one command at a time, and `{joint}` stands in none")
        elif by := wider(rule, deny):
            yield IdleRule(rule, f"{by} denies all that it allows", by)
        elif by := wider(rule, ask):
            yield IdleRule(rule, f"{by} asks about all that it allows", by)
    for rule in ask:
        if by := wider(rule, deny):
            yield IdleRule(rule, f"{by} denies all that it asks about", by)


def _file(rule: Rule) -> str:
    return rule.source.rpartition(":")[0] or rule.source


def _joint(rule: Rule) -> str:
    """Return what stands in a rule for commands that no simple command has."""
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
    """Return paths that a rule for paths names; none where its form is not understood."""
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
