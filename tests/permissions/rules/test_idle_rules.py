import pytest

from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource


def idle(*, allow: tuple[str, ...] = (), ask: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> list[str]:
    gate = PermissionGate([RuleSource("f", True, allow, ask, deny)])
    assert gate.warnings == [str(one) for one in gate.idle_rules()], "all stand in one place"
    return [one.rule.text for one in gate.idle_rules()]


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
def test_a_rule_never_matters_beside_a_stronger_one_that_is_as_wide(rule: str, stronger: str) -> None:
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
def test_a_rule_matters_where_the_stronger_one_leaves_something_over(rule: str, stronger: str) -> None:
    assert idle(allow=(rule,), deny=(stronger,)) == []


@pytest.mark.parametrize("rule", ["Bash(cd x && *)", "Bash(a | *)", "Bash(* > out)", "Bash(A=1 make *)", "Bash(a; *)"])
def test_a_rule_with_a_star_for_more_than_one_command_never_matters(rule: str) -> None:
    assert idle(allow=(rule,)) == [rule]
    assert idle(deny=(rule,)) == [], "a restriction is tried on the whole line, too"


@pytest.mark.parametrize("rule", ["Bash(cd x && make)", "Bash(make > out)", "Bash(git commit -m '*; *')"])
def test_a_whole_line_and_what_is_quoted_may_hold_anything(rule: str) -> None:
    assert idle(allow=(rule,)) == []


def test_what_one_file_allows_and_another_one_denies_is_no_slip_and_warns_nobody_at_the_start() -> None:
    sources = [RuleSource("a:1", allow=("Bash(npm *)",)), RuleSource("b:1", deny=("Bash(npm *)",))]
    gate = PermissionGate(sources)

    assert [str(one) for one in gate.idle_rules()] == [
        "the rule Bash(npm *) from a:1 never matters: the rule Bash(npm *) from b:1 denies all that it allows"
    ]
    assert gate.warnings == []
