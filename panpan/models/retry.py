"""How long to wait before another try, and when to give up.

Exponential back-off with full jitter: any pause between nothing and the current bound, so that many clients that failed
together do not come back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
"""

from math import isfinite

from panpan.errors import RetryableError
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of trying again. All times in seconds."""

    max_tries: int = 8
    """The first one counts."""
    base_s: float = 0.5
    """Bound of the first pause; it doubles with each further one."""
    cap_s: float = 30.0
    """Bound of every pause that the provider did not ask for."""
    max_retry_after_s: float = 60.0
    """Longest pause that a provider can ask for and get."""
    max_total_s: float = 600.0
    """From the first try to the beginning of the last."""

    def pause_s(self, failure: RetryableError, *, tries: int, elapsed_s: float, jitter: float) -> float:
        """Return how long to wait before the next try.

        Args:
            failure: Why the newest try failed.
            tries: How many there were, at least 1.
            elapsed_s: Time since the first one began.
            jitter: A random number of at least 0 and less than 1.

        Raises:
            RetryableError: It is time to give up; of the same kind as `failure`, and says why.
        """
        if tries >= self.max_tries:
            raise _given_up(failure, "" if tries == 1 else f" (tried {tries} times)")
        # The shift is bounded because a user may set thousands of tries, and 2**2000 is no float.
        pause_s = jitter * min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 60))
        asked_s = failure.retry_after_s
        if asked_s is not None and isfinite(asked_s) and asked_s > 0:
            if asked_s > self.max_retry_after_s:
                raise _given_up(failure, f"; it asks to wait {asked_s:.0f} s, so try again later")
            pause_s = asked_s + jitter * self.base_s  # never earlier than it asked
        if elapsed_s + pause_s > self.max_total_s:
            raise _given_up(failure, f" (tried {tries} times in {elapsed_s:.0f} s)")
        return pause_s


def _given_up(failure: RetryableError, note: str) -> RetryableError:
    return type(failure)(
        f"{failure}{note}",
        provider=failure.provider,
        status=failure.status,
        request_id=failure.request_id,
        retry_after_s=failure.retry_after_s,
    )
