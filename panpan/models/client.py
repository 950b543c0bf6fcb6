"""The model client: one provider bound to one model, with retries, the price and the time.

The rules: only a `RetryableError` is retried, the pause is announced before it begins, and nothing is retried once the
whole reply has been yielded. A model that stays away is asked few times if another one may answer in its place.
"""

import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from math import isfinite
from typing import Any, Protocol

import anyio

from panpan.config.models import Price
from panpan.config.stored_keys import LOGIN
from panpan.errors import AuthenticationError, ProviderError, RetryableError, StreamError
from panpan.models.wire_errors import THE_KEY
from panpan.types.dataclass import dataclass
from panpan.types.events import ModelEvent, RetryScheduled, StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage, Usage

TRIES_BEFORE_FALLBACK = 3
"""Most tries of a model that another one can replace."""

REST_S = 300.0
"""Seconds for which a model is not asked after another one had to replace it."""

ANNOUNCED_S = 1.0
"""Shortest wait for the pace that faces are told of."""

_NOT_FOUND = 404


class Pace(Protocol):
    """Pace of the requests to a provider, which others share; as it is here, nobody does."""

    async def wait_s(self) -> float:
        """Return 0 if a request may be sent now, which then counts as sent; else the seconds until you ask again."""
        return 0.0

    async def failed(self, failure: RetryableError) -> float:
        """Tell the others that a request failed; return the seconds of the common pause that are left."""
        return 0.0

    def replied(self, usage: Usage) -> None:
        """Count the tokens of a reply."""
        return


class OwnPace(Pace):
    """Pace of a client that shares no limits."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits on retries; all times in seconds.

    The pause is random, between zero and the current limit, so that many clients that failed together do not come back
    together: full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """

    max_tries: int = 8
    """Number of tries, including the first one."""
    base_s: float = 0.5
    """Limit on the first pause; it doubles with each further one."""
    cap_s: float = 30.0
    """Limit on every pause that the provider did not ask for."""
    max_retry_after_s: float = 60.0
    """Longest pause that a provider can ask for and get."""
    max_total_s: float = 600.0
    """Longest time from the first try to the beginning of the last."""

    def pause_s(self, failure: RetryableError, *, tries: int, elapsed_s: float, jitter: float) -> float:
        """Return the pause before the next try, in seconds.

        Args:
            failure: Error of the newest try.
            tries: Number of tries so far, at least 1.
            elapsed_s: Seconds since the first one began.
            jitter: A random number of at least 0 and less than 1.

        Raises:
            RetryableError: There is no further try; it is of the same kind as `failure`, and its text says why.
        """
        if tries >= self.max_tries:
            raise _given_up(failure, "" if tries == 1 else f" (tried {tries} times)")
        # The exponent is bounded because a user may set thousands of tries, and 2**2000 overflows a float.
        pause_s = jitter * min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 60))
        asked_s = failure.retry_after_s
        if asked_s is not None and isfinite(asked_s) and asked_s > 0:
            if asked_s > self.max_retry_after_s:
                raise _given_up(failure, f"; it asks to wait {asked_s:.0f} s, so try again later")
            pause_s = asked_s + jitter * self.base_s  # never earlier than the server asked
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


def _with_place(refusal: AuthenticationError, place: str) -> str:
    """Return a provider's refusal of a key, with the place of the key and advice."""
    is_stored = place == LOGIN
    key = f"the key from {LOGIN}" if is_stored else f"the key in {place}"
    what = str(refusal)
    named = what.replace(THE_KEY, key, 1) if THE_KEY in what else f"{what}; it was asked with {key}"
    mend = f"Run {LOGIN} {refusal.provider} again" if is_stored else "Fix it"
    return f"{named}. {mend}, or choose another model: /model, or --model"


