"""Examples of RFC 9309, and those of Google's documentation of robots.txt that the RFC came from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.web.fetching import Robots, product_of

GROUPS = """
User-Agent: ExampleBot
Disallow: /foo
Disallow: /bar

User-agent: *   # all others
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

user-agent: foobot
sitemap: https://example.org/sitemap.xml
User-Agent: barbot/2.0
Allow: /example/page.html
Allow: /example/allowed.gif
disallow : /

User-agent: quxbot
EOF: x
"""


@pytest.mark.parametrize(
    ("product", "path", "is_allowed"),
    [
        ("examplebot", "/foo/x", False),
        ("ExampleBot", "/example/", True),
        ("other", "/example/page.html", False),
        ("other", "/images/a.gif", False),
        ("other", "/images/a.gif?x", True),
        ("other", "/publications/", True),
        ("foobot", "/example/page.html", True),
        ("barbot", "/example/allowed.gif", True),
        ("barbot", "/example/other", False),
        ("barbot", "/robots.txt", True),
        ("quxbot", "/example/", True),
    ],
)
def test_robots_group_of_a_program_decides(product: str, path: str, is_allowed: bool) -> None:
    assert Robots.read(GROUPS, product).allow(path) is is_allowed


@pytest.mark.parametrize(
    ("rules", "path", "is_allowed"),
    [
        ("allow: /p\ndisallow: /", "/page", True),
        ("allow: /folder\ndisallow: /folder", "/folder/page", True),
        ("allow: /page\ndisallow: /*.htm", "/page.htm", False),
        ("allow: /$\ndisallow: /", "/", True),
        ("allow: /$\ndisallow: /", "/page.htm", False),
        ("disallow:", "/page", True),
        ("disallow: /fish*.php", "/fish/salmon.php?id=1", False),
        ("disallow: /fish*.php", "/Fish.PHP", True),
        ("disallow: /a*b*c$", "/axbxbc", False),
        ("disallow: /a*bc$", "/abcbd", True),
        ("disallow: /ab*ab$", "/ab", True),
        ("disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
        ("disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
        ("disallow: /a%3cd.html", "/a%3Cd.html", False),
        ("nothing to read\n:\n\0\ndisallow: /x", "/x", False),
    ],
)
def test_longest_matching_line_counts(rules: str, path: str, is_allowed: bool) -> None:
    assert Robots.read(f"User-agent: *\n{rules}", "panpan").allow(path) is is_allowed


def test_groups_of_one_program_are_joined() -> None:
    text = "\ufeffuser-agent: panpan\r\ndisallow: /a\r\ruser-agent: *\ndisallow: /\n\nuser-agent: Panpan\ndisallow: /b"
    robots = Robots.read(text, "panpan")

    assert [robots.allow(path) for path in ("/a", "/b", "/c")] == [False, False, True]


@given(st.text(max_size=200), st.text(max_size=40))
def test_robots_file_of_any_text_can_be_read(text: str, path: str) -> None:
    robots = Robots.read(f"user-agent: *\ndisallow: /x\n{text}", "panpan")

    assert robots.allow(path) in (True, False)


def test_program_is_known_by_its_first_word() -> None:
    assert product_of("panpan/1.2 (+https://example.org)") == "panpan"
    assert product_of("7") == "7"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("User-agent: *\nCrawl-delay: 10", 10.0),
        ("User-agent: *\nCrawl-delay: 0.5 # please\nCrawl-Delay: 3", 3.0),
        ("User-agent: *\nCrawl-delay: 86400", 30.0),
        ("User-agent: *\nCrawl-delay: inf", 0.0),
        ("User-agent: *\nCrawl-delay: -1", 0.0),
        ("User-agent: *\nCrawl-delay: 1e9", 0.0),
        ("Crawl-delay: 5\nUser-agent: *", 0.0),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: panpan\nDisallow: /x", 0.0),
        ("User-agent: panpan\nCrawl-delay: 5\nUser-agent: other\nCrawl-delay: 9", 5.0),
        ("User-agent: panpan\nCrawl-delay: 5\nUser-agent: other\nDisallow: /\nUser-agent: panpan\nAllow: /", 5.0),
    ],
)
def test_pause_of_a_site_is_read_within_bounds(text: str, seconds: float) -> None:
    assert Robots.read(text, "panpan").delay_s == seconds


def test_pause_ends_the_names_of_a_group() -> None:
    robots = Robots.read("User-agent: panpan\nCrawl-delay: 5\nUser-agent: other\nDisallow: /", "panpan")

    assert robots.allow("/x")
