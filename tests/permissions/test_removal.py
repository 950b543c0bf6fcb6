"""Rules saved with "always" can be removed; rules written elsewhere stay and are named."""

import anyio
import pytest

from panpan.errors import ConfigError
from panpan.permissions.gate import ANSWERED, PermissionGate, Removal
from panpan.permissions.rules.rules import RuleSource, parse_rule


class Store:
    """A file of rules."""

    place = "local.toml"

    def __init__(self, *rules, is_broken=False):
        self.rules = list(rules)
        self.is_broken = is_broken

    def save(self, rule):
        self.rules.append(rule)

    def remove(self, rule):
        if self.is_broken:
            raise ConfigError("local.toml is broken")
        self.rules = [other for other in self.rules if other != rule]


def gate_with(store):
    gate = PermissionGate(
        [
            RuleSource("user.toml", allow=["Bash(ls)"], deny=["Read(.env)"]),
            RuleSource("local.toml:7", allow=["Bash(ls)", "Edit"]),
        ],
        store=store,
    )
    gate.rules.allow.append(parse_rule("Bash(make)", ANSWERED))
    return gate


def allowed(gate):
    return [(rule.text, rule.source) for rule in gate.rules.allow]


def test_removable_rules_are_answers_only():
    assert gate_with(Store()).removable_rules() == ["Bash(ls)", "Edit", "Bash(make)"]
    assert PermissionGate([RuleSource("user.toml", allow=["Bash(ls)"])]).removable_rules() == []


def test_remove_rule_ends_an_answer_in_session_and_file():
    store = Store("Bash(make)", "Edit")
    gate = gate_with(store)

    assert anyio.run(gate.remove_rule, "Bash(make)", backend="trio") == Removal(["this session", "local.toml"], [])
    assert store.rules == ["Edit"]
    assert ("Bash(make)", ANSWERED) not in allowed(gate)


def test_remove_rule_keeps_and_names_copies_in_other_files():
    store = Store("Bash(ls)")
    gate = gate_with(store)

    removal = anyio.run(gate.remove_rule, "Bash(ls)")

    assert removal == Removal(["local.toml"], ["allow, from user.toml"])
    assert store.rules == []
    assert [source for text, source in allowed(gate) if text == "Bash(ls)"] == ["user.toml"]


def test_remove_rule_keeps_rules_that_deny():
    gate = gate_with(Store())

    assert anyio.run(gate.remove_rule, "Read(.env)") == Removal([], ["deny, from user.toml"])
    assert [rule.text for rule in gate.rules.deny] == ["Read(.env)"]


def test_remove_rule_changes_nothing_if_the_file_is_unwritable():
    gate = gate_with(Store(is_broken=True))
    before = allowed(gate)

    with pytest.raises(ConfigError):
        anyio.run(gate.remove_rule, "Edit")

    assert allowed(gate) == before
