import pytest

from panpan.capabilities.web.web_pages import raw_url


@pytest.mark.parametrize(
    ("page", "raw"),
    [
        ("https://github.com/o/r/blob/main/a/b.py#L3", "https://raw.githubusercontent.com/o/r/main/a/b.py"),
        ("https://gitlab.com/g/s/r/-/blob/main/b.py?x=1", "https://gitlab.com/g/s/r/-/raw/main/b.py"),
        ("https://huggingface.co/o/m/blob/main/config.json", "https://huggingface.co/o/m/raw/main/config.json"),
        ("https://github.com/o/r", None),
        ("https://example.org/https://github.com/o/r/blob/main/a", None),
    ],
)
def test_page_around_a_file_names_the_file(page: str, raw: str | None) -> None:
    assert raw_url(page) == raw
