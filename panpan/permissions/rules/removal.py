"""Taking back what was answered with "always".

The rule: only what panpan itself keeps is removed, which are the answers of the session and the user's file for the
project. What stands elsewhere somebody wrote there on purpose.
"""

from collections.abc import Sequence

import anyio.to_thread

from panpan.permissions.gate import ANSWERED, PermissionGate
from panpan.permissions.rules.rules import Rule
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Removal:
    """What became of the rules of one text."""

    places: Sequence[str]
    """Where one was taken from; empty where none was."""
    staying: Sequence[str]
    """What stays, such as `deny, from ~/.panpan/settings.toml:3`."""


def removable_rules(gate: PermissionGate) -> Sequence[str]:
    """Return the allow rules that can be taken back."""
    return list(dict.fromkeys(rule.text for rule in gate.rules.allow if _place_of(rule, gate)))


async def remove_rule(gate: PermissionGate, text: str) -> Removal:
    """Let an allow rule count no more, in this session and in later ones.

    Args:
        gate: Has the rules.
        text: The rule, as `PermissionGate.rule_lines` shows it.

    Raises:
        ConfigError: The file cannot be changed; the rule counts as before.
    """
    places = [place for rule in gate.rules.allow if rule.text == text and (place := _place_of(rule, gate))]
    if places and gate.store is not None:
        await anyio.to_thread.run_sync(gate.store.remove, text)
        places.append(gate.store.place)
    gate.rules.allow = [rule for rule in gate.rules.allow if rule.text != text or not _place_of(rule, gate)]
    kinds = (("deny", gate.rules.deny), ("ask", gate.rules.ask), ("allow", gate.rules.allow))
    staying = [f"{kind}, from {rule.source}" for kind, rules in kinds for rule in rules if rule.text == text]
    return Removal(list(dict.fromkeys(places)), staying)


def _place_of(rule: Rule, gate: PermissionGate) -> str:
    """Return where a rule is kept that can be taken back; empty for any other."""
    if rule.source == ANSWERED:
        return "this session"
    if gate.store is not None and rule.source.rpartition(":")[0] == gate.store.place:
        return gate.store.place
    return ""
