"""The first place where two pieces of JSON differ, and how, in few lines for people."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

from panpan.types.dataclass import dataclass

MAX_LINES = 12
MAX_CHARS = 160
"""Of one line of the diff."""

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values differ first."""

    field: str
    """Such as `messages[3].content[0].text`; empty where they are no values of the same kind at all."""
    recorded: Any
    """What was recorded; None where there was nothing."""
    now: Any

    @property
    def diff(self) -> str:
        """The two values against each other, as lines."""
        before, after = _lines(self.recorded), _lines(self.now)
        changed = [line for line in unified_diff(before, after, "recorded", "now", lineterm="", n=0)][2:]
        shown = [line[:MAX_CHARS] for line in changed if not line.startswith("@@")]
        if not shown:  # the ends of lines differ, which no line shows
            shown = [f"-{self.recorded!r}"[:MAX_CHARS], f"+{self.now!r}"[:MAX_CHARS]]
        left_out = len(shown) - MAX_LINES
        return "\n".join([*shown[:MAX_LINES], *([f"… {left_out} more lines"] if left_out > 0 else [])])

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"field": self.field, "recorded": self.recorded, "now": self.now, "diff": self.diff}


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first request that is not as it was recorded."""

    request: int
    """Its number, counted from 1; 0 where no single one is meant."""
    difference: Difference
    what: str = ""
    """What is meant instead of a request."""

    @property
    def sentence(self) -> str:
        """Say which request and which field differ."""
        return f"{self.what or f'request {self.request}'} differs in {self.difference.field or 'its kind'}"

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"request": self.request, "what": self.what, **self.difference.as_json()}


def first_difference(recorded: Any, now: Any) -> Difference | None:
    """Return the first difference in the order of the recorded value; None where both are the same."""
    found = next(_differences(recorded, now, ""), None)
    if found is None:
        return None
    place, before, after = found
    return Difference(
        place.removeprefix("."), None if before is _MISSING else before, None if after is _MISSING else after
    )


def _differences(recorded: Any, now: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    match recorded, now:
        case Mapping(), Mapping():
            for name in [*recorded, *(name for name in now if name not in recorded)]:
                yield from _differences(recorded.get(name, _MISSING), now.get(name, _MISSING), f"{place}.{name}")
        case list() | tuple(), list() | tuple():
            for index in range(max(len(recorded), len(now))):
                yield from _differences(_item(recorded, index), _item(now, index), f"{place}[{index}]")
        case _ if recorded is not now and (type(recorded) is not type(now) or recorded != now):
            yield place, recorded, now


def _item(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else _MISSING


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    return value.splitlines() if isinstance(value, str) else [json.dumps(value, ensure_ascii=False)]
