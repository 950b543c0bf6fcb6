from hypothesis import given
from hypothesis import strategies as st

from panpan.types.messages import unique_id


@given(st.sampled_from(["", "call", "call_0"]), st.integers(0, 200))
def test_unique_id_numbers_a_taken_id(wanted: str, times: int) -> None:
    taken: set[str] = set()
    for _ in range(times):
        taken.add(unique_id(wanted, taken))

    begin = wanted or "call"
    expected = [begin, *(f"{begin}-{number}" for number in range(2, times + 1))]
    assert taken == set(expected[:times])


@given(st.sets(st.sampled_from(["a", *(f"a-{number}" for number in range(2, 20))])))
def test_unique_id_is_never_taken(taken: set[str]) -> None:
    assert unique_id("a", taken) not in taken
