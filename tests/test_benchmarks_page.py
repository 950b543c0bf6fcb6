"""The page of the benchmarks takes new figures, and keeps the others."""

from benchmarks.table import page_with

PAGE = "# Benchmarks\n\nWords.\n\n```text\nstart\n  figure  1 ms\n\nmemory\n  figure  2 MB\n```\n\nMore words.\n"


def test_page_with_takes_the_place_of_the_same_title() -> None:
    page = page_with(PAGE, "start\n  figure  3 ms")

    assert page == PAGE.replace("1 ms", "3 ms")


def test_page_with_puts_a_new_title_behind_all() -> None:
    page = page_with(PAGE, "search\n  figure  4 ms")

    assert page == PAGE.replace("2 MB\n", "2 MB\n\nsearch\n  figure  4 ms\n")


def test_page_with_keeps_one_of_each_title() -> None:
    twice = PAGE.replace("\nmemory", "\nstart\n  figure  9 ms\n\nmemory")

    assert page_with(twice, "start\n  figure  1 ms") == PAGE
