from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from panpan.capabilities.packages.conda import CondaTool
from panpan.capabilities.packages.package_tool import PackageTool
from panpan.capabilities.packages.pip import PipTool
from panpan.capabilities.packages.pixi import PixiTool
from panpan.capabilities.packages.uv import UvTool
from panpan.core.effects import UNKNOWN, Agent, Command, Effects
from panpan.errors import ConfigError
from panpan.permissions.reach.located import locate_use
from panpan.permissions.rules.matching import restriction
from panpan.permissions.rules.rules import (
    PACKAGE_OPERATIONS,
    RuleSource,
    parse_rule,
    rules_of_no_tool,
    split_rules,
)
from panpan.permissions.subject import Subject
from panpan.system.files.paths import PathResolver
from tests.fakes.every_tool import every_tool

LINE = Effects(commands=(Command("npm run test"),))
READING, SEARCHING = Effects(reads=("a",)), Effects(searches=("a",))
CHANGING, MAKING = Effects(reads=("a",), writes=("a",)), Effects(writes=("a",))


def holds(rule: str, tool: str, told: Effects, place: Path) -> bool:
    uses = tuple(locate_use(use, PathResolver(place)) for use in told.path_uses)
    return restriction(parse_rule(rule, "the test"), Subject(tool, told, uses, place, place)) == "holds"


@pytest.mark.parametrize(
    ("rule", "tool", "told"),
    [
        ("Bash", "Bash", LINE),
        ("Bash(*)", "Bash", LINE),
        ("Bash(npm run *)", "Bash", LINE),
        ("Read", "Grep", SEARCHING),
        ("Read", "LS", READING),
        ("Read", "anything", READING),
        ("Edit", "Patch", CHANGING),
        ("Edit", "Write", MAKING),
        ("Edit", "anything", MAKING),
        ("Write", "Write", MAKING),
        ("mcp__github__*", "mcp__github__create_issue", UNKNOWN),
        ("mcp__github", "mcp__github__create_issue", UNKNOWN),
        ("mcp__github__create_issue", "mcp__github__create_issue", UNKNOWN),
        ("Agent(reviewer)", "Agent", Effects(agents=(Agent("reviewer"),))),
        ("Agent(reviewer)", "Task", Effects(agents=(Agent("reviewer"),))),
        ("evaluate", "evaluate", UNKNOWN),
    ],
)
def test_rule_applies_to_its_tools(rule: str, tool: str, told: Effects, tmp_path: Path) -> None:
    assert holds(rule, tool, told, tmp_path)


@pytest.mark.parametrize(
    ("rule", "tool", "told"),
    [
        ("Bash", "BashOutput", Effects()),
        ("Write", "Edit", CHANGING),
        ("Edit", "Read", READING),
        ("mcp__git", "mcp__github__x", UNKNOWN),
        ("mcp__a__b", "mcp__a__bc", UNKNOWN),
    ],
)
def test_rule_does_not_apply_to_other_tools(rule: str, tool: str, told: Effects, tmp_path: Path) -> None:
    assert not holds(rule, tool, told, tmp_path)


