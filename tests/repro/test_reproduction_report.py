"""The report of a reproduction: what it says, and that texts of others do nothing in it."""

from html.parser import HTMLParser

import pytest

from panpan.repro.checking.check_table import measured_text
from panpan.repro.checking.results import CheckReport
from panpan.repro.journey.report import (
    VERDICTS,
    ReproductionReport,
    Told,
    markdown_text,
)
from panpan.repro.journey.report_html import html_page
from tests.repro.judged_claims import EVERY_VERDICT, check_of, judged

HOSTILE = "<script>alert(1)</script>|[x](javascript:y)`\x1b[31m\u202e"
TOLD = Told(
    paper="/home/ada/papers/toys.pdf",
    claims_from="read from toys.pdf",
    model="small",
    explanation="table-1/accuracy: the code divides by 40.",
    usd=0.25,
)


class _Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def test_conclusion_counts_every_claim_once() -> None:
    report = ReproductionReport(EVERY_VERDICT)

    assert report.conclusion == "2 of 5 numbers hold; 1 deviates; 1 is not reproducible; 1 was not run."
    assert [number for _, number in report.counts()] == ["1"] * 5


def test_check_without_claims_says_so() -> None:
    assert "nothing was checked" in ReproductionReport(CheckReport()).conclusion
    assert "nothing was checked" in markdown_text(ReproductionReport(CheckReport()))


@pytest.mark.parametrize("form", [markdown_text, lambda report: _Page(html_page(report)).text])
def test_report_has_numbers_reasons_hints_data_and_commands(form: object) -> None:
    assert callable(form)
    text = form(ReproductionReport(EVERY_VERDICT, TOLD)).replace("\\", "")

    for one in EVERY_VERDICT.judgements:
        assert one.reason in text
        assert one.verdict in text
        assert one.claim.value in text
    for words in ("of seed 1, not 0", "34/39 instead of 34/40", "3.38 to 3.52, 3 runs", "data/toys.csv", "2.05 kB",
                  "its SHA-256 is not the stated one", "python3 experiment.py --seed {seed}", "Python 3.11.9",
                  "0, 1, 2", "experiment.py", "bubblewrap", "0123456789abcdef"):  # fmt: skip
        assert words in text


@pytest.mark.parametrize("form", [markdown_text, html_page])
def test_words_of_a_model_are_marked(form: object) -> None:
    assert callable(form)
    with_words, without = form(ReproductionReport(EVERY_VERDICT, TOLD)), form(ReproductionReport(EVERY_VERDICT))

    assert with_words.index("A model wrote this") < with_words.index("divides by 40")
    assert "A model wrote this" not in without


@pytest.mark.parametrize("form", [markdown_text, html_page])
def test_report_names_no_folder_of_the_user(form: object) -> None:
    assert callable(form)

    assert "/home/ada" not in form(ReproductionReport(EVERY_VERDICT, TOLD))


def test_texts_of_others_are_escaped_in_html() -> None:
    check = check_of(judged(HOSTILE, HOSTILE, "deviates", HOSTILE, (1.0,), (HOSTILE,)))
    check = check.model_copy(update={"title": HOSTILE, "written_here": (HOSTILE,)})
    told = Told(paper=HOSTILE, claims_from=HOSTILE, model=HOSTILE, explanation=HOSTILE, preparation=HOSTILE)
    page = html_page(ReproductionReport(check, told))

    parsed = _Page(page)
    assert not {"script", "a", "img", "link", "iframe"} & set(parsed.tags)
    assert not [name for name in parsed.attributes if name.startswith("on")]
    assert "alert(1)" in parsed.text
    assert not {"\x1b", "\u202e"} & set(page)
    assert "default-src 'none'" in page


def test_texts_of_others_are_escaped_in_markdown() -> None:
    check = check_of(judged(HOSTILE, HOSTILE, "deviates", f"{HOSTILE}\n# head", (1.0,), (HOSTILE,)))
    text = markdown_text(ReproductionReport(check, Told(explanation=f"{HOSTILE}\n# head")))

    assert "<script" not in text
    assert "\n# head" not in text
    assert "[x" not in text.replace("\\[", "")
    rows = [line for line in text.splitlines() if line.startswith("| Table 1")]
    assert [line.replace("\\|", "").count("|") for line in rows] == [6]


@pytest.mark.parametrize(
    ("value", "numbers", "shown"),
    [
        ("83.1", (83.1,), "83.1"),
        ("83.1", (83.12345,), "83.123"),
        ("83", (83.0, 84.5), "83 to 84.5, 2 runs"),
        ("1e-3", (0.0012345678,), "0.00123"),
        ("3.50", (3.5,), "3.50"),
        ("120", (120.0,), "120"),
        ("0.5", (), ""),
    ],
)
def test_measured_number_has_two_digits_more(value: str, numbers: tuple[float, ...], shown: str) -> None:
    assert measured_text(judged("x", value, "deviates", "", numbers)) == shown


def test_every_verdict_has_a_meaning_in_the_report() -> None:
    text = markdown_text(ReproductionReport(EVERY_VERDICT))

    assert all(f"**{verdict}**: {meaning}" in text for verdict, meaning in VERDICTS.items())
