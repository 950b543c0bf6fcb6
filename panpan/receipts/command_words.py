"""Simple commands of a line, and the seeds in them."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from panpan.errors import PanpanError
from panpan.receipts.digests import storable
from panpan.shell_analysis.facts import SimpleCommand
from panpan.shell_analysis.judge import analyse
from panpan.types.pattern import compile_late

Words: TypeAlias = tuple[tuple[str, ...], ...]

_MOST_COMMANDS = 100
_MOST_WORDS = 200
_MAX_WORD_CHARS = 1_000
_MOST_SEEDS = 20
_MAX_SEED_CHARS = 100
_UNPARSED = "what could not be parsed"
_SEED_NAME = r"(?i:(?:[a-z0-9_.-]*[_.-])?(?:seeds?|random[_-]?state))|[A-Z0-9_]*SEED[A-Z0-9_]*"
_OPTION = compile_late(rf"--?({_SEED_NAME})(?:=(.*))?", re.DOTALL)
_ASSIGNED = compile_late(rf"[+~]*({_SEED_NAME})=(.+)", re.DOTALL)
_IN_SOURCE = compile_late(rf"(?:^|\s)({_SEED_NAME})=([^\s'\"$`;&|]+)")
_VALUE = compile_late(r"[-+]?[0-9][0-9_., -]*|(?i:[0-9a-f]{1,64}|random|none)|\[[0-9, ]*\]|\{seed\}")
_VARIABLE = compile_late(r"[A-Z0-9_]*SEED[A-Z0-9_]*")


def commands_of(line: str, argv: Sequence[str]) -> Words:
    """Return the simple commands of a line, each with its words; none if it cannot be parsed.

    A word that is known only when the command runs is given as it is written, such as `$HOME`.

    Args:
        line: A line for a shell; empty if `argv` is all.
        argv: The words of a program.
    """
    if not line:
        return (_cut(argv),) if argv else ()
    return tuple(_cut(_words(command)) for command in _parsed(line)[:_MOST_COMMANDS] if command.words)


def seeds_of(line: str, argv: Sequence[str], environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the seeds in the words of a command and in its variables, by name.

    Args:
        line: A line for a shell; empty if `argv` is all.
        argv: The words of a program.
        environment: Variables.
    """
    found = {name: value for name, value in environment.items() if _VARIABLE.fullmatch(name)}
    if line:
        for command in _parsed(line):
            found |= dict(_IN_SOURCE.findall(command.source)) if command.assignments else {}
            found |= _seeds_in(_words(command))
    else:
        found |= _seeds_in(argv)
    fit = {name: value.strip("'\"") for name, value in found.items() if len(value) <= _MAX_SEED_CHARS}
    return dict([(name, value) for name, value in sorted(fit.items()) if _VALUE.fullmatch(value)][:_MOST_SEEDS])


def _seeds_in(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        if match := _OPTION.fullmatch(word):
            value = match[2] if match[2] is not None else words[at + 1] if at + 1 < len(words) else ""
            found[match[1].lstrip("-")] = value
        elif match := _ASSIGNED.fullmatch(word):
            found[match[1]] = match[2]
    return found


def _parsed(line: str) -> Sequence[SimpleCommand]:
    """Return the commands of a line; none if it cannot be parsed. The permission gate has parsed it before, mostly."""
    try:
        parsed = analyse(line).line
    except (PanpanError, RecursionError):
        return ()
    return () if any(oddity.startswith(_UNPARSED) for oddity in parsed.oddities) else parsed.commands


def _words(command: SimpleCommand) -> Sequence[str]:
    return [word.source if word.text is None else word.text for word in command.words]


def _cut(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(storable(word[:_MAX_WORD_CHARS]) for word in words[:_MOST_WORDS])