@pytest.mark.parametrize(
    "rule",
    [
        "", "Bash(", "Bash)", "Bash()", "(npm)", "Bash npm", "Read()", "WebFetch(example.org)",
        "WebFetch(domain:)", "WebFetch(domain:a b)", "mcp__x__y(z)", "B*sh", "Read(!x)", "Bash(echo ')", "evaluate(x)",
        "Bash(a) (b", "1tool",
    ],
)  # fmt: skip
def test_unreadable_rule_error_names_it_and_its_source(rule: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rule(rule, "settings.toml")

    assert repr(rule) in str(caught.value)
    assert "settings.toml" in str(caught.value)


def sources(*, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> list[RuleSource]:
    return [RuleSource("s.toml", allow=allow, ask=ask, deny=deny)]


TOOLS = ["Read", "Write", "Edit", "LS", "Bash"]


@pytest.mark.parametrize("kind", ["allow", "ask", "deny"])
@pytest.mark.parametrize(
    ("rule", "meant"),
    [("Reed", "Read"), ("Bsh(ls)", "Bash"), ("bsh", "Bash"), ("Wirte(/a)", "Write"), ("WebFech", "WebFetch")],
)
def test_misspelt_tool_is_an_error_in_every_list(kind: str, rule: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        list(rules_of_no_tool(sources(**{kind: [rule]}), TOOLS))

    assert f"{rule!r} from s.toml" in str(caught.value)
    assert str(caught.value).endswith(f"did you mean {meant}?")


@pytest.mark.parametrize("kind", ["allow", "ask", "deny"])
@pytest.mark.parametrize("rule", ["TodoWrite", "KillBash", "NotebookEdit", "WebSearch", "Agent(reviewer)", "evaluate"])
def test_rule_about_a_missing_tool_is_a_warning_in_every_list(kind: str, rule: str) -> None:
    (warning,) = rules_of_no_tool(sources(**{kind: [rule]}), TOOLS)

    assert f"{rule!r} from s.toml" in warning


@pytest.mark.parametrize("written", ["bash", "BASH(git *)", "readhistory", "webfetch(domain:example.org)", "task(X)"])
def test_parse_rule_reads_a_tool_in_any_case(written: str) -> None:
    rule = parse_rule(written, "--allowedTools")

    name = written.partition("(")[0]
    (meant,) = [tool.name for tool in every_tool() if tool.name.lower() == name.lower()]
    assert (rule.tool, rule.text) == (meant, written)
    assert list(rules_of_no_tool(sources(allow=[written]), [meant])) == []


def test_rules_about_present_or_future_tools_are_fine() -> None:
    rules = sources(allow=["Bash(ls)"], ask=["mcp__x__*"], deny=["LS"])

    assert list(rules_of_no_tool(rules, TOOLS)) == []


def test_meaningless_parentheses_are_an_error_with_the_reason() -> None:
    with pytest.raises(ConfigError, match="there is no tool evaluate"):
        parse_rule("evaluate(x)", "s.toml")
    with pytest.raises(ConfigError, match="write WebSearch alone"):
        parse_rule("WebSearch(x)", "s.toml")


def refusal_of(rule: str) -> str:
    try:
        parse_rule(rule, "s.toml")
    except ConfigError as error:
        return str(error)
    return ""


def test_every_tool_can_be_named_by_a_rule() -> None:
    for tool in every_tool():
        assert refusal_of(tool.name) == ""
        assert "there is no tool" not in refusal_of(f"{tool.name}(x y)"), tool.name


@pytest.mark.parametrize("tool", [PipTool, UvTool, CondaTool, PixiTool])
def test_rule_refuses_unknown_operations(tool: type[PackageTool[Any]]) -> None:
    operations = get_args(tool.input_model.model_fields["operation"].annotation)

    assert set(PACKAGE_OPERATIONS[tool.name]) == set(operations)
    assert all(parse_rule(f"{tool.name}({name})", "s.toml") for name in (*operations, "*nst*"))
    with pytest.raises(ConfigError, match=f"'{tool.name}.instal.' .* names no operation of {tool.name}; there are "):
        parse_rule(f"{tool.name}(instal)", "s.toml")


def test_command_line_rules_are_split_outside_parentheses() -> None:
    text = "Bash(git log *),Edit  Read(./a, b),Bash(echo (a b))"

    assert split_rules(text) == ["Bash(git log *)", "Edit", "Read(./a, b)", "Bash(echo (a b))"]


@pytest.mark.parametrize(
    ("rule", "url", "is_allowed", "is_restricted"),
    [
        ("domain:docs.python.org", "https://docs.python.org/3/", True, True),
        ("domain:docs.python.org", "https://docs.python.org:443", True, True),
        ("domain:docs.python.org", "HTTPS://docs.python.org", True, True),
        ("domain:docs.python.org", "https://x.docs.python.org/", False, True),
        ("domain:*.python.org", "https://docs.python.org/", True, True),
        ("domain:*.python.org", "https://python.org/", False, True),
        ("domain:*.python.org", "https://evilpython.org/", False, False),
        ("domain:python.org", "https://user@python.org/", False, True),
        ("domain:python.org", "https://evil.org\\@python.org/", False, True),
        ("domain:python.org", "https://evil.org/python.org", False, False),
        ("domain:python.org", "https://PYTHON.org./", True, True),
        ("domain:*", "https://anything.example/", True, True),
    ],
)
def test_domain_is_allowed_exactly_and_restricted_broadly(
    rule: str, url: str, is_allowed: bool, is_restricted: bool
) -> None:
    pattern = parse_rule(f"WebFetch({rule})", "the test").specifier

    assert pattern.allows(url) == is_allowed
    assert pattern.restricts(url) == is_restricted
