from pathlib import Path

import pytest

from panpan.config.settings_file import WrittenRule
from panpan.errors import ConfigError
from panpan.permissions.rules.rule_checks import check_examples, checked_examples
from panpan.permissions.rules.rules import RuleSource
from panpan.system.files.paths import PathResolver
from tests.permissions.folder import Project


def right(
    root: Path, behaviour: str, rule: str, match: tuple[str, ...] = (), not_match: tuple[str, ...] = ()
) -> list[bool]:
    written = WrittenRule(rule, "f:3", match, not_match)
    source = RuleSource("f", **{behaviour: [written]})  # type: ignore[arg-type]
    return [example.is_right for example in checked_examples([source], PathResolver(root))]


@pytest.mark.parametrize(
    ("rule", "match", "not_match"),
    [
        ("Bash(git log *)", ("git log", "git log -3", "'git' log", "git log | head"), ("git push", "git log; rm x")),
        ("Bash(make test)", ("make test",), ("make", "make test x", "make test > out")),
        ("Edit(/src/**)", ("src/a.py", "./src/b/c"), ("a.py", "../src/a", "src/../a")),
        ("Read(//etc/hosts)", ("/etc/hosts",), ("/etc/passwd", "etc/hosts")),
        (
            "WebFetch(domain:*.example.org)",
            ("https://a.example.org/x",),
            ("https://example.org", "http://a@b.example.org"),
        ),
        ("Agent(rev*)", ("reviewer",), ("writer",)),
        ("Read", ("anything",), ()),
    ],
)
def test_example_of_an_allowance_is_what_the_rule_alone_allows(
    tmp_path: Path, rule: str, match: tuple[str, ...], not_match: tuple[str, ...]
) -> None:
    assert all(right(tmp_path, "allow", rule, match, not_match))
    assert not any(right(tmp_path, "allow", rule, not_match, match))


@pytest.mark.parametrize("behaviour", ["ask", "deny"])
def test_example_of_a_restriction_holds_in_any_place(tmp_path: Path, behaviour: str) -> None:
    match = ("rm x", "ls; rm x", "echo $(rm x)", "sudo rm x", "$X x")

    assert all(right(tmp_path, behaviour, "Bash(rm *)", match, ("ls", "echo rm")))


def test_wrong_example_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    project = Project(tmp_path)

    with pytest.raises(ConfigError) as caught:
        project.gate(
            '[permission]\nallow = ["Bash(ls)",\n  {rule = "Bash(git log *)", match = ["git log -1", "git show"]},\n]\n'
        )

    assert str(caught.value) == (
        f"{project.settings}:3: the rule Bash(git log *) should allow 'git show', and does not; change the rule or the "
        "example"
    )
    with pytest.raises(ConfigError, match="should not deny 'rm x', and does"):
        project.gate('permission.deny = [{rule = "Bash(rm *)", not_match = ["rm x"]}]')


def test_right_or_missing_examples_are_accepted(tmp_path: Path) -> None:
    source = RuleSource("f", allow=["Bash(ls)", WrittenRule("Bash(ls *)", "f:1", ("ls -l",), ("rm",))])

    check_examples([source], PathResolver(tmp_path))
