"""The pace of requests that several panpan share through a folder.

    PROVIDER.rate.json    the share of each panpan of the provider's rate; written by who starts them, and nobody else
    PROVIDER.pause.json   the pause that the provider last asked one of them for; it counts for all

The rules: no clock of another machine counts, except for a pause that nobody here saw begin, and then it costs at most
one pause or one refused request. The folder is a courtesy: if it cannot be used, requests go on. What is in the files
is bounded, whatever it is.
"""

import json
import logging
import random
import secrets
import time
from collections.abc import Callable, Mapping
from functools import cache
from math import ceil, floor, inf, isfinite
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import anyio
from anyio import to_thread

from panpan.errors import RateLimitError, RetryableError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.canonical import canonical_path
from panpan.system.files.read_file import read_users_file
from panpan.types.dataclass import dataclass
from panpan.types.messages import Usage

MAX_PAUSE_S = 300.0
"""Longest pause that one panpan can ask the others for."""
MAX_INTERVAL_S = 3_600.0
"""Longest time between two requests of one panpan, whatever its share says."""
FIRST_PAUSE_S = 2.0
"""First pause for all if the provider says no time; it doubles while the provider refuses, and halves with replies."""

_LEAST_PAUSE_S = 0.5
_AWAY_S = 300.0
"""Seconds for which a folder that did not answer is left alone, since each try may leave a thread that hangs."""
_MAX_BYTES = 4_096
_MINUTE_S = 60.0
_MAX_NAME_CHARS = 100

log = logging.getLogger(__name__)


