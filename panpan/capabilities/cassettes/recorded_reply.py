"""One recorded reply: the events of the model's stream with their times, or how it failed."""

from collections.abc import Mapping
from typing import Any

from panpan.capabilities.cassettes.stream_json import event_json, event_of
from panpan.errors import (
    AuthenticationError,
    CassetteError,
    ConfigError,
    ContextOverflowError,
    ProviderError,
    RateLimitError,
    RetryableError,
    StreamError,
)
from panpan.types.dataclass import dataclass
from panpan.types.events import StreamEvent
from panpan.types.messages import AssistantMessage

_FAILURES: Mapping[str, type[ProviderError]] = {
    kind.__name__: kind
    for kind in (
        ProviderError,
        AuthenticationError,
        ContextOverflowError,
        CassetteError,
        RetryableError,
        RateLimitError,
        StreamError,
    )
}


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """What a provider yielded for one request."""

    events: tuple[tuple[float, StreamEvent], ...]
    """Each with the seconds since the request was sent."""
    failure: ProviderError | None = None
    """What it raised in the end."""

    @property
    def message(self) -> AssistantMessage | None:
        """The whole reply; None where it failed or was cut off."""
        last = self.events[-1][1] if self.events else None
        return last if isinstance(last, AssistantMessage) else None

    @property
    def is_cut_off(self) -> bool:
        """Whether nobody waited for its end."""
        return self.message is None and self.failure is None

    def as_json(self) -> dict[str, Any]:
        """Return what a line of a cassette says of it."""
        return {
            "events": [[round(at_s, 4), event_json(event)] for at_s, event in self.events],
            "failure": None if self.failure is None else _failure_json(self.failure),
        }


def recorded_reply(line: Mapping[str, Any], place: str) -> RecordedReply:
    """Return the reply that a line of a cassette says.

    Args:
        line: The line.
        place: File and line number, for the error.

    Raises:
        ConfigError: It says none.
    """
    try:
        events = tuple((float(at_s), event_of(event)) for at_s, event in line["events"])
        failure = line.get("failure")
        return RecordedReply(events, None if failure is None else _failure_of(failure))
    except (KeyError, TypeError, ValueError) as exc:
        raise ConfigError(f"cassette {place}: the reply cannot be read: {_reason(exc)}") from exc


def _reason(exc: Exception) -> str:
    return f"there is no {exc}" if isinstance(exc, KeyError) else str(exc).splitlines()[0]


def _failure_json(failure: ProviderError) -> dict[str, Any]:
    kind = type(failure).__name__
    return {
        "kind": kind if kind in _FAILURES else "RetryableError" if isinstance(failure, RetryableError) else "",
        "text": str(failure),
        "provider": failure.provider,
        "status": failure.status,
    }


def _failure_of(value: Mapping[str, Any]) -> ProviderError:
    kind = _FAILURES.get(value["kind"], ProviderError)
    return kind(value["text"], provider=value.get("provider", ""), status=value.get("status"))
