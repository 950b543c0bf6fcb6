"""Calls of tools that the gate has never heard of: what they say decides, and what they do not say is asked about."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from pydantic import BaseModel

from panpan.core.effects import Agent, Command, Effects
from panpan.core.hooks import ToolCall
from panpan.core.tool import Tool, ToolContext
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.types.events import Output, ToolYield
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode
from tests.fakes.context import context_in

MODES: tuple[PermissionMode, ...] = ("default", "plan", "acceptEdits", "bypassPermissions")


class Nothing(BaseModel):
    pass


class ForeignTool(Tool[Nothing]):
    """Says what it is told to say; None: nothing, as a tool that knows no better."""

    name = "Foreign"
    input_model = Nothing

    def __init__(self, told: Effects | None) -> None:
        self._told = told

    def title(self, args: Nothing) -> str:
        return ""

    async def effects(self, args: Nothing, ctx: ToolContext) -> Effects:
        return await super().effects(args, ctx) if self._told is None else self._told

    async def run(self, args: Nothing, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output("")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "secret").mkdir(parents=True)
    (root / "secret" / "s.txt").write_text("x")
    return root


async def decided(
    root: Path, told: Effects | None, *, mode: PermissionMode = "default", **rules: tuple[str, ...]
) -> Decision:
    gate = PermissionGate([RuleSource("test", **rules)], mode=mode)  # type: ignore[arg-type]
    return await gate.before_tool(await ToolCall.of("c", ForeignTool(told), Nothing(), {}, context_in(root)))


async def test_silent_tool_asks_and_is_denied_in_plan_mode(root: Path) -> None:
    assert isinstance(await decided(root, None), Ask)
    assert isinstance(await decided(root, None, mode="acceptEdits"), Ask)
    assert isinstance(await decided(root, None, mode="plan"), Deny)
    assert isinstance(await decided(root, None, allow=("Foreign",)), Allow)
    assert isinstance(await decided(root, None, allow=("Read", "Edit", "Bash")), Ask)


@pytest.mark.parametrize("rule", ["Read", "Edit"])
async def test_silent_tool_asks_beside_a_rule_for_all_files(root: Path, rule: str) -> None:
    assert isinstance(await decided(root, None, mode="bypassPermissions", deny=(rule,)), Ask)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (Effects(reads=("secret/s.txt",)), "Read"),
        (Effects(reads=("secret/s.txt",)), "Read(./secret/**)"),
        (Effects(reads=("secret/s.txt",), writes=("secret/s.txt",)), "Read(./secret/**)"),
        (Effects(searches=("secret",)), "Read(./secret/**)"),
        (Effects(writes=("secret/new",)), "Edit"),
        (Effects(deletes=("secret/s.txt",)), "Edit(./secret/**)"),
        (Effects(commands=(Command("cat secret/s.txt"),)), "Read(./secret/**)"),
        (Effects(commands=(Command("curl -s x.org"),)), "Bash(curl *)"),
        (Effects(commands=(Command("true"), Command("curl -s x.org"))), "Bash(curl *)"),
        (Effects(commands=(Command("curl -s x.org", is_elsewhere=True),)), "Bash(curl *)"),
        (Effects(commands=(Command("true"), Command("curl -s x.org", is_elsewhere=True))), "Bash(curl *)"),
        (Effects(commands=(Command("true"), Command("cat secret/s.txt", is_elsewhere=True))), "Read(./secret/**)"),
        (Effects(searches=("secret/s.txt",), writes=("secret/s.txt",)), "Read(./secret/**)"),
        (Effects(urls=("https://x.org/a",)), "WebFetch(domain:x.org)"),
        (Effects(agents=(Agent("reviewer"),)), "Agent(reviewer)"),
        (Effects(agents=(Agent("reviewer"),), writes=("a",)), "Agent"),
        (Effects(agents=(Agent("reviewer"),), writes=("a",)), "Agent(reviewer)"),
        (Effects(names=("install",)), "Foreign"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
async def test_deny_rule_holds_for_declared_effects(root: Path, told: Effects, rule: str, mode: PermissionMode) -> None:
    assert isinstance(await decided(root, told, mode=mode, deny=(rule,)), Deny)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (Effects(agents=(Agent("x"),), writes=("a",)), "Agent"),
        (Effects(agents=(Agent("x"),), writes=("a",)), "Agent(x)"),
        (Effects(agents=(Agent("x"),), commands=(Command("make"),)), "Agent(x)"),
        (Effects(agents=(Agent("x"),), is_complete=False), "Agent(x)"),
        (Effects(agents=(Agent("x", is_read_only=True),), urls=("https://x.org",)), "WebFetch(domain:x.org)"),
        (Effects(reads=("a",), urls=("https://x.org",)), "WebFetch(domain:x.org)"),
    ],
)
async def test_allow_rule_does_not_cover_further_effects(root: Path, told: Effects, rule: str) -> None:
    assert isinstance(await decided(root, told, allow=(rule,)), Ask)


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("lines", [("echo \\", "make"), ("echo 'a", "make'"), ("cat <<X", "make\nX")])
async def test_commands_that_run_into_each_other_are_denied(
    root: Path, lines: tuple[str, ...], is_elsewhere: bool
) -> None:
    told = Effects(commands=tuple(Command(line, is_elsewhere=is_elsewhere) for line in lines))

    for mode in MODES:
        assert isinstance(await decided(root, told, mode=mode, allow=("Foreign",)), Deny)


async def test_declared_search_asks_if_it_would_show_withheld_files(root: Path) -> None:
    told = Effects(searches=(".",))

    assert isinstance(await decided(root, told), Allow)
    assert isinstance(await decided(root, told, deny=("Read(./secret/**)",)), Ask)
    named = Effects(searches=(".",), searched_names="*.py")
    assert isinstance(await decided(root, named, deny=("Read(./secret/**)",)), Allow)


@pytest.mark.parametrize(
    ("told", "word"),
    [
        (Effects(), Allow),
        (Effects(reads=("a",)), Allow),
        (Effects(reads=("a",), urls=("https://x.org",)), Ask),
        (Effects(asks_web=True), Ask),
        (Effects(commands=(Command("ls"),)), Allow),
        (Effects(agents=(Agent("x"),)), Allow),
        (Effects(writes=("a",)), Deny),
        (Effects(deletes=("a",)), Deny),
        (Effects(commands=(Command("make"),)), Deny),
        (Effects(commands=(Command("ls", is_elsewhere=True),)), Deny),
        (Effects(commands=(Command("ls"), Command("make", is_elsewhere=True))), Deny),
        (Effects(commands=(Command("ls"), Command("make"))), Deny),
        (Effects(commands=(Command("ls"), Command("ls", "network"))), Deny),
        (Effects(reads=("a",), is_complete=False), Deny),
        (Effects(agents=(Agent("x"),), writes=("a",)), Deny),
    ],
)
async def test_plan_mode_lets_nothing_change(root: Path, told: Effects, word: type[Decision]) -> None:
    assert isinstance(await decided(root, told, mode="plan"), word)


@pytest.mark.parametrize(
    "told",
    [
        Effects(commands=(Command("ls"),), writes=("a",)),
        Effects(commands=(Command("ls"),), is_complete=False),
        Effects(commands=(Command("ls"),), urls=("https://x.org",)),
        Effects(commands=(Command("ls"), Command("ls", is_elsewhere=True))),
    ],
)
async def test_read_only_line_opens_nothing_else(root: Path, told: Effects) -> None:
    assert isinstance(await decided(root, told), Ask)


@pytest.mark.parametrize(
    ("told", "word"),
    [
        (Effects(writes=("a",)), Allow),
        (Effects(commands=(Command("mkdir d"),)), Allow),
        (Effects(commands=(Command("mkdir d"),), is_complete=False), Ask),
        (Effects(commands=(Command("mkdir d"),), asks_web=True), Ask),
        (Effects(reads=("a",), deletes=("a",)), Allow),
        (Effects(writes=("a",), urls=("https://x.org",)), Ask),
        (Effects(writes=("a",), commands=(Command("make"),)), Ask),
        (Effects(writes=("a",), is_complete=False), Ask),
    ],
)
async def test_accept_edits_covers_calls_that_only_change_files(
    root: Path, told: Effects, word: type[Decision]
) -> None:
    assert isinstance(await decided(root, told, mode="acceptEdits"), word)
    if not told.commands:
        assert isinstance(await decided(root, told, allow=("Edit",)), word)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (Effects(writes=("a",)), "Edit(/a)"),
        (Effects(urls=("https://x.org",)), "WebFetch(domain:x.org)"),
        (Effects(commands=(Command("make"),)), "Foreign"),
        (Effects(commands=(Command("make", is_elsewhere=True),), names=("run",)), None),
        (Effects(writes=("a",), asks_web=True, is_for_once=True), None),
        (Effects(is_complete=False), "Foreign"),
        (Effects(names=("*",), is_complete=False), None),
    ],
)
async def test_offered_rule_allows_the_same_and_no_more(root: Path, told: Effects, rule: str | None) -> None:
    decision = await decided(root, told)

    assert isinstance(decision, Ask)
    assert decision.rule == rule
    if rule is not None:
        assert isinstance(await decided(root, told, allow=(rule,)), Allow)
