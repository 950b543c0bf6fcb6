import pytest

from panpan.errors import ToolError
from panpan.system.web.domain_lists import DomainLists


@pytest.mark.parametrize(
    ("allowed", "blocked", "host", "is_taken"),
    [
        ([], [], "a.org", True),
        (["a.org"], [], "a.org", True),
        (["a.org"], [], "b.a.org", True),
        (["*.a.org"], [], "b.a.org", True),
        (["A.org."], [], "a.org", True),
        (["a.org"], [], "ba.org", False),
        (["a.org"], [], "a.org.evil.net", False),
        (["b.a.org"], [], "a.org", False),
        ([], ["a.org"], "b.a.org", False),
        ([], ["a.org"], "ba.org", True),
        (["b.a.org"], ["a.org"], "b.a.org", False),
        (["münchen.de"], [], "xn--mnchen-3ya.de", True),
    ],
)
def test_domain_covers_itself_and_its_subdomains(
    allowed: list[str], blocked: list[str], host: str, is_taken: bool
) -> None:
    assert (DomainLists.read(allowed, blocked).refusal(host) is None) == is_taken


@pytest.mark.parametrize("text", ["", "a b", "http://a.org", "a.org/x", "a.org:80", "user@a.org", "*.", "0x7f.1"])
def test_domain_that_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="such as arxiv"):
        DomainLists.read([text], [])
