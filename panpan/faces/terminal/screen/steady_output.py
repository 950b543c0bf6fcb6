"""Terminal output that can be held back, so that a change of the screen goes out in one write and nothing flickers.

To print above the input, what is below has to be erased and drawn again. Three writes would show an empty screen in
between; held, they are one.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from panpan.cli_kit.stdout import drop_terminal

_BEGIN_UPDATE, _END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output (https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036); others ignore it."""

_GONE = (errno.EIO, errno.EPIPE, errno.ENXIO)
"""A terminal that was closed; SIGHUP, which comes with it, ends the program in good order."""


class SteadyOutput(Vt100_Output):
    """Writes to a terminal.

    Args:
        stdout: The terminal.
        term: Its kind, as `TERM` says it.
    """

    def __init__(self, stdout: TextIO, term: str | None) -> None:
        # The cursor's position is never asked for: the answer comes as keys, and could be taken for some.
        terminal = Vt100_Output.from_pty(stdout, term)
        super().__init__(stdout, terminal.get_size, term=term, enable_cpr=False)
        self._is_held = False
        self.rows_more: Callable[[], int] = lambda: 0
        """Asked when the cursor goes up: rows that came in between since the last drawing."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep what is written until the next flush after this."""
        self._is_held = True
        self.write_raw(_BEGIN_UPDATE)
        try:
            yield
        finally:
            self.write_raw(_END_UPDATE)
            self._is_held = False

    def flush(self) -> None:
        """Write what was collected, unless it is held."""
        if self._is_held:
            return
        try:
            super().flush()
        except OSError as error:
            if error.errno not in _GONE:
                raise
            drop_terminal()

    def erase_down(self) -> None:
        """Erase from the beginning of this row on; not from the corner of the screen, where tmux would keep it all.

        tmux takes that for clearing the screen and puts what was there into its history (`scroll-on-clear`).
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def cursor_up(self, amount: int) -> None:
        """Go up, also past rows that the terminal broke anew."""
        super().cursor_up(amount + self.rows_more())

    def disable_bracketed_paste(self) -> None:
        """Leave it on while held: a paste that comes at that moment must not be taken for typing."""
        if not self._is_held:
            super().disable_bracketed_paste()

    @property
    def size(self) -> Size:
        """Rows and columns."""
        return self.get_size()
