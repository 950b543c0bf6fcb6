"""Taking the providers' keys out of what a model is sent and a log keeps, and nothing else.

The rule: only these exact keys go, since the rest of a file or output has to be what it is. What leaves panpan for logs
and reports passes a `Redactor` (`redact.py`), which also takes out what merely looks like a key.
"""

from collections.abc import Iterable

from panpan.system.text.redact import REDACTED

MIN_KEY_CHARS = 12
"""Shorter values are left: they are placeholders such as "ollama", and ordinary words."""

_REDACTED = REDACTED.encode()


class KnownKeys:
    """Replaces keys by `[redacted]`.

    Args:
        keys: Their exact values; those shorter than `MIN_KEY_CHARS` do not count.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        wanted = {key.strip() for key in keys}
        # The longest first: one key may begin like another.
        self._keys = tuple(sorted((key for key in wanted if len(key) >= MIN_KEY_CHARS), key=len, reverse=True))

    def redact(self, text: str) -> str:
        """Return `text` without the keys."""
        for key in self._keys:
            text = text.replace(key, REDACTED)
        return text

    def stream(self) -> "KeyStream":
        """Return what does the same for an output that comes piece by piece."""
        return KeyStream(tuple(key.encode(errors="surrogateescape") for key in self._keys))


class KeyStream:
    """Takes the keys out of one output; made by `KnownKeys.stream`."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self._keys = keys
        self._held = b""
        """What may be the beginning of a key."""

    def feed(self, data: bytes) -> bytes:
        """Return what of the output is certain by now."""
        if not self._keys:
            return data
        data = self._held + data
        end = len(data) - max(_begun(data, key) for key in self._keys)
        while (start := self._start_of_key_across(data, end)) is not None:
            end = start
        self._held = data[end:]
        return self._redacted(data[:end])

    def finish(self) -> bytes:
        """Return the rest."""
        rest, self._held = self._held, b""
        return self._redacted(rest)

    def _start_of_key_across(self, data: bytes, position: int) -> int | None:
        """Return where a whole key begins that stands before and behind a position."""
        for key in self._keys:
            start = data.find(key, max(0, position - len(key) + 1), position + len(key) - 1)
            if 0 <= start < position:
                return start
        return None

    def _redacted(self, data: bytes) -> bytes:
        for key in self._keys:
            data = data.replace(key, _REDACTED)
        return data


def _begun(data: bytes, key: bytes) -> int:
    """Return how much of `key` stands at the end of `data`."""
    return next((size for size in range(len(key) - 1, 0, -1) if data.endswith(key[:size])), 0)
