import re

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from panpan.session.export.as_markdown import fence_code, markdown_text
from panpan.types.content import Base64Source, ImageBlock
from panpan.types.messages import UserMessage
from tests.session.export.export_fixtures import (
    call,
    everywhere,
    hostile_texts,
    reply,
    result,
    transcript,
)

OURS = re.compile(r"<details>\n<summary>[^<>\n]*</summary>\n?|</details>\n?")


def top_level(text: str) -> list[str]:
    """The blocks of a document, those of quotations left out: headings with their text, the rest by its kind."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [
        f"{token.tag} {tokens[number + 1].content}" if token.type == "heading_open" else token.type
        for number, token in enumerate(tokens)
        if token.level == 0 and token.nesting >= 0
    ]


def test_markdown_conversation_reads_from_top_to_bottom() -> None:
    text = markdown_text(
        transcript(
            UserMessage.of("why does it fail?"),
            reply("I look.", call(command="pytest -q")),
            result("1 failed"),
            reply("The *sign* is wrong:\n\n```python\nx = -1\n```"),
            title="The failing test",
        )
    )

    assert text.startswith("# The failing test\n")
    assert [line for line in text.split("\n") if line.startswith("## ")] == ["## User", "## Assistant", "## Assistant"]
    positions = [text.index(part) for part in ("why does it fail?", "I look.", "pytest -q", "1 failed", "> The *sign*")]
    assert positions == sorted(positions)
    assert "> ```python\n> x = -1\n> ```" in text


def test_call_and_its_result_are_folded_together() -> None:
    text = markdown_text(transcript(reply(call(command="ls")), result("a.py")))

    folded = text[text.index("<details>") : text.index("</details>")]

    assert "<summary>Bash ls — done</summary>" in folded
    assert "a.py" in folded


@pytest.mark.parametrize(("results", "mark"), [([result("no", is_error=True)], "failed"), ([], "not answered")])
def test_folded_call_shows_its_outcome(results: list, mark: str) -> None:
    assert f"<summary>Bash ls — {mark}</summary>" in markdown_text(transcript(reply(call(command="ls")), *results))


def test_diff_is_shown_as_a_diff() -> None:
    assert "```diff\n-a\n+b\n```" in markdown_text(transcript(reply(call()), result("changed", diff="-a\n+b\n")))


def test_picture_is_named_and_not_included() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/png", data="QUJD"))

    text = markdown_text(transcript(UserMessage(content=(picture,))))

    assert "picture, image/png, 3 bytes" in text
    assert "QUJD" not in text


def test_markdown_shows_html_as_written() -> None:
    text = markdown_text(transcript(reply("make it a <b>bold</b> one")))

    assert "```text\nmake it a <b>bold</b> one\n```" in text


def test_code_with_angle_brackets_stays_markdown() -> None:
    assert "> use `List<int>` here" in markdown_text(transcript(reply("use `List<int>` here")))


@given(hostile_texts)
def test_markdown_text_stays_in_its_place(said: str) -> None:
    tame, hostile = top_level(markdown_text(everywhere("tame"))), top_level(markdown_text(everywhere(said)))

    assert [block for block in hostile if block.startswith("h2")] == [block for block in tame if block.startswith("h2")]
    assert hostile.count("html_block") == tame.count("html_block")
    assert len([block for block in hostile if block.startswith("h1")]) == 1


@given(hostile_texts)
def test_markdown_has_only_our_html_and_loads_nothing(said: str) -> None:
    parser = MarkdownIt("commonmark")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    env: dict = {}
    blocks = parser.parse(markdown_text(everywhere(said)), env)
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]

    assert all(OURS.fullmatch(token.content) for token in tokens if token.type == "html_block")
    assert {"html_inline", "image"}.isdisjoint(token.type for token in tokens)
    assert not env.get("references")
    assert not any(str(token.attrs.get("href", "")).lower().startswith("javascript") for token in tokens)


@given(hostile_texts)
def test_markdown_does_not_drive_a_terminal(said: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", markdown_text(everywhere(said)))


@given(hostile_texts)
def test_fence_ends_where_the_export_ends_it(said: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"{fence_code(said)}\n\nbehind it")

    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
