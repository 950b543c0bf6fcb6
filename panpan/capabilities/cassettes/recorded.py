"""Plays a recorded cassette in place of a model, reply after reply, as `cassette:PATH` does with tapes written by hand.

The rule is that of tapes: a reply is played only where the conversation still fits, so that no success is shown that
never was. Here that means: the tools that it calls are there, and each call was answered as well, or as badly, as when
it was recorded. `panpan replay` is stricter.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio

from panpan.capabilities.cassettes.recorded_file import RecordedFile, read_recorded
from panpan.capabilities.cassettes.recorded_reply import RecordedReply, recorded_reply
from panpan.errors import CassetteError, ProviderError, RetryableError
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage, ToolResultMessage

MAX_PAUSE_S = 2.0
"""Longest wait between two pieces, however long the model took."""

_SHOWN_CHARS = 200


class RecordedProvider:
    """Implements `Provider` with the replies of one recording, one for each request; without `sleep`, at once."""

    name = "cassette"

    def __init__(
        self,
        replies: Sequence[RecordedReply],
        *,
        outcomes: Mapping[str, bool] | None = None,
        place: str = "the cassette",
        sleep: Callable[[float], Awaitable[object]] | None = None,
    ) -> None:
        self._replies = without_retried(replies)
        self._outcomes = outcomes or {}
        self._place = place
        self._sleep = sleep
        self._played = 0

    @classmethod
    def from_file(cls, path: Path) -> "RecordedProvider":
        """Return a provider that plays a file, about as fast as the model spoke.

        Raises:
            ConfigError: It is not there, or is no recorded cassette.
        """
        file = read_recorded(path)
        return cls(replies_of(file), outcomes=outcomes_of(file), place=str(path), sleep=anyio.sleep)

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        """Yield the next reply.

        Raises:
            CassetteError: The recording is over, or the request does not fit.
            ProviderError: The recorded request failed.
        """
        if self._played >= len(self._replies):
            raise self._misfit(f"is over: it has {self._played} replies, and one more was asked for")
        reply = self._replies[self._played]
        self._check(reply, request)
        self._played += 1
        before_s = 0.0
        for at_s, event in reply.events:
            if self._sleep is not None and at_s > before_s:
                await self._sleep(min(at_s - before_s, MAX_PAUSE_S))
            before_s = at_s
            yield event
        if reply.failure is not None:
            raise final(reply.failure)
        if reply.is_cut_off:
            raise self._misfit(f"was cut off in reply {self._played}")

    def _check(self, reply: RecordedReply, request: ModelRequest) -> None:
        """Refuse a request that the reply does not answer."""
        offered = {tool.name for tool in request.tools}
        for use in reply.message.tool_uses if reply.message else ():
            if use.name not in offered:
                raise self._misfit(f"calls {use.name} in reply {self._played + 1}, which is not offered")
        for message in reversed(request.messages):
            if isinstance(message, AssistantMessage):
                return
            if isinstance(message, ToolResultMessage):
                self._check_outcome(message)

    def _check_outcome(self, result: ToolResultMessage) -> None:
        has_failed = self._outcomes.get(result.tool_use_id, result.is_error)
        if has_failed != result.is_error:
            before, now = ("failed", "succeeded") if has_failed else ("succeeded", "failed")
            call = f"the call {result.tool_use_id} {before} when it was recorded and {now} now"
            raise self._misfit(f"does not fit before reply {self._played + 1}: {call}: {result.text[:_SHOWN_CHARS]!r}")

    def _misfit(self, complaint: str) -> CassetteError:
        return CassetteError(f"{self._place} {complaint}", provider=self.name)

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return None

    async def prepare(self) -> None:
        """Do nothing: the recording is in memory."""

    async def aclose(self) -> None:
        """Do nothing: the recording is in memory."""


def replies_of(file: RecordedFile) -> list[RecordedReply]:
    """Return the replies of a recording in their order; raise `ConfigError` if one cannot be read."""
    return [recorded_reply(line, f"{file.path}:{number}") for number, line in file.of_type("cassette_reply")]


def outcomes_of(file: RecordedFile) -> dict[str, bool]:
    """Return True for each recorded call that failed, by its id."""
    outcomes = {}
    for _, line in file.of_type("user"):
        match line:
            case {"message": {"content": [{"type": "tool_result", "tool_use_id": str(id_)} as result]}}:
                outcomes[id_] = bool(result.get("is_error"))
    return outcomes


def without_retried(replies: Sequence[RecordedReply]) -> list[RecordedReply]:
    """Leave out the replies that failed and were asked for again: the next one stands in their place."""
    return [
        reply
        for reply, following in zip(replies, [*replies[1:], None], strict=True)
        if following is None or not isinstance(reply.failure, RetryableError)
    ]


def final(failure: ProviderError) -> ProviderError:
    """Return a recorded failure as one that is not tried again."""
    if not isinstance(failure, RetryableError):
        return failure
    return ProviderError(str(failure), provider=failure.provider, status=failure.status)
