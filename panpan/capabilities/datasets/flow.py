"""How fast a file comes: slowly is well, but not so slowly that nobody would see its end."""

from collections.abc import Callable

from panpan.errors import ToolError

FLOOR_BYTES, FLOOR_S = 30_000, 300.0
"""What has to come within these seconds. A modem of 2,400 bit/s brings three times as much; a server that sends byte by
byte, so that no limit of silence ends it, would keep a download for ever."""


class TooSlowError(ToolError):
    """So little comes that it is given up."""


class Flow:
    """Counts what comes of one file, through all tries.

    Args:
        clock: Tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()
        self._came = 0

    def add(self, count: int) -> None:
        """Note that bytes have come.

        Raises:
            TooSlowError: They are too few for the time.
        """
        self._came += count
        now = self._clock()
        if now - self._since < FLOOR_S:
            return
        if self._came < FLOOR_BYTES:
            raise TooSlowError(
                f"it comes too slowly: {self._came:,} bytes in {now - self._since:.0f} s; what came is kept, and the "
                "same download goes on behind it"
            )
        self._came, self._since = 0, now
