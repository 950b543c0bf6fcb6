"""What shells and `xargs` are given to run where that stands in the line: `echo push | xargs git`, `sh -c 'rm x'`.

The rule: of what is written in the line more may be taken for such than is run, never less; that a shell is given
something else, is said. Nothing here makes a line more harmless.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from panpan.tools.shell.analysis.ansi_c import decoded
from panpan.tools.shell.analysis.facts import ParsedLine, SimpleCommand, Word
from panpan.tools.shell.analysis.words import word_of
from panpan.tools.shell.analysis.wrappers import unwrapped

_SHELLS = frozenset({
    "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "pwsh", "rbash", "sh", "tcsh", "zsh",
})  # fmt: skip
_INTERPRETERS = frozenset({
    "bun", "deno", "julia", "lua", "node", "nodejs", "osascript", "perl", "php", "pypy", "python", "Rscript", "ruby",
})  # fmt: skip
_ALWAYS = frozenset({"at", "batch"})
_OTHER_USER = frozenset({"doas", "su", "sudo"})
"""Without a command they run a shell."""
_SOURCES = frozenset({".", "source"})
_ADDS_WORDS = frozenset({"parallel", "xargs"})
_PRINTING = frozenset({"echo", "printf"})
_SILENT = frozenset({":", "cd", "exit", "false", "mkdir", "sleep", "true"})
"""Programs that print nothing which a shell would be given."""
_TAKE_LINES = _SHELLS | {"env", "eval", "script", "su", "trap"}
"""Programs that take a word for a command line."""
_SPLIT = re.compile(r"-[A-Za-z0-9]*S|--split-string=")
"""Flags of `env` in front of a command line in the same word."""
_INPUT = frozenset({"-", "/dev/fd/0", "/dev/stdin", "/proc/self/fd/0"})
_GIVES = re.compile(r"[|<]|>\(|\bcoproc\b")
"""What stands in every line in which something is given to a program to read."""
_CODE_FLAG = re.compile(r"-[A-Za-z]*[cem].*")
"""Behind which an interpreter finds its program; only of flags that begin a word."""
_EXPANDED = ("~", "$", '"$')
_FIRST_DIGITS = re.compile(r"[\d.]*$")
_MOST_LAYERS = 5
_MOST_TEXTS = 20
_MOST_WORDS = 50


def with_fed_commands(
    parsed: ParsedLine, line: str, here: Sequence[str], parse: Callable[[str], Sequence[SimpleCommand]]
) -> ParsedLine:
    """Return the line with what its shells and `xargs` are given to run among its commands.

    Args:
        parsed: What was read of the line.
        line: Its text.
        here: What stands in its here-documents and here-strings.
        parse: Returns the simple commands of another line.
    """
    parsed = _with_told_commands(parsed, parse)
    running = [command for command in parsed.commands if _runs_input(command.words)]
    adding = [command for command in parsed.commands if (words := _inner(command.words)[0]) and _adds_words(words)]
    if not (running or adding) or not _GIVES.search(line):
        return parsed
    fed: dict[SimpleCommand, None] = {}
    is_unseen = False
    for command in running:
        texts, is_known = _texts_for(command, parsed, here)
        is_unseen = is_unseen or not is_known
        for text in texts:
            fed |= dict.fromkeys(_run_by(command, text, parse))
    for command in adding:
        texts, _ = _texts_for(command, parsed, here)
        fed |= dict.fromkeys(made for text in texts for made in _made_by_xargs(command, text))
    return replace(parsed, commands=(*parsed.commands, *fed), runs_input=True, runs_unseen=is_unseen)


def _with_told_commands(parsed: ParsedLine, parse: Callable[[str], Sequence[SimpleCommand]]) -> ParsedLine:
    """Return the line with what its shells find among their words: `bash -c 'rm x'`, `eval 'rm x'`."""
    told: dict[SimpleCommand, None] = {}
    for command in parsed.commands:
        words = _inner(command.words)[0]
        if not words or _name(words[0]) not in _TAKE_LINES:
            continue
        lines = [word.text for word in words[1:] if word.text and " " in word.text]
        for text in lines[:_MOST_TEXTS]:
            line = _SPLIT.sub("", text, count=1) if text.startswith("-") else text
            told |= dict.fromkeys(_placed(inner, command) for inner in parse(line))
    return replace(parsed, commands=(*parsed.commands, *told)) if told else parsed


def _placed(inner: SimpleCommand, command: SimpleCommand) -> SimpleCommand:
    """Return a command of the line that a command is given, where it runs then."""
    places = None
    if inner.directories is not None and command.directories is not None:
        joined = (posixpath.join(first, then) for first in command.directories for then in inner.directories)
        places = tuple(dict.fromkeys(place.removesuffix("/.").removeprefix("./") or "." for place in joined))
    return replace(inner, directories=places, is_fed=True)


def runs_what_it_is_given(words: Sequence[str]) -> bool:
    """Return whether a simple command of these words runs what it is given to read, or hands it to a program."""
    command = tuple(Word(shlex.quote(word), word) for word in words)
    return _runs_input(command) or _adds_words(command)


def _adds_words(words: Sequence[Word]) -> bool:
    return any(_name(word) in _ADDS_WORDS for word in words[:1])


def _name(word: Word) -> str:
    return posixpath.basename(word.text or "")


def _inner(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], bool]:
    """Return the words behind wrappers, `xargs` being none here, and whether it was possible to tell them."""
    for _ in range(_MOST_LAYERS):
        if not words or _adds_words(words):
            break
        wrapped = unwrapped(_name(words[0]), words[1:])
        if wrapped is None:
            break
        if not wrapped.words:
            return words, False
        words = wrapped.words
    return words, True


def _runs_input(words: tuple[Word, ...]) -> bool:
    """Return whether a program runs what it is given to read."""
    words, is_known = _inner(words)
    if not words or words[0].text is None:
        return bool(words)  # whatever it turns out to be
    name = _name(words[0])
    base = _FIRST_DIGITS.sub("", name)
    texts = [word.text if word.text is not None else word.source for word in words[1:]]
    if name in _ALWAYS or (name in _OTHER_USER and (not is_known or name == "su")):
        return True
    if name in _SOURCES:
        return not _INPUT.isdisjoint(texts)
    if name in _SHELLS:
        return _reads_script(texts)
    if base in _INTERPRETERS:
        flags = [text for text in texts if text.startswith("-") and text != "-"]
        operands = [text for text in texts if text not in flags]
        is_told = any(_CODE_FLAG.fullmatch(flag) for flag in flags)
        return not is_told and (not operands or operands[0] in _INPUT)
    if name == "parallel":
        return all(text.startswith("-") for text in texts)
    return len(words) > 1 and _name(words[-1]) in _SHELLS  # as in `docker exec -i box sh`


def _reads_script(texts: Sequence[str]) -> bool:
    """Return whether a shell with these words reads its script where it reads all else."""
    waiting = list(texts)[::-1]
    is_told = False
    while waiting and waiting[-1].startswith(("-", "+")) and waiting[-1] != "-":
        flag = waiting.pop()
        if flag == "--":
            break
        if flag in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") and waiting:
            waiting.pop()
        elif not flag.startswith("--"):
            if "s" in flag:
                return True
            is_told = is_told or "c" in flag
    return not is_told and (not waiting or waiting[-1] in _INPUT)


def _texts_for(command: SimpleCommand, parsed: ParsedLine, here: Sequence[str]) -> tuple[Sequence[str], bool]:
    """Return what a command may be given of what is written in the line, and whether that is all that it is given."""
    feeding = command.fed_by or [other for other in parsed.commands if other is not command]
    texts = [*(text for text in here if text.strip()), *(text for other in feeding for text in _printed(other))]
    is_known = bool(texts) and not any(not redirect.is_write for redirect in command.redirects)
    for other in feeding:
        if not other.words or other.redirects or _name(other.words[0]) in (*_SILENT, "cat"):
            # Without operands, cat only hands on what is written in the line.
            is_known = is_known and not other.redirects and not (other.words and _reads_files(other))
        elif _name(other.words[0]) not in _PRINTING:
            is_known = is_known and (_runs_input(other.words) or _adds_words(other.words))
        elif any(word.text is None for word in other.words):
            is_known = False
    return texts[:_MOST_TEXTS], is_known and len(texts) <= _MOST_TEXTS


def _reads_files(command: SimpleCommand) -> bool:
    return _name(command.words[0]) == "cat" and any(word.text != "-" for word in command.words[1:])


def _printed(command: SimpleCommand) -> Iterator[str]:
    """Yield what a command prints, as far as it is written; as it stands, and with its escapes read."""
    if not command.words or _name(command.words[0]) not in _PRINTING:
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
            filled = re.sub(r"%[^A-Za-z%]*[A-Za-z]", lambda _, word=word: word, filled, count=1)  # type: ignore[misc]
        yield "\n".join(words[1:])
    yield from dict.fromkeys((plain, filled, decoded(plain)[0], decoded(filled)[0]))


def _run_by(
    command: SimpleCommand, text: str, parse: Callable[[str], Sequence[SimpleCommand]]
) -> Iterator[SimpleCommand]:
    """Yield what becomes of a text that a shell or interpreter is given to run."""
    first = _inner(command.words)[0][0]
    if _FIRST_DIGITS.sub("", _name(first)) in _INTERPRETERS:
        words = (first, Word(shlex.quote(text), f"{text} "))
        yield SimpleCommand(command.source, words, directories=command.directories, is_fed=True)
        return
    yield from (_placed(inner, command) for inner in parse(text))


def _made_by_xargs(command: SimpleCommand, text: str) -> Iterator[SimpleCommand]:
    """Yield what xargs may make of a text: its program with all words, with each of them, and with the whole text."""
    words = _inner(command.words)[0][1:]
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
