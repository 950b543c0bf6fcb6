"""Taking secrets out of what is logged, stored, shown or reported, and the providers' keys out of what a model is sent.

The rule: whatever leaves the process for a log, crash report, error or server reply passes a `Redactor` that knows the
keys in use. Shapes catch keys that nobody named. From what a model is sent and a session's log keeps, `KnownKeys` takes
those exact keys alone, since the rest of a file or output has to be what it is.
"""

import json
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote

from panpan.types.pattern import compile_late

REDACTED = "[redacted]"

MIN_SECRET_CHARS = 8
"""Shorter secrets are ignored: they would blank ordinary words."""

_SHAPES = compile_late(
    r"""
    (?P<block>-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?:(?!-----END)[\s\S]){0,20000}
        (?:-----END\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----)?)
  | (?P<header>(?i:\b(?:authorization|proxy-authorization)["']?\s{0,8}[:=]\s{0,8}["']?(?:bearer|basic|token)\s{1,8}
      | \b(?:x-api-key|api-key|x-goog-api-key|private-token)["']?\s{0,8}[:=]\s{0,8}["']?
      | \bbearer\s{1,8}(?=[\w.~+/=-]{16}))
      | ://[^\s/?\#@:\[\]]{1,200}:(?=[^\s/?\#@]{1,500}@)) (?P<value>(?!\[redacted\])[^\s"',;@]{4,})
  | (?P<key>(?<![A-Za-z0-9])(?:
        sk-(?=[A-Za-z_-]{0,99}[0-9])[A-Za-z0-9_-]{16,}     # OpenAI, Anthropic (sk-ant-…), OpenRouter, DeepSeek
      | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{20,}
      | glpat-[A-Za-z0-9_-]{16,}
      | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])
      | xox[abposr]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}
      | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,}
      | hf_[A-Za-z0-9]{16,} | gsk_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,} | pplx-[A-Za-z0-9]{20,} | r8_[A-Za-z0-9]{20,}
      | (?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}
      | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,} | tvly-[A-Za-z0-9_-]{16,}
      | eyJ[A-Za-z0-9_-]{8,999}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}   # JSON web token, RFC 7519
    ))
    """,
    re.VERBOSE,
)

_LOGIN = compile_late(r"://[^\s/?#@:\[\]]{0,200}:[^\s/?#@]{1,500}@|\bhttps?://[^\s/?#@:\[\]]{1,500}@", re.IGNORECASE)
"""A password, or on the web a name alone, which is a token then."""


class Redactor:
    """Replaces known secrets and what looks like a key by `[redacted]`.

    Args:
        secrets: Keys and passwords in use; also found where they were quoted for JSON or a URL.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings: set[str] = set()
        for secret in secrets:
            if len(secret) >= MIN_SECRET_CHARS and secret not in REDACTED:
                spellings |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
                spellings.add(quote(secret, safe="", errors="replace"))
        longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        self._exact = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def redact(self, text: str) -> str:
        if self._exact is not None:
            text = self._exact.sub(REDACTED, text)
        return _SHAPES.sub(lambda found: f"{found['header'] or ''}{REDACTED}", text)


def looks_like_key(value: str) -> bool:
    """True if the whole of `value` has the shape of a well-known key."""
    found = _SHAPES.fullmatch(value.strip())
    return found is not None and found["key"] is not None


def holds_login(value: str) -> bool:
    """True if an address in `value` carries a password or a token."""
    return _LOGIN.search(value) is not None


MIN_KEY_CHARS = 12
"""Shorter values are left: they are placeholders such as "ollama", and ordinary words."""

_REDACTED = REDACTED.encode()


class KnownKeys:
    """Replaces keys by `[redacted]`.

    Args:
        keys: Their exact values; those shorter than `MIN_KEY_CHARS` do not count.
        later: Returns further ones, which may become more.
    """

    def __init__(self, keys: Iterable[str] = (), later: Callable[[], Iterable[str]] = tuple) -> None:
        self._first = {key.strip() for key in keys}
        self._later = later

    @property
    def _keys(self) -> tuple[str, ...]:
        wanted = self._first | {key.strip() for key in self._later()}
        # The longest first, since one key may be the beginning of another.
        return tuple(sorted((key for key in wanted if len(key) >= MIN_KEY_CHARS), key=len, reverse=True))

    def redact(self, text: str) -> str:
        for key in self._keys:
            text = text.replace(key, REDACTED)
        return text

    def stream(self) -> "KeyStream":
        """Return a filter that does the same for an output that comes piece by piece."""
        return KeyStream(tuple(key.encode(errors="surrogateescape") for key in self._keys))


class KeyStream:
    """Takes the keys out of one output; made by `KnownKeys.stream`."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self._keys = keys
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return what is certain by now."""
        if not self._keys:
            return data
        data = self._held + data
        end = len(data) - max(_begun(data, key) for key in self._keys)
        while (start := self._start_of_key_across(data, end)) is not None:
            end = start
        self._held = data[end:]
        return self._redacted(data[:end])

    def finish(self) -> bytes:
        rest, self._held = self._held, b""
        return self._redacted(rest)

    def _start_of_key_across(self, data: bytes, position: int) -> int | None:
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
    return next((size for size in range(len(key) - 1, 0, -1) if data.endswith(key[:size])), 0)
