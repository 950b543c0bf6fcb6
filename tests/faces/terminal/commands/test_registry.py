import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.app import slash_commands
from panpan.faces.terminal.commands.registry import all_commands, find, unknown
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in

PROMISED = [
    *("help", "clear", "compact", "context", "cost", "usage", "model", "effort", "resume", "rename", "rewind"),
    *("fork", "export", "init", "memory", "agents", "mcp", "hooks", "permissions", "config", "doctor", "review"),
    *(
        "commit",
        "copy",
        "diff",
        "btw",
        "feedback",
        "bug",
        "tasks",
        "todos",
        "plan",
        "status",
        "theme",
        "vim",
        "statusline",
        "add-dir",
        "exit",
        "quit",
        "q",
    ),
]


@pytest.mark.parametrize("name", PROMISED)
def test_registry_has_the_commands_that_people_know(name: str) -> None:
    assert find(all_commands(slash_commands()), f"/{name}") is not None


def test_command_names_are_unique() -> None:
    names = [name for command in all_commands(slash_commands()) for name in (command.name, *command.aliases)]

    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("/export", "export", ""),
        ("/export  my notes.md ", "export", "my notes.md"),
        ("  /EXPORT notes.md", "export", "notes.md"),
        ("/usage", "cost", ""),
        ("/review the tests\nand the docs", "review", "the tests\nand the docs"),
        ("/review\nthe tests", "review", "the tests"),
        ("/model\tsonnet", "model", "sonnet"),
    ],
)
def test_line_is_a_command_and_what_stands_behind_it(line: str, name: str, rest: str) -> None:
    found = find(all_commands(slash_commands()), line)

    assert found is not None
    assert (found[0].name, found[1]) == (name, rest)


@pytest.mark.parametrize(
    ("line", "names"), [("/hlep", ["/help"]), ("/reusme 12", ["/resume"]), ("/permission", ["/permissions"])]
)
def test_wrong_name_brings_the_nearest_ones(line: str, names: list[str]) -> None:
    assert find(all_commands(slash_commands()), line) is None
    assert all(name in unknown(all_commands(slash_commands()), line) for name in names)


def test_name_that_is_like_none_brings_the_way_to_the_list() -> None:
    assert unknown(all_commands(slash_commands()), "/zzzzzz") == "there is no command /zzzzzz; /help lists the commands"


@pytest.mark.parametrize("line", ["/nosuch", "/signin", "/foo", "/x", "/hq"])
def test_unknown_suggests_no_name_that_is_not_like_it(line: str) -> None:
    assert unknown(all_commands(slash_commands()), line).endswith("; /help lists the commands")


@given(st.text(string.ascii_lowercase, min_size=1, max_size=8))
def test_unknown_never_suggests_one_letter(name: str) -> None:
    suggested = re.findall(r"/(\w+)", unknown(all_commands(slash_commands()), f"/{name}").partition("; ")[2])

    assert all(len(one) > 1 for one in suggested)


@given(st.text())
def test_unknown_command_has_a_harmless_answer_for_any_line(typed: str) -> None:
    commands = all_commands(slash_commands())

    if find(commands, f"/{typed}") is None:
        sentence = unknown(commands, f"/{typed}")
        assert "\n" not in sentence
        assert "\x1b" not in sentence


@pytest.mark.parametrize("width", [40, 80, 200])
async def test_help_lists_every_command_and_the_keys_within_the_width(tmp_path: Path, width: int) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", width=width), "/help")

    assert all(f"/{command.name}" in terminal.text for command in all_commands(slash_commands()))
    assert all(key in terminal.text for key in ("Esc", "Ctrl+C", "Ctrl+O", "Shift+Tab", "Alt+Enter", "@"))
    assert terminal.widest <= width


@pytest.mark.parametrize(("line", "titles"), [("/help", ["Commands", "Keys"]), ("/help keys", ["Keys", "Commands"])])
async def test_help_begins_with_what_is_asked_for(tmp_path: Path, line: str, titles: list[str]) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), line)

    assert [row for row in terminal.text.split("\n") if row in titles] == titles


async def test_columns_of_help_are_aligned(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", width=120), "/help")

    rows = {row.split()[0]: row for row in terminal.text.split("\n") if row.startswith("  /")}
    assert rows["/exit"].index("Leave panpan") == rows["/clear"].index("Begin a new session")
