import pytest

from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource


def idle(*, allow: tuple[str, ...] = (), ask: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> list[str]:
    gate = PermissionGate([RuleSource("f", True, allow, ask, deny)])
    assert gate.warnings == [str(one) for one in gate.shadowed_rules()], "all stand in one place"
    return [one.rule.text for one in gate.shadowed_rules()]


@pytest.mark.parametrize(
    ("rule", "stronger"),
    [
        ("Bash(npm run *)", "Bash"),
        ("Bash(npm run *)", "Bash(npm run *)"),
        ("Bash(npm run *)", "Bash(npm *)"),
        ("Bash(npm run *)", "Bash(npm:*)"),
        ("Bash(npm run build)", "Bash(npm run *)"),
        ("Bash(rm -rf x)", "Bash(* x)"),
        ("Edit(/src/**)", "Edit"),
        ("Edit(/src/a.py)", "Edit(/src/**)"),
        ("Edit(/src/a/**)", "Edit(/src/**)"),
        ("Write(/src/a)", "Edit(/src/*)"),
        ("Grep(/src/**)", "Read(/src/**)"),
        ("Read(a.env)", "Read(*.env)"),
        ("Read(//etc/hosts)", "Read(//etc/**)"),
        ("Read(~/.x/**)", "Read(~/**)"),
        ("WebFetch(domain:a.example.org)", "WebFetch(domain:example.org)"),
        ("WebFetch(domain:*.example.org)", "WebFetch(domain:*.example.org)"),
        ("Agent(reviewer)", "Agent(rev*)"),
        ("mcp__server__tool", "mcp__server"),
    ],
)
def test_idle_rule_stands_beside_a_stronger_one_as_wide(rule: str, stronger: str) -> None:
    assert idle(allow=(rule,), deny=(stronger,)) == [rule]
    assert idle(allow=(rule,), ask=(stronger,)) == [rule]
    assert idle(ask=(rule,), deny=(stronger,)) == [rule]
    assert idle(allow=(stronger,), deny=("Bash(other)",)) == []


@pytest.mark.parametrize(
    ("rule", "stronger"),
    [
        ("Bash(npm *)", "Bash(npm run *)"),
        ("Bash(npm run *)", "Bash(npm run build)"),
        ("Bash", "Bash(npm *)"),
        ("Edit(/src/**)", "Edit(/src/a/**)"),
        ("Edit(/src/**)", "Edit(/src/*.py)"),
        ("Edit(/src/**)", "Read(/src/**)"),
        ("Read(/src/**)", "Grep(/src/**)"),
        ("Read", "Grep"),
        ("Read(*.env)", "Read(/*.env)"),
        ("Read(/a)", "Read(//a)"),
        ("WebFetch(domain:example.org)", "WebFetch(domain:a.example.org)"),
        ("WebFetch(domain:*)", "WebFetch(domain:example.org)"),
        ("Agent(*)", "Agent(reviewer)"),
        ("mcp__server", "mcp__server__tool"),
    ],
)
def test_idle_rules_omit_rules_that_keep_some_calls(rule: str, stronger: str) -> None:
    assert idle(allow=(rule,), deny=(stronger,)) == []


@pytest.mark.parametrize("rule", ["Bash(cd x && *)", "Bash(a | *)", "Bash(* > out)", "Bash(A=1 make *)", "Bash(a; *)"])
def test_idle_rules_include_a_star_over_several_commands(rule: str) -> None:
    assert idle(allow=(rule,)) == [rule]
    assert idle(deny=(rule,)) == [], "a restriction is tried on the whole line, too"


@pytest.mark.parametrize("rule", ["Bash(cd x && make)", "Bash(make > out)", "Bash(git commit -m '*; *')"])
def test_idle_rules_omit_whole_lines_and_quoted_text(rule: str) -> None:
    assert idle(allow=(rule,)) == []


def test_idle_rule_of_another_file_is_listed_without_a_warning() -> None:
    sources = [RuleSource("a:1", allow=("Bash(npm *)",)), RuleSource("b:1", deny=("Bash(npm *)",))]
    gate = PermissionGate(sources)

    assert [str(one) for one in gate.shadowed_rules()] == [
        "the rule Bash(npm *) from a:1 never matters: the rule Bash(npm *) from b:1 denies all that it allows"
    ]
    assert gate.warnings == []
