"""Rules for web hosts: those that calls name, those of redirects, and those that a page loads parts from."""

from pathlib import Path

import pytest

from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.types.permission import Ask, Deny
from tests.permissions.gate_calls import Calls

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
def test_new_restriction_is_a_rule_for_the_second_address_alone(allowed: str, asked: str, rule: str | None) -> None:
    assert GATE.stricter_rule(allowed, asked) == rule


@pytest.mark.parametrize(
    ("host", "is_closed"), [("ads.net", True), ("cdn.ads.net", True), ("bads.net", False), ("www.a.org", False)]
)
def test_host_is_closed_by_a_denied_host_above_it(host: str, is_closed: bool) -> None:
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
def test_rule_holds_for_a_host_in_any_letters(url: str) -> None:
    assert GATE.stricter_rule("http://a.org/", url) is not None


@pytest.mark.parametrize("tool", ["WebFetch", "DatasetDownload", "AnyOther"])
@pytest.mark.parametrize("url", ["http://ads.net/x.csv", "https://CDN.ads.net./x", "http://user@ads.net/"])
async def test_denied_host_is_denied_to_every_tool_that_asks_for_it(tool: str, url: str, tmp_path: Path) -> None:
    call = Calls(tmp_path).of(tool, "network", is_read_only=True, url=url)

    decision = await GATE.with_mode("bypassPermissions").before_tool(call)

    assert isinstance(decision, Deny)
    assert "WebFetch(domain:ads.net)" in decision.reason.text


async def test_asked_host_is_asked_about_for_every_tool(tmp_path: Path) -> None:
    call = Calls(tmp_path).of("DatasetDownload", "network", url="http://www.a.org/x.csv")

    decision = await GATE.with_mode("bypassPermissions").before_tool(call)

    assert isinstance(decision, Ask)
    assert "WebFetch(domain:www.a.org)" in decision.reason.text


async def test_host_allowed_for_reading_is_not_allowed_to_other_tools(tmp_path: Path) -> None:
    call = Calls(tmp_path).of("DatasetDownload", "network", url="http://open.org/x.csv")

    assert isinstance(await GATE.before_tool(call), Ask)


def test_closing_rule_ignores_letters_in_other_kinds_of_address() -> None:
    gate = PermissionGate([RuleSource("a file", deny=["WebFetch(domain:cafe)", "WebFetch(domain:8.8.8.8)"])])

    assert gate.closing_rule("2606:cafe::1") is None
    assert gate.closing_rule("8.8.8.8") is not None
