import pytest

from panpan.system.web.domain_lists import is_same_site
from panpan.system.web.url_guard import read_url


@pytest.mark.parametrize(
    ("allowed", "asked", "is_same"),
    [
        ("http://example.org/a", "https://example.org/b", True),
        ("https://example.org", "https://www.example.org", True),
        ("http://www.example.org", "https://example.org", True),
        ("https://example.org", "https://docs.example.org", False),
        ("https://docs.example.org", "https://example.org", False),
        ("https://example.org", "https://www.www.example.org", False),
        ("https://example.org", "https://example.org.evil.net", False),
        ("https://example.org", "https://example.org:8443", False),
        ("http://example.org:8080", "https://example.org:8080", True),
        ("https://org", "https://www.org", False),
    ],
)
def test_same_site_ignores_www_and_tls(allowed: str, asked: str, is_same: bool) -> None:
    assert is_same_site(read_url(allowed), read_url(asked)) is is_same
