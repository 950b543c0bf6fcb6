"""How much of a context window may be filled, and with what, in tokens."""

from panpan.config.settings import CompactionSettings
from panpan.types.dataclass import dataclass

_LARGEST_RESERVE = 4
"""At most one part in so many of the window stays free."""
_AFTER_REFUSAL = 0.7
"""What a request may have, of one that the provider refused: how much it takes is not known then."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may have."""

    request_tokens: int
    """Of all of it; beyond that it is made shorter."""
    recent_tokens: int
    """Of the newest messages that stay as they are."""

    def room_tokens(self, fixed_tokens: int) -> int:
        """Return what messages may have beside what every request has."""
        return max(0, self.request_tokens - fixed_tokens)


def limits_of(settings: CompactionSettings, window_tokens: int) -> Limits:
    """Return the limits for a window."""
    reserve = min(settings.reserve_tokens, window_tokens // _LARGEST_RESERVE)
    return _limits(settings, window_tokens - reserve)


def limits_after_refusal(settings: CompactionSettings, window_tokens: int | None, refused_tokens: int) -> Limits:
    """Return the limits where the provider says that a request was too long, whatever the estimates say.

    Args:
        settings: The user's.
        window_tokens: Size of the window; None where it is not known.
        refused_tokens: Of the request that was refused; an estimate.
    """
    limit = round(refused_tokens * _AFTER_REFUSAL)
    if window_tokens is not None:
        limit = min(limit, limits_of(settings, window_tokens).request_tokens)
    return _limits(settings, limit)


def limits_on_demand(settings: CompactionSettings, window_tokens: int | None, used_tokens: int) -> Limits:
    """Return the limits where the user wants the conversation to be shorter, however much room there is."""
    limit = (
        used_tokens if window_tokens is None else min(used_tokens, limits_of(settings, window_tokens).request_tokens)
    )
    return _limits(settings, limit)


def _limits(settings: CompactionSettings, request_tokens: int) -> Limits:
    return Limits(request_tokens, min(settings.keep_recent_tokens, request_tokens // 4))
