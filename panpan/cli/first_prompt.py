"""`panpan "fix the test"` on a terminal: the interactive loop, which finds that prompt typed already."""

from panpan.cli_kit.stdout import StdoutWriter
from panpan.faces.plain.line_asker import LineReader
from panpan.faces.stdin import StdinReader
from panpan.system.text.terminal_text import clean_for_terminal


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
