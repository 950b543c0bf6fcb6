"""Output of a running command, as the screen shows it: paced, and of rewritten lines only the last state."""

import codecs

MAX_PER_S = 10
BURST = 10
"""Messages that may come at once after a silence."""

FLOOD_BYTES = 16_384
"""Waiting for the screen; from here on nobody waits: a command that floods is never slowed down by its output."""

MAX_SHOWN_CHARS = 8_000


class ProgressPacer:
    """Joins what a command prints into messages for the screen. All times are seconds of one clock."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._waiting = ""
        self._waiting_bytes = 0
        self._is_after_return = False
        self._allowance = float(BURST)
        self._counted_at: float | None = None

    def add(self, data: bytes) -> None:
        self._waiting += self._decoder.decode(data)
        self._waiting_bytes += len(data)
        if len(self._waiting) > 4 * MAX_SHOWN_CHARS:
            self._waiting = "…" + self._waiting[-MAX_SHOWN_CHARS:]

    def pause_s(self, now: float) -> float:
        """Return the seconds to wait before the next message."""
        self._count(now)
        if self._allowance >= 1 or self._waiting_bytes >= FLOOD_BYTES:
            return 0.0
        return (1 - self._allowance) / MAX_PER_S

    def take(self, now: float) -> str:
        """Return the message for the screen; nothing when it is too early."""
        self._count(now)
        if self._allowance < 1 - 1e-3:
            return ""
        self._allowance -= 1
        return self.take_rest()

    def take_rest(self) -> str:
        """Return all that waits, early or not."""
        text, self._waiting, self._waiting_bytes = self._waiting, "", 0
        if len(text) > MAX_SHOWN_CHARS:
            text = "…" + text[-MAX_SHOWN_CHARS:]
        return self._folded(text)

    def _count(self, now: float) -> None:
        if self._counted_at is not None:
            self._allowance = min(BURST, self._allowance + (now - self._counted_at) * MAX_PER_S)
        self._counted_at = now

    def _folded(self, text: str) -> str:
        """Return `text` with each state of a rewritten line on a line of its own, and of those in it only the last."""
        if not text:
            return ""
        was_after_return, self._is_after_return = self._is_after_return, text.endswith("\r")
        if was_after_return and not text.startswith(("\n", "\r")):
            text = "\n" + text
        if "\r" not in text:
            return text
        lead = "\n" if text.startswith("\r") and not text.startswith("\r\n") else ""
        lines = text.replace("\r\n", "\n").split("\n")
        return lead + "\n".join(next((state for state in reversed(line.split("\r")) if state), "") for line in lines)


MAX_HELD_BYTES = 1 << 16


class LineFolder:
    """Takes output piece by piece and returns it with rewritten lines folded."""

    def __init__(self) -> None:
        self._held = b""
        """The unfinished line: a carriage return may still come for it."""

    def feed(self, data: bytes) -> bytes:
        """Return what is certain by now."""
        data = self._held + data
        end = data.rfind(b"\n") + 1
        self._held = data[end:]
        done = self._folded_lines(data[:end])
        if len(self._held) > MAX_HELD_BYTES:
            folded = _folded(self._held)
            self._held = folded if len(folded) < MAX_HELD_BYTES else b""
            done += b"" if self._held else folded
        return done

    def finish(self) -> bytes:
        rest, self._held = _folded(self._held), b""
        return rest

    @staticmethod
    def _folded_lines(data: bytes) -> bytes:
        return b"\n".join(map(_folded, data.split(b"\n"))) if b"\r" in data else data


def _folded(line: bytes) -> bytes:
    """Return the last state of a line; a carriage return at its end, as in CRLF, stays."""
    if b"\r" not in line:
        return line
    states = line.split(b"\r")
    return next((state for state in reversed(states) if state), b"") + (b"" if states[-1] else b"\r")
