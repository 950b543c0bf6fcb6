import tomllib
from pathlib import Path

import pytest

from panpan.config.keys import item_lines
from panpan.config.settings import Settings
from panpan.config.settings_file import WrittenRule, parse_settings
from panpan.config.settings_writer import RuleFile
from panpan.errors import ConfigError

TEXT = """[permission]
allow = ["Bash(a)", "Bash(b)",
    # a comment, with [brackets]
    { rule = "Bash(c *)", match = [
        "c d",
      ], not_match = ["e"] },
    "Bash(f)"
]
deny = []

[[permission.ask]]
rule = "Bash(g)"

[[permission.ask]]
rule = "Bash(h)"
match = ["h"]
"""


def test_written_rule_has_its_line_and_examples() -> None:
    source = parse_settings(TEXT.encode(), Path("/f"), "user")

    assert source.written_rules("allow") == (
        WrittenRule("Bash(a)", "/f:2"),
        WrittenRule("Bash(b)", "/f:2"),
        WrittenRule("Bash(c *)", "/f:4", ["c d"], ["e"]),
        WrittenRule("Bash(f)", "/f:7"),
    )
    assert source.written_rules("ask") == (
        WrittenRule("Bash(g)", "/f:11"),
        WrittenRule("Bash(h)", "/f:14", ["h"]),
    )
    assert source.written_rules("deny") == ()
    assert source.rules("allow") == ("Bash(a)", "Bash(b)", "Bash(c *)", "Bash(f)")


def test_settings_hold_the_texts_of_rules_alone() -> None:
    settings = Settings.model_validate(tomllib.loads(TEXT))

    assert settings.permission.allow == ("Bash(a)", "Bash(b)", "Bash(c *)", "Bash(f)")
    assert settings.permission.ask == ("Bash(g)", "Bash(h)")


@pytest.mark.parametrize(
    "item",
    [
        '{match = ["a"]}',
        "{rule = 3}",
        '{rule = ["Bash(a)"]}',
        '{rule = "Bash(a)", match = "a"}',
        '{rule = "Bash(a)", match = [1]}',
        '{rule = "Bash(a)", not_match = {}}',
        '{rule = "Bash(a)", matches = ["a"]}',
        "{}",
    ],
)
def test_rule_of_another_form_is_an_error_at_its_line(item: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(f'permission.allow = [\n"Bash(a)",\n{item},\n]'.encode(), Path("/f"), "user")

    assert str(caught.value) == (
        '/f:3: permission.allow is not a rule; write one in quotes, or {rule = "…", match = ["…"], not_match = ["…"]}'
    )


@pytest.mark.parametrize(
    ("item", "fault"), [("3", "a whole number; write a text in quotes"), ('""', "empty; write something or remove it")]
)
def test_item_that_is_no_rule_is_an_error_at_its_line(item: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=rf"^/f:2: permission\.deny has an item that is {fault}"):
        parse_settings(f'permission.deny = ["Bash(a)",\n{item}]'.encode(), Path("/f"), "user")


def test_rule_is_added_behind_rules_with_examples(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(TEXT)

    RuleFile(file).save("Bash(new)")
    RuleFile(file).save("Bash(c *)")  # it is there

    source = parse_settings(file.read_bytes(), file, "local")
    assert source.rules("allow") == ("Bash(a)", "Bash(b)", "Bash(c *)", "Bash(f)", "Bash(new)")
    assert source.written_rules("allow")[2] == WrittenRule("Bash(c *)", f"{file}:4", ["c d"], ["e"])


def test_array_items_are_found_on_their_lines() -> None:
    text = 'a = [1, [2,\n3],\n"x", {b = [4,\n5]}, # end\n6,\n]\nc = []\nd = 1\n[[t]]\n[[t]]\n'

    assert item_lines(text) == {("a",): [1, 1, 3, 3, 5], ("a", "b"): [3, 4], ("t",): [9, 10]}
