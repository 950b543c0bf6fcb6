"""Limits on the part of a window that may be filled."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.compaction.make_room import limits_after_refusal, limits_of, limits_on_demand
from panpan.capabilities.compaction.settings import CompactionSettings

SETTINGS = CompactionSettings()


def test_of_a_large_window_the_reserve_stays_free_and_the_recent_messages_stay() -> None:
    limits = limits_of(SETTINGS, 200_000)

    assert (limits.request_tokens, limits.recent_tokens) == (200_000 - 16_384, 20_000)


def test_of_a_small_window_it_is_a_quarter() -> None:
    limits = limits_of(SETTINGS, 16_000)

    assert (limits.request_tokens, limits.recent_tokens) == (12_000, 3_000)


@given(st.integers(4_000, 2_000_000), st.integers(1_000, 10**6), st.integers(1_000, 10**6))
def test_whatever_the_settings_say_most_of_the_window_can_be_used(window: int, reserve: int, recent: int) -> None:
    limits = limits_of(CompactionSettings(reserve_tokens=reserve, keep_recent_tokens=recent), window)

    assert window * 3 / 4 <= limits.request_tokens < window
    assert limits.recent_tokens <= limits.request_tokens / 4


@given(st.none() | st.integers(4_000, 10**6), st.integers(1, 10**6))
def test_after_a_refusal_the_request_has_to_become_clearly_shorter(window: int | None, refused: int) -> None:
    assert limits_after_refusal(SETTINGS, window, refused).request_tokens <= round(0.7 * refused)


def test_what_the_user_wants_to_be_shorter_becomes_so_in_any_window() -> None:
    assert limits_on_demand(SETTINGS, None, 5_000).request_tokens == 5_000
    assert limits_on_demand(SETTINGS, 200_000, 5_000).request_tokens == 5_000
    assert limits_on_demand(SETTINGS, 16_000, 50_000).request_tokens == 12_000


def test_the_settings_may_say_the_window_where_it_is_not_known_or_less_of_it() -> None:
    small = CompactionSettings(window_tokens=50_000)

    assert SETTINGS.usable_window(None) is None
    assert SETTINGS.usable_window(200_000) == 200_000
    assert small.usable_window(None) == 50_000
    assert small.usable_window(200_000) == 50_000
    assert small.usable_window(8_000) == 8_000
