from collections.abc import Sequence
from ipaddress import ip_address

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.sandbox.domain_proxy import DomainGrants, NotGrantedError, Route
from panpan.system.web.url_guard import is_public, plain_authority
from tests.fakes.outside import OTHER, PUBLIC


def routed(asked: str, domains: Sequence[str], *addresses: str, default_port: int = 80) -> Route:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    async def main() -> Route:
        return await DomainGrants(domains).route(plain_authority(asked), default_port, resolve)

    return anyio.run(main)


def refusal(asked: str, domains: Sequence[str], *addresses: str) -> NotGrantedError:
    with pytest.raises(NotGrantedError) as caught:
        routed(asked, domains, *(addresses or (PUBLIC,)))
    return caught.value


@pytest.mark.parametrize(
    ("asked", "domain", "host", "port"),
    [
        ("example.org", "example.org", "example.org", 80),
        ("example.org:443", "example.org", "example.org", 443),
        ("EXAMPLE.org.:443", "Example.ORG", "example.org", 443),
        ("a.example.org", "*.example.org", "a.example.org", 80),
        ("a.b.example.org:443", "*.example.org", "a.b.example.org", 443),
        ("example.org:8080", "example.org:8080", "example.org", 8080),
        ("example.org:22", "example.org:22", "example.org", 22),
        ("a.example.org:8080", "*.example.org:8080", "a.example.org", 8080),
        ("xn--mnchen-3ya.de", "münchen.de", "xn--mnchen-3ya.de", 80),
        ("my_host.example.org", "my_host.example.org", "my_host.example.org", 80),
        ("registry", "registry", "registry", 80),
    ],
)
def test_granted_host_is_dialled_at_its_addresses(asked: str, domain: str, host: str, port: int) -> None:
    assert routed(asked, ["other.net", domain], PUBLIC, OTHER) == Route(host, port, (PUBLIC, OTHER))


@pytest.mark.parametrize(
    ("asked", "domain", "grant"),
    [
        ("evil.org", "example.org", "evil.org"),
        ("example.org.evil.org", "example.org", "example.org.evil.org"),
        ("notexample.org", "*.example.org", "notexample.org"),
        ("notexample.org", "example.org", "notexample.org"),
        ("example.org", "*.example.org", "example.org"),
        ("a.example.org", "example.org", "a.example.org"),
        ("example.org:8080", "example.org", "example.org:8080"),
        ("example.org", "example.org:8080", "example.org"),
        ("example.org:443", "example.org:80", "example.org"),
        ("a.example.org:22", "*.example.org", "a.example.org:22"),
        (PUBLIC, "example.org", PUBLIC),
        (f"{PUBLIC}:22", PUBLIC, f"{PUBLIC}:22"),
        ("[2606:4700::1111]:443", "example.org", "[2606:4700::1111]"),
        ("[2606:4700::1111]:8443", "[2606:4700::1111]", "[2606:4700::1111]:8443"),
        ("127.0.0.1:80", "localhost", "127.0.0.1"),
        ("localhost", "127.0.0.1", "localhost"),
    ],
)
def test_other_host_is_refused_with_the_missing_grant(asked: str, domain: str, grant: str) -> None:
    told = refusal(asked, [domain])

    assert f'"{grant}" in sandbox.domains would grant it' in str(told)
    assert routed(asked, [domain, grant], PUBLIC).host == plain_authority(asked).host


def test_ungranted_host_is_not_resolved() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(host)

    async def main() -> None:
        with pytest.raises(NotGrantedError):
            await DomainGrants(["example.org"]).route(plain_authority("data.evil.org"), 80, resolve)

    anyio.run(main)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "10.0.0.5", "192.168.1.1", "169.254.169.254", "0.0.0.0", "fd00::1", "fe80::1", "100.64.0.1",
     "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"],
)  # fmt: skip
@pytest.mark.parametrize("others", [(), (PUBLIC,)])
def test_name_that_leads_into_the_local_network_is_refused(address: str, others: tuple[str, ...]) -> None:
    told = refusal("rebinding.org", ["rebinding.org"], *others, address)

    assert "would grant it" not in str(told)
    assert "not a public address" in str(told)


def test_private_address_is_dialled_if_granted_by_name() -> None:
    domains = ["10.0.0.5:8080", "pypi.example.org", "pypi.example.org:8080", "[::1]"]

    assert routed("10.0.0.5:8080", domains) == Route("10.0.0.5", 8080, ("10.0.0.5",))
    assert routed("[0:0::1]", domains) == Route("::1", 80, ("::1",))
    assert routed("pypi.example.org:8080", domains, "10.0.0.5").addresses == ("10.0.0.5",)
    assert "not a public address" in str(refusal("pypi.example.org", domains, "10.0.0.5"))
    assert "not a public address" in str(refusal("pypi.example.org:8080", domains, "10.0.0.6"))


