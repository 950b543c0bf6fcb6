"""What shells and `xargs` are given to run where that stands in the line: `echo push | xargs git`, `sh -c 'rm x'`.

The rule: of what is written in the line more may be taken for such than is run, never less; that a shell is given
something else, is said. Nothing here makes a line more harmless.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from panpan.shell_analysis.ansi_c import decoded
from panpan.shell_analysis.facts import ParsedLine, SimpleCommand, Word
from panpan.shell_analysis.runners import (
    TAKE_LINES,
    adds_words,
    behind_wrappers,
    is_interpreter,
    may_run_more,
    program_name,
    runs_input,
)
from panpan.shell_analysis.words import word_of

_PRINTING = frozenset({"echo", "printf"})
_SILENT = frozenset({":", "cd", "exit", "false", "mkdir", "sleep", "true"})
"""Programs that print nothing which a shell would be given."""
_SPLIT = re.compile(r"-[A-Za-z0-9]*S|--split-string=")
"""Flags of `env` in front of a command line in the same word."""
_GIVES = re.compile(r"[|<$`]|>\(|\bcoproc\b")
"""What stands in every line in which something is given to a program to read."""
_PIPES = re.compile(r"(?<!\|)\|(?!\|)|[<>]\(|\$\(|`|(?<![&<>])&(?![&>])|\b(?:coproc|mkfifo|mknod|exec)\b")
"""What stands in every line in which a program reads what another one prints."""
_CONVERSION = re.compile(r"%[^A-Za-z%]*[A-Za-z]")
"""A place of a format of `printf` that takes a word."""
_EXPANDED = ("~", "$", '"$')
_MOST_TEXTS = 20
_MOST_WORDS = 50


Parse: TypeAlias = Callable[[str], ParsedLine | None]
"""Takes another line apart; returns None where there have been too many."""


def with_fed_commands(parsed: ParsedLine, line: str, here: Sequence[str], parse: Parse) -> ParsedLine:
    """Return the line with what its shells and `xargs` are given to run among its commands.

    Args:
        parsed: What was read of the line.
        line: Its text.
        here: What stands in its here-documents and here-strings.
        parse: Reads what they are given.
    """
    if not any(may_run_more(command.words) for command in parsed.commands):
        return parsed
    parse = cache(parse)
    parsed = _with_told_commands(parsed, parse)
    running = [command for command in parsed.commands if runs_input(command.words)]
    adding = [
        command for command in parsed.commands if (words := behind_wrappers(command.words)[0]) and adds_words(words)
    ]
    if not (running or adding) or not _GIVES.search(line):
        return parsed
    anywhere = _texts_of(parsed.commands if _has_pipes(line, here) else (), here)
    fed: dict[SimpleCommand, None] = {}
    done: set[tuple[object, ...]] = set()
    is_unseen = parsed.runs_unseen
    for command, is_running in (*((one, True) for one in running), *((one, False) for one in adding)):
        texts, is_known = _texts_of(command.fed_by, here) if command.fed_by else anywhere
        if is_running:
            is_unseen = is_unseen or not is_known or any(not redirect.is_write for redirect in command.redirects)
        key = (is_running, command.directories, behind_wrappers(command.words)[0], texts)
        if key in done:
            continue
        done.add(key)
        for text in texts:
            if not is_running:
                fed |= dict.fromkeys(_made_by_xargs(command, text))
                continue
            given = _run_by(command, text, parse)
            is_unseen = is_unseen or given is None or given.runs_unseen
            fed |= dict.fromkeys(given.commands if given is not None else ())
    return replace(parsed, commands=(*parsed.commands, *fed), runs_input=True, runs_unseen=is_unseen)


def _with_told_commands(parsed: ParsedLine, parse: Parse) -> ParsedLine:
    """Return the line with what its shells find among their words: `bash -c 'rm x'`, `eval 'rm x'`."""
    told: dict[SimpleCommand, None] = {}
    is_unseen = False
    for command in parsed.commands:
        words = behind_wrappers(command.words)[0]
        if not words or program_name(words[0]) not in TAKE_LINES:
            continue
        lines = [word.text for word in words[1:] if word.text and " " in word.text]
        for text in lines[:_MOST_TEXTS]:
            line = _SPLIT.sub("", text, count=1) if text.startswith("-") else text
            given = parse(line)
            told |= dict.fromkeys(_placed(inner, command) for inner in given.commands) if given is not None else {}
            is_unseen = is_unseen or given is None or given.runs_unseen
    if not told and not is_unseen:
        return parsed
    return replace(parsed, commands=(*parsed.commands, *told), runs_unseen=is_unseen)


def _placed(inner: SimpleCommand, command: SimpleCommand) -> SimpleCommand:
    """Return a command of the line that a command is given, where it runs then."""
    places = None
    if inner.directories is not None and command.directories is not None:
        joined = (posixpath.join(first, then) for first in command.directories for then in inner.directories)
        places = tuple(dict.fromkeys(place.removesuffix("/.").removeprefix("./") or "." for place in joined))
    return replace(inner, directories=places, is_fed=True)


def _has_pipes(line: str, here: Sequence[str]) -> bool:
    """Return whether anything may be given what a command of the line prints, beside what stands in here-documents."""
    for text in here:
        line = line.replace(text, "", 1)
    return _PIPES.search(line) is not None


def _texts_of(feeding: Sequence[SimpleCommand], here: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Return what is written in a line that commands may give to another one, and whether they give nothing else."""
    texts = dict.fromkeys(
        (
            *(text for text in here if text.strip()),
            *(text for other in feeding for text in _printed(other)),
        )
    )
    is_known = bool(texts) and len(texts) <= _MOST_TEXTS and all(map(_gives_what_is_written, feeding))
    return tuple(texts)[:_MOST_TEXTS], is_known


