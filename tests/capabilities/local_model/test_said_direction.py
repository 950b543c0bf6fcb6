"""A fault of the small model that is mended: it takes the new word for the old one where the new one is named first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.local_model.call_repair import fix_direction
from panpan.types.content import ToolUseBlock


def edit(old: object, new: object) -> ToolUseBlock:
    return ToolUseBlock(id="c1", name="Edit", input={"file_path": "a.txt", "old_string": old, "new_string": new})


def rename(old: str, new: str) -> ToolUseBlock:
    return ToolUseBlock(id="c1", name="Rename", input={"old_name": old, "new_name": new, "file_paths": ["a.py"]})


@pytest.mark.parametrize(
    "words",
    [
        "use tea instead of coffee in a.txt",
        "a.txt should say tea rather than coffee",
        "a.txt: tea, not coffee",
        "it has to be 'tea', not 'coffee'",
        "put `tea` in place of the `coffee` in a.txt",
        "Substitute tea for coffee in a.txt",
    ],
)
def test_call_against_the_users_words_is_reversed(words: str) -> None:
    assert fix_direction(edit("tea", "coffee"), words) == edit("coffee", "tea")
    assert fix_direction(rename("tea", "coffee"), words) == rename("coffee", "tea")


@pytest.mark.parametrize(
    "words",
    [
        "replace tea by coffee",
        "replace tea with coffee, not with cocoa",
        "use coffee instead of tea",
        "swap tea for coffee",
        "steam instead of coffee",
        "use tea instead of coffees",
        "it is not tea but coffee",
    ],
)
def test_call_that_follows_the_users_words_is_left_alone(words: str) -> None:
    assert fix_direction(edit("tea", "coffee"), words) == edit("tea", "coffee")


@given(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8), st.text(max_size=40))
def test_call_is_reversed_at_most_once(old: str, new: str, words: str) -> None:
    turned = fix_direction(edit(old, new), words)

    assert turned in (edit(old, new), edit(new, old))
    assert set(turned.input) == {"file_path", "old_string", "new_string"}


def test_other_calls_and_arguments_are_left_alone() -> None:
    bash = ToolUseBlock(id="c1", name="Bash", input={"command": "tea instead of coffee"})

    assert fix_direction(bash, "tea instead of coffee") == bash
    assert fix_direction(edit(["tea"], "coffee"), "tea instead of coffee") == edit(["tea"], "coffee")
    assert fix_direction(edit("", ""), "not not") == edit("", "")
