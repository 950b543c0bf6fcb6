"""Lines that a person types."""

from panpan.ui.stdin import StdinReader


class LineReader:
    """Reads standard input line by line; whoever asks first gets the next line."""

    def __init__(self, stdin: StdinReader) -> None:
        self._stdin = stdin

    async def next(self) -> str | None:
        """Return the next line without its end, or None where the input has ended."""
        line = await self._stdin.line()
        return None if line is None else line.decode(errors="replace").rstrip("\r\n")

    def drop_typed_ahead(self) -> None:
        """Forget what was typed on a terminal before now."""
        self._stdin.drop_typed_ahead()
