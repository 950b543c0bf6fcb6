"""The documentation of the server is what the code has."""

from scripts.server_page import PAGE, page_with_table


def test_table_of_operations_is_that_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == page_with_table(page), "run: .venv/bin/python -m scripts.server_page"
