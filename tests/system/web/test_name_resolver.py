from ipaddress import ip_address

import pytest

from panpan.errors import ToolError
from panpan.system.web.network import resolve
from tests.system.backends import on_both_backends, run_on


@on_both_backends
def test_resolver_returns_each_address_once(backend: str) -> None:
    async def main() -> None:
        found = await resolve("localhost", 80)

        assert len(found) == len(set(found))
        assert all(ip_address(address).is_loopback for address in found)

    run_on(backend, main)


async def test_resolver_error_names_a_host_without_an_address() -> None:
    host = f"{'a' * 64}.example.org"  # no name server is asked about a label of this length

    with pytest.raises(ToolError, match=host):
        await resolve(host, 80)
