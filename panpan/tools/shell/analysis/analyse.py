"""What a command line would do: its text parsed, and each of its simple commands judged.

The rule: this is the one way in; whoever decides about a command line decides on these facts.
"""

from functools import lru_cache

from panpan.tools.shell.analysis.facts import LineFacts
from panpan.tools.shell.analysis.judge import judge
from panpan.tools.shell.analysis.parser import ShellParser

_MOST_REMEMBERED = 64


@lru_cache(_MOST_REMEMBERED)
def analyse(line: str) -> LineFacts:
    """Return what running `line` in a shell would do; nothing is raised, and what is not known is None in it.

    The same line is asked about several times on its way through gate and tool, so the last ones are remembered.
    """
    parsed = ShellParser().parse(line)
    return LineFacts(parsed, tuple(judge(command) for command in parsed.commands))
