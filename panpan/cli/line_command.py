"""`panpan` on a terminal that shall only get lines."""

import os
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

from panpan.cli.session_opening import session_of
from panpan.cli_kit.failures import StdoutWriter, say
from panpan.cli_kit.options import Options
from panpan.cli_kit.questions import TerminalQuestions
from panpan.config.locations import Locations
from panpan.faces.plain.line_face import LineAsker, LineReader, YesOrNo
from panpan.faces.plain.line_loop import run_line_loop
from panpan.faces.session_change import SessionChange
from panpan.faces.stdin import StdinReader
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_for_terminal


class FirstPrompt(LineReader):
    """Reads a terminal on which one prompt was typed before panpan started."""

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


async def run_line_loop_for(options: Options, out: StdoutWriter) -> int:
    """Run the line loop and return the exit code. Raise PanpanError if the session could not be opened."""
    stdin = StdinReader(sys.stdin)
    prompt = options["first_prompt"]
    lines = LineReader(stdin) if prompt is None else FirstPrompt(prompt, stdin, out)
    has_colour = out.is_terminal and "NO_COLOR" not in os.environ
    yes_or_no = YesOrNo(out, LineReader(stdin))  # which the prompt of the command line does not answer
    places = _places(options)
    ask = LineAsker(out, lines, shown=places.shown)

    def opening(**changed: Any) -> AbstractAsyncContextManager[Session]:
        return session_of(
            {**options, **changed},
            ask=ask,
            ask_user=ask.user,
            ask_plan=ask.plan,
            ask_yes_or_no=yes_or_no,
            questions=(lambda: nullcontext(TerminalQuestions(is_plain=True))) if out.is_terminal else None,
            warn=say,
        )

    change = SessionChange(
        lambda session_id: opening(
            continues=False, resume=session_id, session_id=None, session_name=None, forks=False, record=None
        ),
        warn=say,
    )
    return await run_line_loop(opening, change, out, lines, env=os.environ, has_colour=has_colour, waiting=ask.waiting)


def _places(options: Options) -> Locations:
    return Locations.find(Path(options["cwd"] or ".").expanduser().absolute(), os.environ)
