import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.web.page_text import MAX_ELEMENTS, page_text
from panpan.capabilities.web.page_tree import facts_of, parse_html
from tests.capabilities.web.web_place import PARAGRAPH

URL = "https://example.org/a/b"


def told(body: str, *, head: str = "", wants_all: bool = False) -> str:
    page = f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>"
    return page_text(page, URL, wants_all=wants_all).markdown


def test_article_comes_without_its_surroundings() -> None:
    page = f"<nav>Menu</nav><div id=side>Ads</div><article><h1>Seeds</h1>{PARAGRAPH * 6}</article><footer>Us</footer>"

    text = page_text(page, URL, wants_all=False)

    assert text.extent == "article"
    assert "The seed of every run" in text.markdown
    assert "Menu" not in text.markdown
    assert "Us" not in text.markdown


@pytest.mark.parametrize("words", ["The seed was 1.", PARAGRAPH * 6])
def test_navigation_is_removed_and_footnotes_are_kept(words: str) -> None:
    note = "<aside class=footnote>A footnote.</aside>"

    text = told(f"<nav>Menu</nav><main><p>{words}</p>{note}</main><aside>Ads</aside><footer>Us</footer>")

    assert "A footnote." in text
    assert not any(word in text for word in ("Menu", "Ads", "Us"))


@pytest.mark.parametrize(
    "part",
    [
        "<table><tr><th>lr</th><td>0.1</td></tr></table>",
        "<pre>pip install x==1.2</pre>",
        "<div class='comment sidebar'><pre><code>make data</code></pre></div>",
    ],
)
def test_table_or_listing_outside_the_article_is_kept(part: str) -> None:
    text = told(f"<div class=post>{PARAGRAPH * 6}</div><div class='footer-box'>{part}</div>")

    assert any(word in text for word in ("0.1", "pip install x==1.2", "make data"))


def test_main_part_of_a_page_without_an_article_is_kept() -> None:
    items = "".join(f"<div><a href='/p{number}'>Paper {number}</a></div>" for number in range(40))

    text = told(f"<div>{PARAGRAPH}</div><div class=list>{items}</div>")

    assert all(f"[Paper {number}](https://example.org/p{number})" in text for number in range(40))


def test_whole_page_comes_on_request() -> None:
    page = f"<nav>Menu</nav><article>{PARAGRAPH * 6}</article>"

    assert "Menu" in told(page, wants_all=True)


def test_links_are_complete_and_dead_ones_removed() -> None:
    text = told(
        "<p><a href='c'>one</a> <a href='//x.org/d'>two</a> <a href='javascript:f()'>three</a> "
        "<img src='data:image/png;base64,AAAA' alt='a plot'> <img src='/p.png' alt='p'></p>",
        head="<base href='https://other.net/base/'>",
    )

    assert "[one](https://other.net/base/c)" in text
    assert "[two](https://x.org/d)" in text
    assert "three" in text
    assert "a plot" in text
    assert "![p](https://other.net/p.png)" in text
    assert "javascript" not in text
    assert "base64" not in text


def test_listing_is_kept() -> None:
    code = "def f():\n    return 1\n\n\n\ndef g():\n\treturn  2"

    assert code in told(f"<p>{PARAGRAPH}</p><pre><code class='language-python'>{code}</code></pre>")


def test_invisible_text_is_not_read() -> None:
    text = told(
        "<p>seen</p><p style='color:red; display : none'>one</p><p hidden>two</p><script>three</script>"
        "<style>four</style><template>five</template><noscript>six</noscript><!-- seven -->"
    )

    assert text == "seen"


def test_formulas_become_tex() -> None:
    note = "<annotation encoding='application/x-tex'>y_1</annotation>"
    text = told(f"<p>with <math alttext='x^2'><mi>x</mi></math> and <math><mi>y</mi>{note}</math>.</p>")

    assert text == "with $x^2$ and $y_1$."


@pytest.mark.parametrize(
    "sentence",
    [
        "本研究はすべての乱数の種を固定し、同じ環境で再現できるようにした。",
        "我们固定了所有随机种子、公布了全部代码和数据、以便他人复现。",
    ],
)
def test_articles_in_scripts_without_blanks_are_found(sentence: str) -> None:
    paragraphs = "".join(f"<p>{sentence * 3}</p>" for _ in range(5))

    text = told(f"<div class=menu><a href=/>トップ</a></div><div class=content><h1>題</h1>{paragraphs}</div>")

    assert text.count(sentence) == 15


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        (" \n", ""),
        ("<!-- x -->", ""),
        ("plain words", "plain words"),
        ("<p>a<p>b<td>c</b></i>", "a\n\nb\n\nc"),
        ("<?xml version='1.0' encoding='utf-16'?><html><body>x</body></html>", "x"),
        ("\0\ud800x", "�?x"),
        (f"{'<div>' * 30_000}deep{'</div>' * 30_000}<p>after</p>", "deep after"),
        ("<script>" * 9_000 + "x", ""),
    ],
)
def test_broken_pages_are_read_as_far_as_possible(page: str, text: str) -> None:
    assert " ".join(page_text(page, URL, wants_all=False).markdown.split()) == " ".join(text.split())


def test_huge_page_is_read_whole_without_an_article_search() -> None:
    text = page_text("<p>word</p>" * (MAX_ELEMENTS + 1), URL, wants_all=False)

    assert text.extent == "main"
    assert text.markdown.count("word") == MAX_ELEMENTS + 1


BROKEN = (
    "<p>", "</div>", "<td>", "<a href='[//['>", "<math>", "<base href='x:'>", "x", "&#0;", "<svg><title>t</title>",
    "<select><option>", "<body hidden>", "<html style='display:none'>", "<script type='application/ld+json'>[[",
    "</script>", "<input type=password>",
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(BROKEN), max_size=25))
def test_broken_page_has_text(parts: list[str]) -> None:
    page = page_text("".join(parts), URL, wants_all=False)

    assert isinstance(page.markdown, str)


def test_page_has_its_title_and_its_demands() -> None:
    facts = facts_of(parse_html(
        "<html><head><title> A \n title </title><script type='application/ld+json'>"
        '{"@graph": [{"@type": "NewsArticle", "isAccessibleForFree": "False"}]}</script></head>'
        "<body><svg><title>icon</title></svg><noscript>Please <b>enable</b> JavaScript</noscript><input type=PASSWORD>"
        "<p>words</p></body></html>"
    ))  # fmt: skip

    assert (facts.title, facts.text, facts.scripts) == ("A title", "words", 1)
    assert (facts.noscript, facts.has_password, facts.is_for_subscribers) == ("Please enable JavaScript", True, True)