def _gives_what_is_written(command: SimpleCommand) -> bool:
    """Return whether a command prints nothing but what is written in the line."""
    if not command.words or command.redirects:
        return False
    name = program_name(command.words[0])
    if name in _PRINTING:
        return all(word.text is not None for word in command.words)
    if name == "cat":
        return all(word.text == "-" for word in command.words[1:])  # and hands on what is written
    return name in _SILENT or runs_input(command.words) or adds_words(command.words)


def _printed(command: SimpleCommand) -> Iterator[str]:
    """Yield what a command prints, as far as it is written; as it stands, and with its escapes read."""
    if not command.words or program_name(command.words[0]) not in _PRINTING:
        return
    words = [word.text if word.text is not None else word.source for word in command.words[1:]]
    while words and words[0].startswith("-"):
        words.pop(0)
    if not words:
        return
    plain = " ".join(words)
    filled = plain
    if "%" in words[0]:
        filled = words[0]
        for word in words[1:]:
            filled = _CONVERSION.sub(word.replace("\\", r"\\"), filled, count=1)
        yield "\n".join(words[1:])
    yield from dict.fromkeys((plain, filled, decoded(plain)[0], decoded(filled)[0]))


def _run_by(command: SimpleCommand, text: str, parse: Parse) -> ParsedLine | None:
    """Return what becomes of a text that a shell or interpreter is given to run; None where that is not known."""
    first = behind_wrappers(command.words)[0][0]
    if is_interpreter(first):
        words = (first, Word(shlex.quote(text), f"{text} "))
        return ParsedLine((SimpleCommand(command.source, words, directories=command.directories, is_fed=True),))
    given = parse(text)
    return given and replace(given, commands=tuple(_placed(inner, command) for inner in given.commands))


def _made_by_xargs(command: SimpleCommand, text: str) -> Iterator[SimpleCommand]:
    """Yield what xargs may make of a text: its program with all words, with each of them, and with the whole text."""
    words = behind_wrappers(command.words)[0][1:]
    token = ""
    at = 0
    while at < len(words) and (words[at].text or "").startswith("-"):
        flag = words[at].text or ""
        has_value = len(flag) == 2 and flag[1] in "EILPadns"
        if flag.startswith("-I"):
            token = flag[2:] or (words[at + 1].text or "" if at + 1 < len(words) else "")
        token = "{}" if flag.startswith(("-i", "--replace")) else token
        at += 2 if has_value else 1
    program = words[at:] or (Word("echo", "echo"),)
    parts = re.split(r"[\s\0]+", text.strip())[:_MOST_WORDS]
    choices = [parts, *([part] for part in parts), *([line] for line in text.splitlines()[:_MOST_WORDS]), [text]]
    for chosen in choices:
        made = [*program, *map(_word, chosen)]
        if token:
            made = [_filled(word, token, " ".join(chosen)) for word in program]
        source = " ".join(word.source for word in made)
        yield SimpleCommand(source, tuple(made), directories=command.directories, is_fed=True)


def _word(part: str) -> Word:
    """Return a part of what was printed; what a shell would have expanded before, it stands for."""
    return word_of(part) if part.startswith(_EXPANDED) else Word(shlex.quote(part), part)


def _filled(word: Word, token: str, text: str) -> Word:
    """Return a word with a text in the place of the token."""
    if word.text is None or token not in word.text:
        return word
    filled = word.text.replace(token, text)
    return Word(shlex.quote(filled), filled)
