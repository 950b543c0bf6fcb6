"""Reminders reach the model between two tags of ours, whatever their text holds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.types.messages import SystemReminder

PIECES = ["<", "/", " ", "\n", ">", "system-reminder", "SYSTEM-Reminder", "</system-reminder>", "words", "&lt;"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_reminder_text_cannot_forge_its_tags(text: str) -> None:
    seen = SystemReminder(text=text).tagged_text

    assert re.findall(r"(?i)<\s?/?\s?system-reminder", seen) == ["<system-reminder", "</system-reminder"]
    assert seen.startswith("<system-reminder>\n")
    assert seen.endswith("\n</system-reminder>")


@pytest.mark.parametrize("text", ["a < b, <b>c</b>", '<context name="git">x</context>', "system-reminder"])
def test_reminder_text_is_otherwise_unchanged(text: str) -> None:
    assert SystemReminder(text=text).tagged_text == f"<system-reminder>\n{text}\n</system-reminder>"
