"""Progress bars as they look in the end: of a line that was written over with carriage returns, only its last state.

The rule: nothing else is changed, and memory stays bounded: a line longer than `MAX_HELD_BYTES` passes as it is.
"""

MAX_HELD_BYTES = 1 << 16


class LineFolder:
    """Takes output piece by piece and returns it with rewritten lines folded."""

    def __init__(self) -> None:
        self._held = b""
        """The unfinished line: a carriage return may still come for it."""

    def feed(self, data: bytes) -> bytes:
        """Return what of the output is certain by now."""
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
        """Return the rest."""
        rest, self._held = _folded(self._held), b""
        return rest

    @staticmethod
    def _folded_lines(data: bytes) -> bytes:
        if b"\r" not in data:
            return data
        return b"\n".join(_folded(line) for line in data.split(b"\n"))


def _folded(line: bytes) -> bytes:
    """Return the last state of a line; a carriage return at its end, as in CRLF, stays."""
    states = line.split(b"\r")
    if len(states) == 1:
        return line
    ending = b"" if states[-1] else b"\r"
    return next((state for state in reversed(states) if state), b"") + ending
