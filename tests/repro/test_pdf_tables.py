"""Tables of PDFs: rows, columns and numbers are where they are on the page."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.documents.read_words import Rule, Word, WordPage, WordPages, read_words
from panpan.errors import ToolError
from panpan.repro.papers.paper_table import PaperTable
from panpan.repro.papers.pdf.tables import pdf_tables
from tests.repro.pdf_writer import Page, encrypted, pdf_of, scan

LEFT, RIGHT = 60, 320
"""Left edges of two columns of a page."""
COLUMN = 230


def tables_of(*pages: Page) -> tuple[PaperTable, ...]:
    return pdf_tables(read_words(pdf_of(*pages), "paper.pdf")).tables


def numbers_of(table: PaperTable) -> dict[str, tuple[str, ...]]:
    return {row.label: row.cells for row in table.rows}


def two_columns() -> Page:
    page = Page()
    for x in (LEFT, RIGHT):
        page.prose(x, 80, COLUMN, 10)
        page.prose(x, 500, COLUMN, 10)
    return page


def test_table_in_a_column_is_read_beside_text() -> None:
    page = Page()
    page.prose(LEFT, 80, COLUMN, 8)
    page.text(LEFT, 210, "Table 1: Accuracy on the test set.", 9)
    page.table([70, 170, 230], 228, [["Method", "Acc.", "F1"], ["Mean", "81.2", "80.0"], ["Huber", "85.9", "84.1"]])
    page.prose(LEFT, 300, COLUMN, 8)
    page.prose(RIGHT, 80, COLUMN, 30)
    (table,) = tables_of(page)
    assert (table.name, table.page, table.columns) == ("Table 1", 1, ("Acc.", "F1"))
    assert table.caption == "Table 1: Accuracy on the test set."
    assert numbers_of(table) == {"Mean": ("81.2", "80.0"), "Huber": ("85.9", "84.1")}
    assert table.rows[0].quote == "Mean | 81.2 | 80.0"


def test_tables_side_by_side_stay_apart() -> None:
    page = two_columns()
    for x, number, value in ((LEFT, 1, "1.5"), (RIGHT, 2, "2.5")):
        page.text(x, 250, f"Table {number}. Errors.", 9)
        page.table([x + 10, x + 120], 268, [["Method", "Error"], ["Mean", value], ["Huber", "9.9"]])
    tables = tables_of(page)
    assert [table.name for table in tables] == ["Table 1", "Table 2"]
    assert [numbers_of(table)["Mean"] for table in tables] == [("1.5",), ("2.5",)]


def test_table_over_both_columns_is_one_table() -> None:
    page = two_columns()
    page.text(
        LEFT, 250, "Table 3: A wide table over both columns of the page, with the numbers of all methods in it.", 9
    )
    heads = ["Method", *"ABCDEF"]
    rows = [[name, *(f"{at}.{number}" for number in range(6))] for at, name in enumerate(("Alpha", "Beta", "Gamma"), 1)]
    page.table([70, 170, 240, 310, 380, 450, 520], 270, [heads, *rows])
    (table,) = tables_of(page)
    assert table.columns == tuple("ABCDEF")
    assert numbers_of(table)["Beta"] == ("2.0", "2.1", "2.2", "2.3", "2.4", "2.5")


def test_caption_below_a_table_is_its_own() -> None:
    page = Page()
    y = page.prose(LEFT, 80, 490, 6)
    y = page.table([200, 330], y + 12, [["Method", "Error"], ["Mean", "1.5"], ["Huber", "1.25"]])
    page.text(200, y + 2, "Table 4: Errors.", 9)
    page.prose(LEFT, y + 40, 490, 6)
    (table,) = tables_of(page)
    assert (table.name, table.columns) == ("Table 4", ("Error",))
    assert numbers_of(table) == {"Mean": ("1.5",), "Huber": ("1.25",)}


def test_head_over_several_columns_names_each() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    page.centred(255, 100, "CIFAR-10", 9)
    page.centred(385, 100, "SVHN", 9)
    page.rule(225, 285, 103)
    rows = [["Method", "Acc.", "F1", "Acc."], ["Mean", "1.0", "2.0", "3.0"], ["Huber", "4.0", "5.0", "6.0"]]
    page.table([110, 235, 275, 385], 114, rows)
    (table,) = tables_of(page)
    assert table.columns == ("CIFAR-10 Acc.", "CIFAR-10 F1", "SVHN Acc.")


def test_raised_marks_are_no_digits() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    rows = [["Method", "Acc.", "Time"], ["Mean^{a}", "82.7^{1}", "1.2_{±0.3}"], ["Huber", "92.0*", "3.4 ± 0.2"]]
    page.table([110, 235, 305], 98, rows)
    (table,) = tables_of(page)
    assert numbers_of(table) == {"Mean^{a}": ("82.7^{1}", "1.2_{±0.3}"), "Huber": ("92.0*", "3.4 ± 0.2")}


def test_bold_numbers_are_read_once() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    page.table([110, 235, 305], 98, [["Method", "Acc.", "F1"], ["Mean", "81.2", "80.0"]])
    page.text(110, 124, "Huber", 9)
    page.centred(235, 124, "85.9", 9, bold=True)
    for shift in (0, 0.3):  # bold by printing twice
        page.centred(305 + shift, 124, "84.1", 9)
    (table,) = tables_of(page)
    assert numbers_of(table)["Huber"] == ("85.9", "84.1")


def test_label_on_several_lines_is_whole() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    page.table([110, 285], 98, [["Method", "Acc."], ["Mean", "81.2"]])
    page.text(110, 124, "Median of means", 9)
    page.centred(285, 124, "82.9", 9)
    page.text(110, 134, "with many groups", 9)
    page.text(110, 147, "Huber loss, tuned", 9)
    page.centred(285, 152, "85.9", 9)
    page.text(110, 157, "by cross-validation", 9)
    page.table([110, 285], 170, [["Trimmed", "83.1"]])
    (table,) = tables_of(page)
    assert numbers_of(table) == {
        "Mean": ("81.2",),
        "Median of means with many groups": ("82.9",),
        "Huber loss, tuned by cross-validation": ("85.9",),
        "Trimmed": ("83.1",),
    }


def test_line_without_numbers_names_the_rows_below() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    rows = [["Method", "Acc."], ["Small data"], ["Mean", "1.5"], ["Huber", "2.5"], ["Large data"], ["Mean", "3.5"]]
    page.table([110, 285], 98, rows)
    (table,) = tables_of(page)
    assert numbers_of(table) == {
        "Small data / Mean": ("1.5",),
        "Small data / Huber": ("2.5",),
        "Large data / Mean": ("3.5",),
    }


def test_first_of_two_labels_holds_for_rows_below() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    page.text(110, 98, "Data", 9)
    page.table([170, 285], 98, [["Method", "Acc."], ["Mean", "1.5"], ["Huber", "2.5"], ["Mean", "3.5"]])
    page.text(110, 111, "SVHN", 9)
    page.text(110, 137, "Cora", 9)
    (table,) = tables_of(page)
    assert numbers_of(table) == {"SVHN / Mean": ("1.5",), "SVHN / Huber": ("2.5",), "Cora / Mean": ("3.5",)}


def test_missing_numbers_leave_their_column_empty() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    rows = [["Method", "A", "B", "C"], ["Mean", "1.5", "", "3.5"], ["Huber", "-", "2.5", ""], ["Ours", "4", "5", "6"]]
    page.table([110, 235, 285, 335], 98, rows)
    (table,) = tables_of(page)
    assert numbers_of(table) == {"Mean": ("1.5", "", "3.5"), "Huber": ("-", "2.5", ""), "Ours": ("4", "5", "6")}


def test_table_without_caption_needs_head_and_labels() -> None:
    page = Page()
    y = page.prose(LEFT, 80, 490, 6)
    rows = [["Method", "Acc.", "F1"], ["Mean", "81.2", "80.0"], ["Huber", "85.9", "84.1"]]
    y = page.table([200, 330, 400], y + 15, rows)
    page.prose(LEFT, y + 30, 490, 6)
    (table,) = tables_of(page)
    assert table.name == "table on page 1"
    assert numbers_of(table)["Huber"] == ("85.9", "84.1")


def test_table_on_its_side_is_read() -> None:
    page = Page()
    page.upright("Table 7: Errors.", 100, 600)
    for at, (label, value) in enumerate((("Method", "Error"), ("Mean", "1.5"), ("Huber", "2.5"))):
        page.upright(label, 118 + 13 * at, 600)
        page.upright(value, 118 + 13 * at, 480)
    for turned in (False, True):
        page.turned = turned
        (table,) = tables_of(page)
        assert (table.name, numbers_of(table)) == ("Table 7", {"Mean": ("1.5",), "Huber": ("2.5",)})


def test_sizes_above_a_rule_are_heads() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    rows = [["Size", "64", "1K", "1M"], ["Mean", "1.5", "2.5", "3.5"], ["Huber", "4.5", "5.5", "6.5"]]
    page.table([110, 235, 285, 335], 98, rows)
    page.rule(100, 360, 102)
    (table,) = tables_of(page)
    assert table.columns == ("64", "1K", "1M")
    assert numbers_of(table) == {"Mean": ("1.5", "2.5", "3.5"), "Huber": ("4.5", "5.5", "6.5")}


def test_note_below_a_table_is_no_label() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    page.table([110, 235, 285], 98, [["Method", "A", "B"], ["Mean", "1.5", "2.5"], ["Huber", "3.5", "4.5"]])
    page.text(110, 134, "^{a} trained on four machines for 300 epochs", 7)
    (table,) = tables_of(page)
    assert [row.label for row in table.rows] == ["Mean", "Huber"]


def test_brackets_below_numbers_belong_to_them() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Estimates (standard errors in parentheses).", 9)
    rows = [["", "(1)", "(2)"], ["Slope", "1.234**", "-0.98"], ["", "(0.012)", "(0.034)"], ["N", "1,024", "2,048"]]
    page.table([110, 235, 305], 98, rows)
    (table,) = tables_of(page)
    assert table.columns == ("(1)", "(2)")
    assert numbers_of(table) == {"Slope": ("1.234** (0.012)", "-0.98 (0.034)"), "N": ("1,024", "2,048")}


def test_caption_goes_on_over_full_lines() -> None:
    page = Page()
    first = "Table 2: Mean absolute error in seconds of all methods on the test sets that we used, over 5 seeds; it is"
    page.text(60, 80, first, 9)
    page.text(60, 91, "lower for better methods.", 9)
    page.table([160, 280, 340], 109, [["Method", "A", "B"], ["Mean", "1.5", "2.5"]])
    page.prose(60, 160, 490, 8)
    (table,) = tables_of(page)
    assert table.caption.endswith("over 5 seeds; it is lower for better methods.")
    assert table.columns == ("A", "B")


def test_second_head_begins_another_table() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    rows = [["Method", "A", "B"], ["Mean", "1.5", "2.5"], ["Method", "C", "D"], ["Huber", "3.5", "4.5"]]
    page.table([110, 235, 285], 98, rows)
    first, second = tables_of(page)
    assert (first.columns, numbers_of(first)) == (("A", "B"), {"Mean": ("1.5", "2.5")})
    assert (second.columns, numbers_of(second)) == (("C", "D"), {"Huber": ("3.5", "4.5")})


def test_numbers_broken_over_lines_are_left_out() -> None:
    page = Page()
    page.text(100, 80, "Table 1: Results.", 9)
    page.table([110, 285], 98, [["Method", "Acc."], ["Mean", "81.2 ±"], ["", "0.3"], ["Huber", "85.9 ±"], ["", "0.2"]])
    assert tables_of(page) == ()


def contents() -> Page:
    page = Page()
    for at, title in enumerate(("Introduction", "Methods", "Results", "Discussion")):
        page.text(100, 100 + 14 * at, f"{at + 1}  {title} . . . . . . . . . . . . . . . . . . . .")
        page.text(500, 100 + 14 * at, str(3 * at + 1))
    return page


def figure() -> Page:
    page = Page()
    for at in range(5):
        page.text(100, 100 + 14 * at, f"{1 - at / 5:.1f}")
        page.text(350, 100 + 14 * at, f"{1 - at / 5:.1f}")
    for at in range(5):
        page.text(120 + 40 * at, 172, f"{at / 5:.1f}")
    page.text(100, 195, "Figure 1: Accuracy by epoch.")
    return page


def formulas() -> Page:
    page = Page()
    for at in range(3):
        y = page.prose(LEFT, 80 + 80 * at, 490, 4)
        page.text(250, y + 8, f"x = {at} + y")
        page.text(530, y + 8, f"({at + 1})")
    return page


def references() -> Page:
    page = Page()
    for at in range(6):
        page.text(LEFT, 100 + 24 * at, f"[{at + 1}]")
        page.prose(LEFT + 22, 100 + 24 * at, 460, 2)
    return page


def mention() -> Page:
    page = Page()
    page.text(LEFT, 80, "Table 1 shows that the trimmed mean reaches 83.1% on 12 of 15 data sets in the year 2023.")
    page.prose(LEFT, 92, 490, 8)
    return page


@pytest.mark.parametrize("page", [contents(), figure(), formulas(), references(), mention()])
def test_text_with_numbers_is_no_table(page: Page) -> None:
    assert tables_of(page) == ()


def test_title_is_the_largest_text() -> None:
    page = Page()
    page.text(100, 60, "Robust means of toys", 18)
    page.prose(LEFT, 100, 490, 10)
    assert pdf_tables(read_words(pdf_of(page), "paper.pdf")).title == "Robust means of toys"


def test_scan_is_told() -> None:
    found = pdf_tables(read_words(scan(), "paper.pdf"))
    assert (found.tables, found.scans, found.pages) == ((), (1,), 1)


def test_empty_page_is_no_scan() -> None:
    found = pdf_tables(read_words(pdf_of(Page()), "paper.pdf"))
    assert (found.tables, found.scans) == ((), ())


def test_encrypted_pdf_is_refused_with_advice() -> None:
    with pytest.raises(ToolError, match=r"paper\.pdf is encrypted; a copy without a password can be read"):
        read_words(encrypted(pdf_of(Page())), "paper.pdf")


@pytest.mark.parametrize("data", [b"%PDF-1.4\ngarbage", b"%PDF-", pdf_of(Page())[:60]])
def test_damaged_pdf_is_refused_with_advice(data: bytes) -> None:
    with pytest.raises(ToolError, match=r"paper\.pdf is a damaged PDF.*get a whole copy"):
        read_words(data, "paper.pdf")


_TEXTS = ("Table", "1:", "81.2", "±", "0.3", "-", "Mean", "with", "(0.2)", "12/15", "^{a}", "Figure", "%")


@st.composite
def words(draw: st.DrawFn) -> Word:
    text, left = draw(st.sampled_from(_TEXTS)), 12.0 * draw(st.integers(0, 40))
    return Word(text, left, left + 5 * len(text), 4.0 * draw(st.integers(0, 60)), draw(st.sampled_from((7.0, 10.0))))


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    left = 12.0 * draw(st.integers(0, 40))
    return Rule(left, left + 12 * draw(st.integers(1, 40)), 4.0 * draw(st.integers(0, 60)))


@settings(max_examples=150, deadline=None)
@given(st.lists(words(), min_size=1, max_size=60), st.lists(rules(), max_size=6))
def test_words_at_any_place_are_read(found: list[Word], lines: list[Rule]) -> None:
    said = pdf_tables(WordPages([WordPage(1, found, sorted(lines, key=lambda rule: rule.y))], 1, ()))
    texts = {word.text for word in found}
    cells = [cell for table in said.tables for row in table.rows for cell in row.cells]
    assert all(part in texts for cell in cells for part in cell.split())
