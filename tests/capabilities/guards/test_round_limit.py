from panpan.capabilities.guards.size_limits import RoundLimit
from tests.capabilities.guards.hook_fixtures import round_of


async def test_round_limit_tells_only_the_last_round_to_wrap_up() -> None:
    hook = RoundLimit()

    additions = [await hook.before_request(round_of(number=number, max_rounds=3)) for number in (1, 2, 3)]

    assert [len(found) for found in additions] == [0, 0, 1]
    assert additions[2][0].cause == "limit:rounds"
    assert "call no more tools" in additions[2][0].text
