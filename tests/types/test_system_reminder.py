"""Reminders reach the model between two tags of ours, whatever their text holds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.types.messages import SystemReminder

PIECES = ["<", "/", " ", "\n", ">", "system-reminder", "SYSTEM-Reminder", "</system-reminder>", "words", "&lt;"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_no_text_ends_the_tags_or_begins_others(text: str) -> None:
    seen = SystemReminder(text=text).tagged_text

    assert re.findall(r"(?i)<\s?/?\s?system-reminder", seen) == ["<system-reminder", "</system-reminder"]
    assert seen.startswith("<system-reminder>\n")
    assert seen.endswith("\n</system-reminder>")


@pytest.mark.parametrize("text", ["a < b, <b>c</b>", '<context name="git">x</context>', "system-reminder"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert SystemReminder(text=text).tagged_text == f"<system-reminder>\n{text}\n</system-reminder>"
