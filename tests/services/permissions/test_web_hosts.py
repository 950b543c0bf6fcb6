"""What rules say of web hosts that no call names: those of redirects, and those of which a page loads parts."""

import pytest

from panpan.services.permissions.gate import PermissionGate
from panpan.services.permissions.rules.rules import RuleSource

GATE = PermissionGate(
    [
        RuleSource(
            "a file",
            allow=["WebFetch(domain:open.org)"],
            ask=["WebFetch(domain:www.a.org)"],
            deny=["WebFetch(domain:ads.net)", "WebFetch(domain:xn--bcher-kva.example)", "Bash(rm *)"],
        )
    ]
)


@pytest.mark.parametrize(
    ("allowed", "asked", "rule"),
    [
        ("http://a.org/", "https://www.a.org/x", "the rule WebFetch(domain:www.a.org) from a file"),
        ("http://www.a.org/", "https://www.a.org/x", None),
        ("http://a.org/", "https://x.ads.net/", "the rule WebFetch(domain:ads.net) from a file"),
        ("http://open.org/", "https://www.open.org/", None),
    ],
)
def test_a_rule_that_speaks_of_the_second_address_alone_is_news(allowed: str, asked: str, rule: str | None) -> None:
    assert GATE.new_restriction(allowed, asked) == rule


@pytest.mark.parametrize(
    ("host", "is_closed"), [("ads.net", True), ("cdn.ads.net", True), ("bads.net", False), ("www.a.org", False)]
)
def test_a_host_is_closed_by_what_denies_it_or_a_host_above_it(host: str, is_closed: bool) -> None:
    assert (GATE.closing_rule(host) is not None) is is_closed


@pytest.mark.parametrize(
    "url",
    [
        "https://b\u00fccher.example/x",
        "https://www.b\u00fccher.example:8443/",
        "https://xn--bcher-kva.example./",
        "HTTPS://XN--BCHER-KVA.example/#x",
    ],
)
def test_a_rule_holds_for_a_host_in_whatever_letters_it_is_written(url: str) -> None:
    assert GATE.new_restriction("http://a.org/", url) is not None