class LLMClient:
    """Implements `ModelClient`.

    Args:
        provider: Provider of the model; closed with the client.
        options: The model, and the options for its replies.
        price: Price of the model; None if it is not known.
        key_place: Place of the key, for the error of a key that is not accepted.
        retry: Limits on retries.
        fallbacks: Clients that are asked in turn if the model is overloaded or unavailable; closed with this one.
        pace: Pace that it shares with others; None for its own.
        sleep: Waits for a number of seconds, and can be cancelled.
        jitter: Returns a random number of at least 0 and less than 1.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        provider: Provider,
        options: ModelOptions,
        *,
        price: Price | None = None,
        key_place: str = "",
        retry: RetryPolicy | None = None,
        fallbacks: "Sequence[LLMClient]" = (),
        pace: Pace | None = None,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self.price = price
        self._provider = provider
        self._key_place = key_place
        self._retry = retry or RetryPolicy()
        self._fallbacks = fallbacks
        self._pace = pace or OwnPace()
        self._rests_until = 0.0
        """Time until which the model is not asked, if it has a fallback."""
        self._sleep = sleep
        self._jitter = jitter
        self._clock = clock
        self._pauses: set[anyio.CancelScope] = set()

    @property
    def model(self) -> str:
        """The provider's name of the model."""
        return self.options.model

    def change_options(self, **changed: Any) -> None:
        """Change options from the next request on, also those of the fallbacks."""
        self.options = replace(self.options, **changed)
        for fallback in self._fallbacks:
            fallback.change_options(**changed)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of one reply, which ends with an `AssistantMessage`.

        Raises:
            ProviderError: The model, and each that may replace it, could not be asked; no further try is made.
        """
        *replaceable, last = (self, *self._fallbacks)
        awake = [one for one in replaceable if one._rests_until <= self._clock()]
        for client, following in zip(awake, [*awake[1:], last], strict=False):
            is_whole = False
            policy = replace(client._retry, max_tries=min(client._retry.max_tries, TRIES_BEFORE_FALLBACK))
            try:
                async with aclosing(client._stream(request, policy)) as events:
                    async for event in events:
                        is_whole = isinstance(event, AssistantMessage)
                        yield event
                return
            except ProviderError as error:
                if is_whole or not (isinstance(error, RetryableError) or error.status == _NOT_FOUND):
                    raise
                failure = error
            client._rests_until = self._clock() + REST_S
            yield RetryScheduled(1, f"{failure}; {following.model} answers instead of {client.model}", 0.0)
        async with aclosing(last._stream(request, last._retry)) as events:
            async for event in events:
                yield event

    async def _stream(self, request: ModelRequest, policy: RetryPolicy) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of one reply of this client's own model."""
        # Not tenacity: it sleeps inside its own loop, where a generator cannot yield the pause to a face.
        began_s = self._clock()
        tries, is_hurried = 0, False
        while True:
            tries += 1
            is_whole = False
            if not is_hurried:
                asked_s = self._clock()
                async with aclosing(self._turn(tries)) as waits:
                    async for wait in waits:
                        yield wait
                began_s += self._clock() - asked_s  # only its own failures use up the time for tries
            try:
                async with aclosing(self._try_once(request)) as events:
                    async for event in events:
                        is_whole = isinstance(event, AssistantMessage)
                        yield event
                return
            except AuthenticationError as exc:
                if not self._key_place:
                    raise
                raise AuthenticationError(
                    _with_place(exc, self._key_place),
                    provider=exc.provider,
                    status=exc.status,
                    request_id=exc.request_id,
                ) from exc
            except RetryableError as exc:
                if is_whole:
                    raise
                failure = exc
            common_s = await self._pace.failed(failure)
            pause_s = max(common_s, self._pause_s(policy, failure, tries, self._clock() - began_s))
            yield RetryScheduled(attempt=tries + 1, reason=str(failure), delay_s=pause_s)
            is_hurried = not await self._pause(pause_s)

    async def _turn(self, tries: int) -> AsyncGenerator[RetryScheduled, None]:
        """Wait until the pace allows the next try, or the user wants it now; yield each wait that takes long."""
        while (wait_s := await self._pace.wait_s()) > 0:
            if wait_s >= ANNOUNCED_S:
                yield RetryScheduled(tries, f"waiting for the rate limit of {self._provider.name}", wait_s)
            if not await self._pause(wait_s):
                return

    def retry_now(self) -> bool:
        """End the pause before the next try.

        Returns:
            True if there was a pause to end.
        """
        pauses = [pause for pause in self._pauses if not pause.cancel_called]
        for pause in pauses:
            pause.cancel("the user wants the next try now")
        return any([bool(pauses), *(fallback.retry_now() for fallback in self._fallbacks)])

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the number of input tokens of a request, or None if the provider cannot count them."""
        return await self._provider.count_tokens(request, self.options)

    async def prepare(self) -> None:
        """Do the work that the first request would wait for."""
        await self._provider.prepare()

    async def aclose(self) -> None:
        """Close the provider, and the fallbacks."""
        for fallback in self._fallbacks:
            await fallback.aclose()
        await self._provider.aclose()

    async def _try_once(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of one try, with price and time in the message."""
        began_s = self._clock()
        async with aclosing(self._provider.stream(request, self._options_for(request))) as events:
            async for event in events:
                if isinstance(event, AssistantMessage):
                    self._pace.replied(event.usage)
                    yield self._completed(event, self._clock() - began_s)
                    return
                yield event
        name = self._provider.name
        raise StreamError(f"{name} ended the reply without a message", provider=name)

    def _options_for(self, request: ModelRequest) -> ModelOptions:
        most = request.max_output_tokens
        if most is None or most >= self.options.max_output_tokens:
            return self.options
        return replace(self.options, max_output_tokens=most)

    def _completed(self, message: AssistantMessage, duration_s: float) -> AssistantMessage:
        cost_usd = None if self.price is None else self.price.cost_usd(message.usage)
        return message.model_copy(update={"cost_usd": cost_usd, "duration_s": duration_s})

    async def _pause(self, pause_s: float) -> bool:
        """Wait for the pause, or until `retry_now`; return True if it was the pause."""
        with anyio.CancelScope() as pause:
            self._pauses.add(pause)
            try:
                await self._sleep(pause_s)
            finally:
                self._pauses.discard(pause)
        return not pause.cancelled_caught

    def _pause_s(self, policy: RetryPolicy, failure: RetryableError, tries: int, elapsed_s: float) -> float:
        try:
            return policy.pause_s(failure, tries=tries, elapsed_s=elapsed_s, jitter=self._jitter())
        except RetryableError as exc:
            raise exc from failure
