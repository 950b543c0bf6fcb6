"""A compaction in what is exported for people, whichever the form."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from panpan.session.export.as_html import html_text
from panpan.session.export.as_markdown import markdown_text
from panpan.session.export.transcript import Transcript
from tests.session.export.export_fixtures import compaction, reply, transcript


@pytest.mark.parametrize("text_of", [html_text, markdown_text], ids=["html", "markdown"])
def test_export_marks_a_compaction_in_place_with_its_summary(
    text_of: Callable[[Transcript], str],
) -> None:
    first, last = reply("first words"), reply("last words")
    whole = replace(transcript(first, last), compactions=[compaction(first, "a summary of it")])

    text = text_of(whole)

    marked = "conversation compacted, the context window was nearly full: about 120,000 → 20,000 tokens"
    assert text.index("first words") < text.index(marked) < text.index("a summary of it") < text.index("last words")
    assert "summarised by the model: 7 messages" in text
    assert "/compact undo" not in text
