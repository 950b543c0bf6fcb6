"""`panpan --plain`: the REPL as printed lines."""

import os
import sys
from contextlib import nullcontext
from time import monotonic

from panpan.cli.shown_sessions import SessionCallbacks, sessions_on
from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.options import Options
from panpan.cli_kit.questions import TerminalQuestions
from panpan.cli_kit.stdin import StdinReader
from panpan.faces.plain.line_reader import LineReader, YesOrNo
from panpan.faces.plain.line_screen import LineScreen
from panpan.faces.plain.run import run_lines
from panpan.faces.turn_text import WaitingTime


async def run_lines_for(options: Options, out: StdoutWriter) -> int:
    """Run the REPL line by line and return the exit code. Raise PanpanError if the session could not be opened."""
    lines, waiting = LineReader(StdinReader(sys.stdin)), WaitingTime(monotonic)
    screen = LineScreen(out, lines, os.environ, waiting, has_colour=out.has_colour(os.environ))
    questions = (lambda: nullcontext(TerminalQuestions(is_plain=True))) if out.is_terminal else None
    around = SessionCallbacks(os.environ, YesOrNo(out, lines), questions, screen.warn, screen.warn)
    sessions = sessions_on(lambda hub, commands: screen, options, waiting, around)
    return await run_lines(sessions, screen, options["first_prompt"])
