"""Standard output that is kept."""

from panpan.cli_kit.failures import StdoutWriter


class Memory(StdoutWriter):
    """Keeps what is written."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        self.is_terminal = is_terminal
        self.text = ""

    async def write(self, text: str) -> None:
        self.text += text
