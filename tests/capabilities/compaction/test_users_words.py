"""The user's words survive compaction unchanged."""

import pytest

from panpan.capabilities.compaction.summary import choose_quotes, user_quotes
from panpan.types.content import TextBlock
from panpan.types.messages import Message, UserMessage
from tests.capabilities.compaction.conversations import answered, replied, used


def quotes(messages: list[Message], most_chars: int = 10_000) -> list[str]:
    return [one.text for one in choose_quotes(list(user_quotes(messages, {"AskUserQuestion"})), most_chars)]


@pytest.mark.parametrize(
    "text",
    [
        "# use tabs",
        "Remember that it is teal",
        "from now on, write tests",
        "ab jetzt auf Deutsch",
        "never push",
        "don't forget the docs",
        "请记住用制表符",
        "Запомни: teal",
    ],
)
def test_note_to_remember_is_quoted_in_any_room(text: str) -> None:
    messages: list[Message] = [UserMessage.of("first"), UserMessage.of(text), UserMessage.of("last")]

    assert quotes(messages, 0) == [text]


@pytest.mark.parametrize(
    "code", ["# a comment\nx = 1", "#include <stdio.h>", "#!/bin/sh\nls", "## Heading\n\n# Another"]
)
def test_pasted_code_is_not_to_be_remembered(code: str) -> None:
    messages: list[Message] = [
        UserMessage.of("first"),
        UserMessage.of(f"why does this fail?\n\n{code}"),
        UserMessage.of(code if not code.startswith("# ") else "last"),
    ]

    assert quotes(messages, 0) == []


def test_long_note_is_quoted_at_its_beginning() -> None:
    text = "# use tabs\n\n# and a comment\n" + "x" * 9_000

    assert quotes([UserMessage.of(text)], 0) == ["# use tabs"]


def test_first_and_newest_prompts_are_quoted_in_order() -> None:
    messages: list[Message] = [UserMessage.of(f"{number} " + "w" * 98) for number in range(10)]

    assert [text[0] for text in quotes(messages, 320)] == ["0", "8", "9"]


def test_attached_files_are_not_quoted() -> None:
    message = UserMessage(content=(TextBlock(text="look at @a.py"), TextBlock(text="<attached_file>…")))

    assert quotes([message]) == ["look at @a.py"]


def test_answers_to_questions_are_words_of_the_user() -> None:
    asked = [replied("", used("1", "AskUserQuestion")), answered("1", "Which colour? teal")]

    assert quotes([*asked], 0) == ["(asked) Which colour? teal"]


def test_long_text_keeps_its_paragraphs_to_remember() -> None:
    text = "pasted log\n\n" + "x" * 9_000 + "\n\nAlways run the linter.\n\n" + "y" * 9_000

    assert quotes([UserMessage.of(text)], 0) == ["Always run the linter."]


def test_user_command_is_quoted_without_its_output() -> None:
    message = UserMessage.of(
        "<user_command>\n<command>\nls\n</command>\n<output>\nalways here\n</output>\n</user_command>\n"
        "The user ran this command; they ask for nothing with it alone."
    )

    assert quotes([message]) == ["! ls"]
