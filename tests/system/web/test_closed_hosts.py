import pytest

from panpan.errors import ToolError
from panpan.system.web.domain_lists import without_closed_hosts
from tests.fakes.outside import PUBLIC, Network


async def test_closed_host_has_no_address_and_is_not_looked_up() -> None:
    network = Network(names={"open.org": [PUBLIC], "shut.org": [PUBLIC]})
    outside = without_closed_hosts(network.web, lambda host: "the rule x" if host == "shut.org" else None)

    assert await outside.resolve("open.org", 443) == [PUBLIC]
    with pytest.raises(ToolError, match=r"shut\.org is closed by the rule x"):
        await outside.resolve("shut.org", 443)
    assert network.asked == ["open.org"]


async def test_closed_address_is_never_dialled() -> None:
    network = Network(names={"open.org": [PUBLIC]})
    outside = without_closed_hosts(network.web, lambda host: "the rule x" if host == PUBLIC else None)

    with pytest.raises(ToolError, match=f"{PUBLIC} is closed by the rule x"):
        await outside.dial(PUBLIC, 443)
    assert network.dialled == []
