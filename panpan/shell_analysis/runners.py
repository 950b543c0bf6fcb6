"""Programs that run others: wrappers such as `timeout 5 make`, shells and interpreters, and what they are given to run.

The rule: in doubt a program is one. More of a line may be taken for a command than is run, never less, and input of a
shell that is not written in the line is reported. Nothing here makes a line more harmless.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from panpan.shell_analysis.facts import ParsedLine, SimpleCommand, Word
from panpan.shell_analysis.words import decode_ansi_c, word_of
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late


@dataclass(frozen=True, slots=True)
class WrappedCommand:
    """Command that a wrapper runs."""

    words: tuple[Word, ...]
    """The program first; empty if that is not known."""
    is_transparent: bool = False
    """True if it does nothing of its own, so that the whole is as harmless as what is run."""
    adds_words: bool = False
    """True if it is given further words that are only known when it runs."""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """Syntax of a wrapper's own words."""

    valued: str = ""
    """Letters of flags with a value in the next word."""
    operands: int = 0
    """Own operands before the program."""
    takes_assignments: bool = False
    opaque: str = ""
    """Letters of flags with which what is run is not to be seen, or nothing is."""


WRAPPERS: Mapping[str, _Wrapper] = {
    "builtin": _Wrapper(),
    "command": _Wrapper(opaque="vV"),
    "doas": _Wrapper("uC", opaque="s"),
    "env": _Wrapper("uC", takes_assignments=True, opaque="S"),
    "exec": _Wrapper("a"),
    "ionice": _Wrapper("cnPu", opaque="pP"),
    "nice": _Wrapper("n"),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(),
    "stdbuf": _Wrapper("ioe"),
    "sudo": _Wrapper("ugCDhpRrTtU", takes_assignments=True, opaque="eilsvKV"),
    "time": _Wrapper("of"),
    "timeout": _Wrapper("ks", operands=1),
    "xargs": _Wrapper("EILPadns"),
}
"""Programs that run another one, and the syntax of their own words."""
_ASSIGNMENT = compile_late(r"[A-Za-z_]\w*=", re.ASCII)
_DURATION = compile_late(r"\d{1,6}(?:\.\d+)?[smhd]?")


def unwrap(name: str, words: Sequence[Word]) -> WrappedCommand | None:
    """Return what `name` would run when it is given `words`; None if it is no wrapper."""
    wrapper = WRAPPERS.get(name)
    if wrapper is None:
        return None
    position = _behind_flags(wrapper, words)
    if position is None:
        return WrappedCommand(())
    inner = tuple(words[position + wrapper.operands :])
    if name == "timeout":
        # Only the plainest form cannot be misread.
        is_plain = position == 0 and bool(inner) and _DURATION.fullmatch(words[0].text or "") is not None
        return WrappedCommand(inner, is_transparent=is_plain)
    return WrappedCommand(inner or (() if name != "xargs" else (Word("echo", "echo"),)), adds_words=name == "xargs")


def _behind_flags(wrapper: _Wrapper, words: Sequence[Word]) -> int | None:
    """Return where the wrapper's own flags and assignments end, None if that cannot be told."""
    position = 0
    while position < len(words):
        text = words[position].text
        if text is None:
            return None
        if text == "--":
            position += 1
            break
        if wrapper.takes_assignments and _ASSIGNMENT.match(text):
            position += 1
            continue
        if not text.startswith("-"):
            break
        if not text.startswith("--") and any(letter in wrapper.opaque for letter in text[1:]):
            return None
        if text.startswith("--") and "=" not in text and len(text) > len("--"):
            return None  # it may take the next word
        position += 2 if text[-1] in wrapper.valued and len(text) == 2 else 1
    while wrapper.takes_assignments and position < len(words) and _ASSIGNMENT.match(words[position].text or ""):
        position += 1
    return position