class Rate(Protocol):
    """The most that all may ask of a provider; None for no limit."""

    @property
    def requests_per_minute(self) -> float | None: ...

    @property
    def tokens_per_minute(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Share:
    """One panpan's share of a rate."""

    interval_s: float = 0.0
    """Least seconds between two requests."""
    seconds_per_token: float = 0.0
    """Seconds without a request for each token of the last ones."""


@dataclass(frozen=True, slots=True)
class _Pause:
    id: str
    pause_s: float
    age_s: float
    """Seconds since it was written, by the clocks of two machines."""


def share_of(rate: Rate, running: int) -> Share:
    """Return the share of one of `running` panpan, such that all together keep to the rate in every minute.

    Below one request a minute for each, they keep to it on average.
    """
    running, interval_s = max(1, running), 0.0
    if rate.requests_per_minute:
        each = rate.requests_per_minute / running
        each = floor(each) if each >= 1 else each  # with 1.5 in a minute, one of two minutes would have two
        interval_s = ceil(_MINUTE_S * 1_000 / each) / 1_000
    return Share(interval_s, _MINUTE_S * running / rate.tokens_per_minute if rate.tokens_per_minute else 0.0)


def share_rate(folder: Path, rates: Mapping[str, Rate], running: int) -> None:
    """Tell all panpan of a folder their share of the rates; call it before one starts and after one ends.

    A file is written only if the share changes. Nothing is raised if it cannot be written: the old share counts then.

    Args:
        folder: The shared folder; made if it is not there.
        rates: Limits of all together, by the provider's name.
        running: Number of those that run.
    """
    for provider, rate in rates.items():
        share = share_of(rate, running)
        path = _path(folder, provider, "rate")
        told = {"interval_s": share.interval_s, "seconds_per_token": share.seconds_per_token}
        try:
            if _fields(path) != told:
                _write(path, told)
        except ToolError as error:
            log.warning("the rate of %s is not shared: %s", provider, error)


@cache
def shared_pace(folder: Path, provider: str) -> "SharedPace":
    """Return the pace of a provider's requests, the same for all clients of this process, since they are one share."""
    return SharedPace(folder, provider)


class SharedPace:
    """Implements `Pace` by files in a folder.

    Args:
        folder: The shared folder.
        provider: Name of the provider.
        clock: Returns monotonic seconds.
        wall_clock: Returns the seconds since 1970 that this machine takes it to be.
        jitter: Returns a random number of at least 0 and less than 1.
        patience_s: Longest wait for the folder, which may be on a machine that is away.
    """

    def __init__(
        self,
        folder: Path,
        provider: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
        patience_s: float = 5.0,
    ) -> None:
        self._provider = provider
        self._rate_file = _path(folder, provider, "rate")
        self._pause_file = _path(folder, provider, "pause")
        self._clock = clock
        self._wall_clock = wall_clock
        self._jitter = jitter
        self._patience_s = patience_s
        self._began_s = clock()
        self._phase = jitter()
        self._sent_s: float | None = None
        """Time of the last request."""
        self._tokens_until_s = -inf
        """Time until which tokens of earlier replies hold back the next request."""
        self._paused_until_s = -inf
        self._pause_s = 0.0
        """Length of the last pause, less what replies have taken off."""
        self._seen = ""
        """Id of the newest pause that counted or was too old."""
        self._looked_s = -inf
        self._share = Share()
        self._away_until_s = -inf
        self._has_warned = False

    async def wait_s(self) -> float:
        """Return 0 if a request may be sent now, which then counts as sent; else the seconds until you ask again.

        The first request waits as if one had just been sent: the panpan that ran before this one may have sent it.
        """
        await self._look()
        now = self._clock()
        wait_s = max(self._paused_until_s, self._tokens_until_s, self._next_s()) - now
        if wait_s > 0:
            return wait_s
        self._sent_s = now
        return 0.0

    async def failed(self, failure: RetryableError) -> float:
        """Make all others pause if the provider asked for it; return the seconds of the pause that are left."""
        asked_s = failure.retry_after_s or 0.0
        asked_s = min(asked_s, MAX_PAUSE_S) if isfinite(asked_s) and asked_s > 0 else 0.0
        if not asked_s and not isinstance(failure, RateLimitError):
            return 0.0
        now = self._clock()
        left_s = self._paused_until_s - now
        if left_s > 0:  # it was sent before the pause
            if asked_s <= left_s:
                return left_s
            pause_s = asked_s
        else:
            pause_s = min(MAX_PAUSE_S, max(asked_s, 2 * self._pause_s or (0.0 if asked_s else FIRST_PAUSE_S)))
        self._seen = secrets.token_hex(8)
        self._pause_for(pause_s, now)
        await self._in_thread(_write, self._pause_file, {"id": self._seen, "pause_s": pause_s})
        return self._paused_until_s - self._clock()

    def replied(self, usage: Usage) -> None:
        """Count the tokens of a reply and its request, also those from the provider's cache."""
        self._pause_s = self._pause_s / 2 if self._pause_s > _LEAST_PAUSE_S else 0.0
        now, held_s = self._clock(), usage.context_tokens * self._share.seconds_per_token
        self._tokens_until_s = min(max(self._tokens_until_s, now) + held_s, now + MAX_INTERVAL_S)

    def _next_s(self) -> float:
        """Return the time of the next request, as far as the number of requests decides."""
        interval_s = self._share.interval_s
        if self._sent_s is not None:
            return self._sent_s + interval_s
        # those that begin together with less than one request a minute each are spread over the interval
        spread_s = interval_s if interval_s > _MINUTE_S else 0.0
        return self._began_s + interval_s + (self._phase - 0.5) * spread_s

    async def _look(self) -> None:
        """Take over what the files say; if they cannot be read in time, what they said before counts."""
        began_s = self._clock()
        found = await self._in_thread(_read, self._rate_file, self._pause_file, self._wall_clock)
        if found is None:
            return
        self._share, pause = found
        if pause is not None and pause.id != self._seen:
            self._seen = pause.id
            began_since_last_look = began_s - self._looked_s < pause.pause_s
            if began_since_last_look or pause.age_s < pause.pause_s:
                self._pause_for(pause.pause_s, self._clock())
        self._looked_s = began_s

    def _pause_for(self, pause_s: float, now: float) -> None:
        """Pause, and a little longer, so that not all come back together."""
        self._pause_s = pause_s
        spread_s = self._jitter() * max(1.0, pause_s / 2)
        self._paused_until_s = max(self._paused_until_s, now + pause_s + spread_s)

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return what `work` returns; None if the folder cannot be used, which is logged once."""
        if self._clock() < self._away_until_s:
            return None
        try:
            with anyio.fail_after(self._patience_s):
                return await to_thread.run_sync(work, *args, abandon_on_cancel=True)
        except TimeoutError:
            self._away_until_s = self._clock() + _AWAY_S
            self._warn("the folder does not answer")
        except ToolError as error:
            self._warn(str(error))
        return None

    def _warn(self, problem: str) -> None:
        if not self._has_warned:
            log.warning("the pace of %s is not shared: %s", self._provider, problem)
        self._has_warned = True


def _path(folder: Path, provider: str, kind: str) -> Path:
    name = quote(provider, safe="")
    if len(name) > _MAX_NAME_CHARS:
        from hashlib import blake2b

        name = f"{name[:_MAX_NAME_CHARS]}-{blake2b(name.encode(), digest_size=8).hexdigest()}"
    return folder / f"{name}.{kind}.json"


def _read(rate_file: Path, pause_file: Path, wall_clock: Callable[[], float]) -> tuple[Share, _Pause | None]:
    rate, pause = _fields(rate_file), _fields(pause_file)
    share = Share(_bounded(rate.get("interval_s"), MAX_INTERVAL_S), _bounded(rate.get("seconds_per_token"), _MINUTE_S))
    pause_s, named = _bounded(pause.get("pause_s"), MAX_PAUSE_S), pause.get("id")
    if not pause_s or not isinstance(named, str):
        return share, None
    try:
        age_s = wall_clock() - pause_file.stat().st_mtime
    except OSError:
        age_s = inf
    return share, _Pause(named, pause_s, age_s)


def _fields(path: Path) -> Mapping[str, Any]:
    """Return the fields of a JSON file; none if it is not there or holds something else.

    Raises:
        ToolError: It cannot be read.
    """
    try:
        found = json.loads(read_users_file(str(path), max_bytes=_MAX_BYTES))
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _bounded(value: Any, most: float) -> float:
    """Return a number between 0 and `most`; 0 for everything that is no positive number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(min(value, most)) if is_number and value > 0 else 0.0


def _write(path: Path, fields: Mapping[str, Any]) -> None:
    write_atomic(canonical_path(path.parent) / path.name, json.dumps(fields).encode())
