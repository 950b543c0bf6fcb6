"""Limits on the part of a window that may be filled."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.compaction.auto_compaction import limits_after_refusal, limits_of, limits_on_demand
from panpan.capabilities.compaction.settings import CompactionSettings

SETTINGS = CompactionSettings()


def test_limits_of_a_large_window_keep_reserve_and_recent_tokens() -> None:
    limits = limits_of(SETTINGS, 200_000)

    assert (limits.request_tokens, limits.recent_tokens) == (200_000 - 16_384, 20_000)


def test_limits_of_a_small_window_keep_a_quarter_free() -> None:
    limits = limits_of(SETTINGS, 16_000)

    assert (limits.request_tokens, limits.recent_tokens) == (12_000, 3_000)


@given(st.integers(4_000, 2_000_000), st.integers(1_000, 10**6), st.integers(1_000, 10**6))
def test_limits_leave_most_of_the_window_for_any_settings(window: int, reserve: int, recent: int) -> None:
    limits = limits_of(CompactionSettings(reserve_tokens=reserve, keep_recent_tokens=recent), window)

    assert window * 3 / 4 <= limits.request_tokens < window
    assert limits.recent_tokens <= limits.request_tokens / 4


@given(st.none() | st.integers(4_000, 10**6), st.integers(1, 10**6))
def test_limits_after_a_refusal_are_clearly_lower(window: int | None, refused: int) -> None:
    assert limits_after_refusal(SETTINGS, window, refused).request_tokens <= round(0.7 * refused)


def test_limits_on_demand_apply_in_any_window() -> None:
    assert limits_on_demand(SETTINGS, None, 5_000).request_tokens == 5_000
    assert limits_on_demand(SETTINGS, 200_000, 5_000).request_tokens == 5_000
    assert limits_on_demand(SETTINGS, 16_000, 50_000).request_tokens == 12_000


def test_window_setting_replaces_or_lowers_the_window() -> None:
    small = CompactionSettings(window_tokens=50_000)

    assert SETTINGS.usable_window(None) is None
    assert SETTINGS.usable_window(200_000) == 200_000
    assert small.usable_window(None) == 50_000
    assert small.usable_window(200_000) == 50_000
    assert small.usable_window(8_000) == 8_000