SHELLS = frozenset({
    "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "pwsh", "rbash", "sh", "tcsh", "zsh",
})  # fmt: skip
_INTERPRETERS = frozenset({
    "bun", "deno", "julia", "lua", "node", "nodejs", "osascript", "perl", "php", "pypy", "python", "Rscript", "ruby",
})  # fmt: skip
_ALWAYS = frozenset({"at", "batch"})
_OTHER_USER = frozenset({"doas", "su", "sudo"})
"""Programs that run a shell if no command is given."""
_SOURCES = frozenset({".", "source"})
_ADDS_WORDS = frozenset({"parallel", "xargs"})
TAKE_LINES = SHELLS | {"env", "eval", "script", "su", "trap"}
"""Programs that take a word for a command line."""
_INPUT = frozenset({"-", "/dev/fd/0", "/dev/stdin", "/proc/self/fd/0"})
_MATTERING = frozenset({"", *TAKE_LINES, *_ALWAYS, *_OTHER_USER, *_SOURCES, *_ADDS_WORDS, *WRAPPERS})
_CODE_FLAG = compile_late(r"-(?![OWX])[A-Za-z]*[cem].*")
"""Flags behind which an interpreter finds its program; only those that begin a word."""
_VERSION = compile_late(r"[\d.]*$")
_MOST_LAYERS = 5


def runs_what_it_is_given(words: Sequence[str]) -> bool:
    """Return whether a simple command of these words runs what it is given to read, or hands it to a program."""
    command = tuple(Word(shlex.quote(word), word) for word in words)
    return runs_input(command) or adds_words(command)


def adds_words(words: Sequence[Word]) -> bool:
    """Return whether a program gives what it reads to another one as words."""
    return any(program_name(word) in _ADDS_WORDS for word in words[:1])


def may_run_more(words: Sequence[Word]) -> bool:
    """Return whether any of this may matter for a command; quick, and no for most."""
    if not words:
        return False
    first = program_name(words[0])
    return first in _MATTERING or is_interpreter(words[0]) or program_name(words[-1]) in SHELLS


def program_name(word: Word) -> str:
    """Return what a program is called, without the folder in which it lies; empty if that is not known."""
    return (word.text or "").rpartition("/")[2]


def behind_wrappers(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], bool]:
    """Return the words behind wrappers, `xargs` being none here, and whether it was possible to tell them."""
    for _ in range(_MOST_LAYERS):
        if not words or adds_words(words):
            break
        wrapped = unwrap(program_name(words[0]), words[1:])
        if wrapped is None:
            break
        if not wrapped.words:
            return words, False
        words = wrapped.words
    return words, True


def is_interpreter(word: Word) -> bool:
    """Return whether a program reads another language than that of shells."""
    return _VERSION.sub("", program_name(word)) in _INTERPRETERS


def runs_input(words: tuple[Word, ...]) -> bool:
    """Return whether a program runs what it is given to read."""
    words, is_known = behind_wrappers(words)
    if not words or words[0].text is None:
        return bool(words)  # an unknown program
    name = program_name(words[0])
    texts = [word.text if word.text is not None else word.source for word in words[1:]]
    if name in _ALWAYS or (name in _OTHER_USER and (not is_known or name == "su")):
        return True
    if name in _SOURCES:
        return any(_is_made(text) or text in _INPUT for text in texts)
    if name in TAKE_LINES and any(word.text is None and _is_made(word.source) for word in words[1:]):
        return True
    if name in SHELLS:
        return _reads_script(texts)
    if is_interpreter(words[0]):
        flags = [text for text in texts if text.startswith("-") and text != "-"]
        operands = [text for text in texts if text not in flags]
        is_told = any(_CODE_FLAG.fullmatch(flag) for flag in flags)
        return not is_told and (not operands or operands[0] in _INPUT)
    if name == "parallel":
        return all(text.startswith("-") for text in texts)
    return len(words) > 1 and program_name(words[-1]) in SHELLS  # as in `docker exec -i box sh`


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
    return not is_told and (not waiting or waiting[-1] in _INPUT or _is_made(waiting[-1]))


def _is_made(source: str) -> bool:
    """Return whether a word, as written in the line, is a variable or the output of other commands."""
    return source.lstrip('"').startswith(("<(", "$", "`"))


