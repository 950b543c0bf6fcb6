"""Finds commands whose words hide what they touch: `cat "$X"`, `touch $(pick)`, `make DIR=$Y`, `xargs cat`.

The rule: a rule for paths may hold for it. Words that are data, such as messages and numbers, are no paths. Behind
`shopt -s cdable_vars` and the like any word may be one.
"""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from panpan.shell_analysis.facts import Effect, LineFacts, SimpleCommand, Word

_Access: TypeAlias = Literal["read", "write"]
_TAKES_NO_PATHS = frozenset({
    ":", "break", "continue", "exit", "expr", "false", "kill", "let", "return", "seq", "shift", "sleep", "true", "wait",
})  # fmt: skip
_HAND_ON = frozenset({"cpio", "fd", "fdfind", "find", "parallel", "pax", "xargs"})
"""Programs that take names which no word tells, or give them to others: `find . -exec rm {} +`, `xargs cat`."""
_TAKES_LIST = re.compile(r"(?s:--files0?-from.*)|-@")
_TARS = frozenset({"bsdtar", "gtar", "tar"})
_TAR_TAKES_LIST = re.compile(r"(?s:-?[A-Za-z]{0,9}T.*)|--files-.*")
"""Flags with which the names of files stand in a file: `tar -cT names`, `sort --files0-from=names`, `zip -@`."""
_TESTS = frozenset({"[", "[[", "test"})
_FILE_TEST = re.compile(r"-(?:[a-hkprstuwxGLNOS]|nt|ot|ef)")
_NUMBER = re.compile(r"\"?\$(?:\(\([^`]*\)\)|[?#$!])\"?")
"""A word that is nothing but the result of arithmetic, or a number of the shell's own."""


def hidden_access(facts: LineFacts) -> frozenset[_Access]:
    """Return how a line may touch paths of which its words do not tell for certain which they are."""
    if facts.may_change_reading:
        return frozenset({"read", "write"})
    return frozenset(access for effect in facts.effects for access in _hidden_by(effect))


def _hidden_by(effect: Effect) -> Iterator[_Access]:
    hands_on = effect.reads is None and _takes_unseen_names(effect.command)
    if not hands_on and next(_unknown_words(effect), None) is None:
        return
    runs_code = effect.runs_code is not False
    if runs_code or effect.reads != ():
        yield "read"
    if runs_code or effect.writes != ():
        yield "write"


def _takes_unseen_names(command: SimpleCommand) -> bool:
    from panpan.shell_analysis.runners import behind_wrappers, program_name  # as below

    words, _ = behind_wrappers(command.words)
    if not words:
        return False
    name = program_name(words[0])
    texts = [word.text or "" for word in words[1:]]
    if name in _TARS:  # whose first word may be letters of flags without a dash
        flags = [*texts[:1], *(text for text in texts if text.startswith("-"))]
        return any(map(_TAR_TAKES_LIST.fullmatch, flags))
    return name in _HAND_ON or any(map(_TAKES_LIST.fullmatch, texts))


def _unknown_words(effect: Effect) -> Iterator[Word]:
    from panpan.shell_analysis.judge import is_message  # no session needs it before its first command

    command = effect.command
    yield from filter(_is_unknown, (*(redirect.target for redirect in command.redirects), *command.assigned))
    name = command.words[0].text if command.words else ""
    if name in _TAKES_NO_PATHS or (name in _TESTS and not any(_tests_a_file(word) for word in command.words)):
        return
    before = Word("", "")
    for word in command.words:
        if _is_unknown(word) and not is_message(name or "", before.text or "", word.source):
            yield word
        before = word


def _is_unknown(word: Word) -> bool:
    is_open = word.text is None and not word.is_glob and not word.at_home
    return (is_open or word.is_guess) and not _NUMBER.fullmatch(word.source)


def _tests_a_file(word: Word) -> bool:
    return _FILE_TEST.fullmatch(word.text or "") is not None
