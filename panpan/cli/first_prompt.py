"""`panpan "fix the test"` on a terminal: the interactive loop, which finds that prompt typed already."""

from panpan.system.terminal_text import clean_for_terminal
from panpan.ui.line_reader import LineReader
from panpan.ui.stdin import StdinReader
from panpan.ui.stdout import StdoutWriter


class FirstPrompt(LineReader):
    """Reads a terminal on which one prompt was typed before panpan started.

    Args:
        prompt: What the command line says.
        stdin: Reads the terminal.
        out: Where the prompt is shown, as the terminal would have shown it.
    """

    def __init__(self, prompt: str, stdin: StdinReader, out: StdoutWriter) -> None:
        super().__init__(stdin)
        self._prompt: str | None = prompt
        self._out = out

    async def next(self) -> str | None:
        """Return the prompt of the command line, and after it what is typed."""
        if self._prompt is None:
            return await super().next()
        prompt, self._prompt = self._prompt, None
        await self._out.write(f"{clean_for_terminal(prompt)}\n")
        return prompt