_PRINTING = frozenset({"echo", "printf"})
_SILENT = frozenset({":", "cd", "exit", "false", "mkdir", "sleep", "true"})
"""Programs that print nothing which a shell would be given."""
_SPLIT = compile_late(r"-[A-Za-z0-9]*S|--split-string=")
"""Flags of `env` in front of a command line in the same word."""
_GIVES = compile_late(r"[|<$`]|>\(|\bcoproc\b")
"""Syntax without which a line gives no program anything to read."""
_PIPES = compile_late(r"(?<!\|)\|(?!\|)|[<>]\(|\$\(|`|(?<![&<>])&(?![&>])|\b(?:coproc|mkfifo|mknod|exec)\b")
"""Syntax without which no program of a line reads the output of another one."""
_CONVERSION = compile_late(r"%[^A-Za-z%]*[A-Za-z]")
"""A place of a format of `printf` that takes a word."""
_EXPANDED = ("~", "$", '"$')
_MOST_TEXTS = 20
_MOST_WORDS = 50


Parse: TypeAlias = Callable[[str], ParsedLine | None]
"""Takes another line apart; returns None if there have been too many."""


def with_piped_scripts(parsed: ParsedLine, line: str, here: Sequence[str], parse: Parse) -> ParsedLine:
    """Return the line with what its shells and `xargs` are given to run among its commands.

    Args:
        parsed: What was read of the line.
        line: Its text.
        here: The texts of its here-documents and here-strings.
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
    is_unseen = parsed.runs_unknown_input
    for command, is_running in (*((one, True) for one in running), *((one, False) for one in adding)):
        texts, is_known = _texts_of(command.piped_from, here) if command.piped_from else anywhere
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
            is_unseen = is_unseen or given is None or given.runs_unknown_input
            fed |= dict.fromkeys(given.commands if given is not None else ())
    return replace(parsed, commands=(*parsed.commands, *fed), runs_input=True, runs_unknown_input=is_unseen)


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
            is_unseen = is_unseen or given is None or given.runs_unknown_input
    if not told and not is_unseen:
        return parsed
    return replace(parsed, commands=(*parsed.commands, *told), runs_unknown_input=is_unseen)


def _placed(inner: SimpleCommand, command: SimpleCommand) -> SimpleCommand:
    """Return a command of the line that a command is given, where it runs then."""
    places = None
    if inner.directories is not None and command.directories is not None:
        joined = (posixpath.join(first, then) for first in command.directories for then in inner.directories)
        places = tuple(dict.fromkeys(place.removesuffix("/.").removeprefix("./") or "." for place in joined))
    return replace(inner, directories=places, is_generated=True)


def _has_pipes(line: str, here: Sequence[str]) -> bool:
    """Return whether a program may read the output of a command of the line; here-documents do not count."""
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
        return all(word.text == "-" for word in command.words[1:])  # cat passes its input on
    return name in _SILENT or runs_input(command.words) or adds_words(command.words)


def _printed(command: SimpleCommand) -> Iterator[str]:
    """Yield the output of a command, as far as the line contains it: as written, and with its escapes read."""
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
    yield from dict.fromkeys((plain, filled, decode_ansi_c(plain)[0], decode_ansi_c(filled)[0]))


def _run_by(command: SimpleCommand, text: str, parse: Parse) -> ParsedLine | None:
    """Return what becomes of a text that a shell or interpreter is given to run; None if that is not known."""
    first = behind_wrappers(command.words)[0][0]
    if is_interpreter(first):
        words = (first, Word(shlex.quote(text), f"{text} "))
        return ParsedLine((SimpleCommand(command.source, words, directories=command.directories, is_generated=True),))
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
        yield SimpleCommand(source, tuple(made), directories=command.directories, is_generated=True)


def _word(part: str) -> Word:
    """Return a word that was printed; one that a shell would have expanded first is read as the shell reads it."""
    return word_of(part) if part.startswith(_EXPANDED) else Word(shlex.quote(part), part)


def _filled(word: Word, token: str, text: str) -> Word:
    """Return a word with a text in the place of the token."""
    if word.text is None or token not in word.text:
        return word
    filled = word.text.replace(token, text)
    return Word(shlex.quote(filled), filled)
