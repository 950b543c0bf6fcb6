import re
from html.parser import HTMLParser

import pytest
from hypothesis import given

from panpan.session.export.as_html import html_text
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

LOADING = {"script", "link", "iframe", "object", "embed", "img", "audio", "video", "source", "base", "form", "svg"}
VOID = {"meta", "br", "hr", "img"}


class Page(HTMLParser):
    """Contents of a page, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.is_balanced = True
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:  # as in <hr />
            self.is_balanced = self.is_balanced and bool(self.open) and self.open.pop() == tag


def test_html_page_is_self_contained_and_runs_nothing() -> None:
    text = html_text(transcript(UserMessage.of("hello"), reply("**hello**")))

    assert "default-src 'none'" in text
    assert LOADING.isdisjoint(Page(text).tags)
    assert "<strong>hello</strong>" in text


def test_call_and_result_are_folded_together() -> None:
    text = html_text(transcript(reply(call(command="ls")), result("a.py")))

    folded = text[text.index("<details>") : text.index("</details>")]

    assert "Bash ls — done" in folded
    assert "a.py" in folded


def test_diff_lines_have_their_colours() -> None:
    text = html_text(transcript(reply(call()), result("ok", diff="@@ -1 +1 @@\n-<old>\n+new\n same\n")))

    assert '<span class="removed">-&lt;old&gt;</span>' in text
    assert '<span class="added">+new</span>' in text
    assert '<span class="hunk">@@ -1 +1 @@</span>' in text
    assert "\n same</code>" in text


def test_picture_is_inside_the_page() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/png", data="QUJD"))

    assert 'src="data:image/png;base64,QUJD"' in html_text(transcript(UserMessage(content=(picture,))))


@pytest.mark.parametrize(
    ("media_type", "data"),
    [
        ("image/svg+xml", "QUJD"),
        ("text/html", "QUJD"),
        ("image/png", 'QUJD" onerror="alert(1)'),
        ('image/png"', "QUJD"),
    ],
)
def test_unsafe_picture_is_only_named(media_type: str, data: str) -> None:
    picture = ImageBlock(source=Base64Source(media_type=media_type, data=data))

    page = Page(html_text(transcript(UserMessage(content=(picture,)))))

    assert "img" not in page.tags
    assert "onerror" not in dict(page.attributes)


def test_picture_named_by_the_model_is_not_loaded() -> None:
    text = html_text(transcript(reply("![here](http://evil.example/track.png)")))

    assert "img" not in Page(text).tags


@given(hostile_texts)
def test_html_text_adds_no_element_that_loads_or_runs(said: str) -> None:
    page = Page(html_text(everywhere(said)))

    assert LOADING.isdisjoint(page.tags)
    assert page.is_balanced
    assert page.open == []
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [value for _, value in page.attributes if value.strip().lower().startswith(("javascript:", "data:"))]
    assert page.tags.count("article") == 3
    assert page.tags.count("style") == 1


@given(hostile_texts)
def test_html_page_does_not_drive_a_terminal(said: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", html_text(everywhere(said)))
