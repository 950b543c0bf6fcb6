"""What a command line would do: its text parsed, and each of its simple commands judged.

The rule: this is the one way in; whoever decides about a command line decides on these facts.
"""

import os
from dataclasses import replace
from functools import lru_cache

from panpan.shell_analysis.facts import LineFacts, TooNestedError
from panpan.shell_analysis.judge import judge
from panpan.shell_analysis.parser import ShellParser
from panpan.shell_analysis.working_directory import find_shell, is_bash

_MOST_REMEMBERED = 64


def analyse(line: str, start: str | None = None) -> LineFacts:
    """Return what running `line` would do in the shell that runs commands here.

    What is not known is None in it. The same line is asked about several times on its way through gate and tool, so
    the last ones are remembered.

    Args:
        line: The command line.
        start: The absolute path of the folder in which it starts, for whoever may only refuse: then words such as
            `$PWD/src` are the paths that they become. A line is never run for what is found so.

    Raises:
        TooNestedError: The line cannot be judged, and so may not run.
    """
    return analysed_for(find_shell(), os.environ.get("HOME", ""), line, start)


@lru_cache(_MOST_REMEMBERED)
def analysed_for(shell: str, home: str, line: str, start: str | None = None) -> LineFacts:
    """Return what running `line` would do in the shell at this path, as long as HOME is what is given.

    What is not bash may read the line in its own way.

    Raises:
        TooNestedError: As for `analyse`.
    """
    try:
        parsed = ShellParser().parse(line, start)
        if not is_bash(shell):
            parsed = replace(parsed, oddities=(*parsed.oddities, "text for a shell that is not bash"))
        return LineFacts(parsed, tuple(judge(command) for command in parsed.commands))
    except RecursionError:  # `xargs xargs xargs …`
        raise TooNestedError from None