def test_localhost_is_this_machine_for_any_name_server() -> None:
    assert routed("localhost:8000", ["localhost:8000"], PUBLIC).addresses == ("127.0.0.1", "::1")
    assert "not among the granted" in str(refusal("localhost:8001", ["localhost:8000"]))


def test_host_without_an_address_is_no_refusal() -> None:
    with pytest.raises(ToolError, match=r"example\.org has no address") as caught:
        routed("example.org", ["example.org"])
    assert not isinstance(caught.value, NotGrantedError)


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "*.org", "*.1.2.3.4", "*.[::1]", "a.*.org", "**.example.org", "*example.org", "https://pypi.org",
     "pypi.org/simple", "pypi.org:", "pypi.org:0", "pypi.org:x", "pypi.org:70000", "me@pypi.org", "pypi..org",
     " pypi.org", "pypi.org\n", "0x7f.1", "127.1", "::1", "[::1", "[fe80::1%eth0]", "pypi.org?x", "ⓟypi.org",
     "-a.org", "a,b.org"],
)  # fmt: skip
def test_invalid_domain_error_names_its_setting(text: str) -> None:
    with pytest.raises(ToolError) as caught:
        DomainGrants(["pypi.org", text])
    assert str(caught.value).startswith(f"sandbox.domains holds {text!r}, which is not a domain: ")


names = st.lists(st.sampled_from(["a", "b", "example", "org", "evil", "net"]), min_size=2, max_size=4).map(".".join)
addresses = st.one_of(st.ip_addresses().map(str), st.sampled_from([PUBLIC, "127.0.0.1", "10.0.0.1", "::1", "0.0.0.0"]))


@given(names, names, st.lists(addresses, min_size=1, max_size=3), st.booleans())
def test_only_granted_names_and_public_addresses_are_dialled(
    asked: str, granted: str, found: list[str], is_for_subdomains: bool
) -> None:
    domain = f"*.{granted}" if is_for_subdomains else granted
    try:
        route = routed(asked, [domain], *found)
    except NotGrantedError:
        return
    assert asked.endswith(f".{granted}") if is_for_subdomains else asked == granted
    assert all(is_public(ip_address(address)) for address in route.addresses)


def routed_to_own(asked: str, own: str, address: str) -> Route:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return [address]

    async def main() -> Route:
        return await DomainGrants(["pypi.org"], [own]).route(plain_authority(asked), 443, resolve)

    return anyio.run(main)


@pytest.mark.parametrize("address", ["10.0.0.5", "192.168.1.5", "172.16.0.5", "203.0.113.80", "fd00::5", PUBLIC])
def test_host_of_the_user_may_be_in_their_network(address: str) -> None:
    assert routed_to_own("mirror.lab:8080", "mirror.lab:8080", address) == Route("mirror.lab", 8080, (address,))


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.8.8.8", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "::ffff:127.0.0.1", "odd"]
)
def test_host_of_the_user_leads_to_no_address_of_this_machine(address: str) -> None:
    with pytest.raises(NotGrantedError):
        routed_to_own("mirror.lab", "mirror.lab", address)


def test_other_hosts_stay_public_beside_the_users_own() -> None:
    with pytest.raises(NotGrantedError, match="not a public address"):
        routed_to_own("pypi.org", "mirror.lab", "10.0.0.5")


@pytest.mark.parametrize(
    ("domain", "address", "flag"),
    [
        ("pypi.org", "203.0.113.80", "--allow-network=203.0.113.80"),
        ("pypi.org:8080", "10.0.0.5", "--allow-network=10.0.0.5:8080"),
        ("pypi.org:8080", "fd00::5", "--allow-network=[fd00::5]:8080"),
    ],
)
def test_flag_for_a_refused_address_opens_it_beside_others(domain: str, address: str, flag: str) -> None:
    assert str(refusal(domain, [domain], address)).endswith(f"; add {flag}")

    assert routed(domain, [domain, flag.removeprefix("--allow-network=")], address).addresses == (address,)


def test_further_grants_leave_the_first_unchanged() -> None:
    first = DomainGrants(["example.org"], ["registry"])

    more = first.extended(["other.net"], ["mirror"])

    asked = [plain_authority(host) for host in ("example.org", "other.net", "mirror")]
    assert [first.covers(one, 443) for one in asked] == [True, False, False]
    assert [more.covers(one, 443) for one in asked] == [True, True, True]
    assert first.extended((), ()) is first
