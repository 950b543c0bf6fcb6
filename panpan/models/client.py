"""What the loop asks: one provider bound to one model, with tries again, the price and the time.

The rules: only a `RetryableError` is tried again, the pause is announced before it begins, and nothing is tried again
once the whole reply has been yielded.
"""

import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from math import isfinite
from typing import Any

import anyio

from panpan.config.models import Price
from panpan.config.stored_keys import LOGIN
from panpan.errors import AuthenticationError, RetryableError, StreamError
from panpan.models.wire_errors import THE_KEY
from panpan.types.dataclass import dataclass
from panpan.types.events import ModelEvent, RetryScheduled, StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of trying again; all times in seconds.

    The pause is between nothing and the current bound, so that many clients that failed together do not come back
    together: full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """

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


def _with_place(refusal: AuthenticationError, place: str) -> str:
    """Return what a provider said of a key, with the place of the key, and what to do."""
    is_stored = place == LOGIN
    key = f"the key from {LOGIN}" if is_stored else f"the key in {place}"
    what = str(refusal)
    named = what.replace(THE_KEY, key, 1) if THE_KEY in what else f"{what}; it was asked with {key}"
    mend = f"Run {LOGIN} {refusal.provider} again" if is_stored else "Fix it"
    return f"{named}. {mend}, or choose another model: /model, or --model"


class LLMClient:
    """Implements `ModelClient`.

    Args:
        provider: How the model is reached; closed with the client.
        options: The model, and how it should answer.
        price: What it costs.
        key_place: Where the key was found, for the error of a key that is not accepted.
        retry: Bounds of trying again.
        sleep: Waits for so many seconds, and can be cancelled.
        jitter: Returns a random number of at least 0 and less than 1.
        clock: Returns seconds that only ever grow.
    """

    def __init__(
        self,
        provider: Provider,
        options: ModelOptions,
        *,
        price: Price | None = None,
        key_place: str = "",
        retry: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self.price = price
        self._provider = provider
        self._key_place = key_place
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._jitter = jitter
        self._clock = clock
        self._pauses: set[anyio.CancelScope] = set()

    @property
    def model(self) -> str:
        """Name of the model, as the provider knows it."""
        return self.options.model

    def change_options(self, **changed: Any) -> None:
        """Answer in another way from the next request on."""
        self.options = replace(self.options, **changed)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of one reply, which ends with an `AssistantMessage`.

        Raises:
            ProviderError: The model could not be asked; no further try is made.
        """
        # Not tenacity: it sleeps inside its own loop, from where a generator cannot yield the pause to a face.
        began_s = self._clock()
        tries = 0
        while True:
            tries += 1
            is_whole = False
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
            pause_s = self._pause_s(failure, tries, self._clock() - began_s)
            yield RetryScheduled(attempt=tries + 1, reason=str(failure), delay_s=pause_s)
            await self._pause(pause_s)

    def retry_now(self) -> bool:
        """End the pause before the next try.

        Returns:
            Whether there was a pause to end.
        """
        pauses = [pause for pause in self._pauses if not pause.cancel_called]
        for pause in pauses:
            pause.cancel("the user wants the next try now")
        return bool(pauses)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return how many input tokens a request has, or None where the provider cannot say."""
        return await self._provider.count_tokens(request, self.options)

    async def prepare(self) -> None:
        """Do beforehand what the first request would wait for."""
        await self._provider.prepare()

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()

    async def _try_once(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of one try; the message gets its price and its time."""
        began_s = self._clock()
        async with aclosing(self._provider.stream(request, self._options_for(request))) as events:
            async for event in events:
                if isinstance(event, AssistantMessage):
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

    async def _pause(self, pause_s: float) -> None:
        """Wait so many seconds, or until `retry_now`."""
        with anyio.CancelScope() as pause:
            self._pauses.add(pause)
            try:
                await self._sleep(pause_s)
            finally:
                self._pauses.discard(pause)

    def _pause_s(self, failure: RetryableError, tries: int, elapsed_s: float) -> float:
        try:
            return self._retry.pause_s(failure, tries=tries, elapsed_s=elapsed_s, jitter=self._jitter())
        except RetryableError as exc:
            raise exc from failure
