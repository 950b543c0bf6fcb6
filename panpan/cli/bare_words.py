"""A single word on the command line is a command, a slip of one, or of another program: never a prompt by itself.

`panpan login` or `panpan sesions` would otherwise go to a model, which costs money and answers something. With -p or
behind `--`, any text is a prompt.
"""

import re
from collections.abc import Iterable, Sequence

import click

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
"""Looks like the name of a command. A word with another sign in it, or of another script, may be a sentence."""

_PRINT = re.compile(r"-[cqvy]*p|--print\b")
"""The option that says that a text is a prompt, also behind short flags that take no value."""

_NEAR = 0.75
"""Least likeness of a word to a command that is suggested for it, from 0 to 1 (difflib)."""

SEVERAL_WORDS = "a prompt of several words needs quotes: panpan 'fix the failing test'"


def refuse_bare_word(words: Sequence[str], commands: Iterable[str]) -> None:
    """Refuse a word that could be meant as a command and is none.

    Args:
        words: The command line from the first word that belongs to no option. With -p behind it, that is a prompt.
        commands: Names of all there are.

    Raises:
        click.UsageError: It is one; names the nearest command, or all of them.
    """
    word, *rest = words
    if not _WORD.fullmatch(word) or any(_PRINT.match(other) for other in rest):
        return
    from difflib import get_close_matches

    from panpan.ui.repl.commands.registry import all_commands

    by_word = {command.name: f"panpan -p /{command.name}" for command in all_commands() if not command.is_missing}
    by_word |= {name: f"panpan {name}" for name in commands}
    close = get_close_matches(word.lower(), by_word, n=1, cutoff=_NEAR)
    if rest and not rest[0].startswith("-") and not close:
        raise click.UsageError(f"there is no command {word!r}, and {SEVERAL_WORDS}")
    hint = f"did you mean `{by_word[close[0]]}`?" if close else f"the commands are {', '.join(sorted(commands))}."
    raise click.UsageError(f"there is no command {word!r}; {hint} If it is a prompt: panpan -p {word!r}")
