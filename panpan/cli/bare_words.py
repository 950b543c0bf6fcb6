"""A single word on the command line is a command, a slip of one, or of another program: never a prompt by itself.

`panpan login` or `panpan sesions` would otherwise go to a model, which costs money and answers something. With -p or
behind `--`, any text is a prompt.
"""

import re
import shlex
from collections.abc import Mapping, Sequence

import click

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
"""Looks like the name of a command. A word with another sign in it, or of another script, may be a sentence."""

_PRINT = re.compile(r"-[cqvy]*p|--print\b")
"""The option that says that a text is a prompt, also behind short flags that take no value."""

_MAY_HOLD_KEY = re.compile(r"key|header|\{", re.IGNORECASE)
"""Options whose values are not repeated in a message."""

_NEAR = 0.75
"""Least likeness of a word to a command that is suggested for it, from 0 to 1 (difflib)."""

SEVERAL_WORDS = "a prompt of several words needs quotes: panpan 'fix the failing test'"


def refuse_bare_word(ctx: click.Context, group: click.Group, given: Sequence[str], words: Sequence[str]) -> None:
    """Refuse a word that could be meant as a command and is none.

    Args:
        ctx: Of the group.
        group: Has all commands.
        given: The command line up to `words`.
        words: The command line from the first word that belongs to no option. With -p behind it, that is a prompt.

    Raises:
        click.UsageError: It is one; names the nearest commands, or all of them.
    """
    word, *rest = words
    if not _WORD.fullmatch(word) or any(_PRINT.match(other) for other in rest):
        return
    from difflib import get_close_matches

    options = ["…"] if any(_MAY_HOLD_KEY.search(text) for text in given) else given
    with_prompt = shlex.join(["panpan", *options, "-p"]).replace("'…'", "…")
    lines_by_name = _command_lines(ctx, group, with_prompt)
    close = get_close_matches(word.lower(), lines_by_name, n=1, cutoff=_NEAR)
    has_words = bool(rest) and not rest[0].startswith("-")
    if has_words and not close:
        raise click.UsageError(f"there is no command {word!r}, and {SEVERAL_WORDS}")
    if close:
        hint = f"did you mean {' or '.join(f'`{line}`' for line in lines_by_name[close[0]])}?"
    else:
        hint = f"the commands are {', '.join(group.list_commands(ctx))}."
    prompt = shlex.quote(" ".join(words)) if has_words else shlex.join(words)
    raise click.UsageError(f"there is no command {word!r}; {hint} If it is a prompt: {with_prompt} {prompt}")


def _command_lines(ctx: click.Context, group: click.Group, with_prompt: str) -> Mapping[str, Sequence[str]]:
    """Return by name the command lines that run a command, a command of a group, or a slash command of that name."""
    from panpan.app import slash_commands
    from panpan.faces.terminal.commands.registry import all_commands

    lines: dict[str, list[str]] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        for inner in command.list_commands(ctx) if isinstance(command, click.Group) else ():
            lines.setdefault(inner, []).append(f"panpan {name} {inner}")
    for slash in all_commands(slash_commands()):
        if not (slash.is_missing or slash.needs_terminal):
            lines.setdefault(slash.name, []).append(f"{with_prompt} /{slash.name}")
    return lines | {name: [f"panpan {name}"] for name in group.list_commands(ctx)}
