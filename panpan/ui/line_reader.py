"""Lines that a person types, read in a thread, so that the event loop goes on."""

import sys

from anyio import to_thread


class LineReader:
    """Reads standard input line by line; whoever asks first gets the next line."""

    async def next(self) -> str | None:
        """Return the next line without its end, or None where the input has ended."""
        line = await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        return line.rstrip("\n") if line else None
