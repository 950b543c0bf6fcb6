"""Programs that run what they are given to read: shells and interpreters without a script, and what hands words on.

The rule: in doubt a program is one.
"""

import re
import shlex
from collections.abc import Sequence

from panpan.shell_analysis.facts import Word
from panpan.shell_analysis.wrappers import WRAPPERS, unwrapped

SHELLS = frozenset({
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
TAKE_LINES = SHELLS | {"env", "eval", "script", "su", "trap"}
"""Programs that take a word for a command line."""
_INPUT = frozenset({"-", "/dev/fd/0", "/dev/stdin", "/proc/self/fd/0"})
_MATTERING = frozenset({"", *TAKE_LINES, *_ALWAYS, *_OTHER_USER, *_SOURCES, *_ADDS_WORDS, *WRAPPERS})
_CODE_FLAG = re.compile(r"-(?![OWX])[A-Za-z]*[cem].*")
"""Behind which an interpreter finds its program; only of flags that begin a word."""
_VERSION = re.compile(r"[\d.]*$")
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
    """Return what a program is called, without the folder in which it lies; empty where that is not known."""
    return (word.text or "").rpartition("/")[2]


def behind_wrappers(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], bool]:
    """Return the words behind wrappers, `xargs` being none here, and whether it was possible to tell them."""
    for _ in range(_MOST_LAYERS):
        if not words or adds_words(words):
            break
        wrapped = unwrapped(program_name(words[0]), words[1:])
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
        return bool(words)  # whatever it turns out to be
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
    """Return whether a word, as it stands in the line, is a variable, or what other commands print."""
    return source.lstrip('"').startswith(("<(", "$", "`"))
