"""The pager shows whole what the screen shows in part."""

from panpan.ui.repl.pages import MAX_PAGES, Pages
from panpan.ui.repl.theme import Theme

PLAIN = Theme("plain", has_sequences=False)


def test_what_was_printed_and_thought_stands_in_its_order() -> None:
    pages = Pages()
    pages.add("∴ thought for 2 s", "first\nthen", is_thought=True)
    pages.add("Bash ls", "a.txt")

    assert pages.rows(PLAIN) == ["∴ thought for 2 s", "first", "then", "", "Bash ls", "a.txt", ""]


def test_where_there_are_only_thoughts_it_says_so() -> None:
    pages = Pages()
    pages.add("∴ thought", "hm", is_thought=True)
    assert "no tool has printed" in pages.rows(PLAIN)[-1]

    pages.add("Bash ls", "a.txt")
    assert "no tool has printed" not in "".join(pages.rows(PLAIN))


def test_nothing_is_nothing_and_the_newest_are_kept() -> None:
    pages = Pages()
    assert not pages.rows(PLAIN)

    for number in range(MAX_PAGES + 5):
        pages.add(f"page {number}", "x")

    headings = [row for row in pages.rows(PLAIN) if row.startswith("page")]
    assert headings == [f"page {number}" for number in range(5, MAX_PAGES + 5)]
