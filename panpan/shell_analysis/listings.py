"""Commands that print the names of files and nothing else, and where these lie: `find`, `rg -l`, `ls`, `git ls-files`.

The rule: a flag with which a program might print anything else is not among those listed here.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence

from panpan.shell_analysis.facts import (
    BARE_NAME,
    PARTED_NAME,
    QUOTED_NAME,
    SPLIT_NAME,
    Effect,
    SimpleCommand,
    Word,
)
from panpan.types.dataclass import dataclass

_FIND_PRINTS_NAMES = re.compile(
    r"-(?:a|amin|and|atime|cmin|ctime|daystart|depth|empty|executable|false|group|iname|inum|ipath|iregex|iwholename"
    r"|links|lname|maxdepth|mindepth|mmin|mount|mtime|name|newer|nogroup|not|nouser|o|or|path|perm|print|print0|prune"
    r"|quit|readable|regex|regextype|size|true|type|user|wholename|writable|xdev|xtype|[0-9]+[bcdhkmswGMPT]?)"
)
"""Words that begin with a dash in an expression of find that prints names and nothing else; also negative numbers."""
_JOINS_ANY = frozenset({"-o", "-or", ",", "(", ")"})
"""With these in an expression of find, a test in it need not hold for what is found."""
_PLAIN_PATTERN = re.compile(r"[\w.*?-]+")
"""What the fnmatch of C and of Python read alike."""
_LISTING: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "fd": (re.compile(r""), re.compile(r"-[HIsuFip]+|-[etEd]\w*|--(?:hidden|no-ignore|glob)")),
    "grep": (
        re.compile(r"-\w*[lL]\w*"),
        re.compile(r"-[rlLivwxEFPIsHn]+|--(?:include|exclude|exclude-dir)=.*"),
    ),
    "ls": (re.compile(r""), re.compile(r"-[1ASUXcdrtuv]+|--color=never")),
    "rg": (
        re.compile(r"-\w*l\w*|--files(?:-with-matches)?"),
        re.compile(r"-[liSsuwxFPn.]+|-[tTge]\w*|--(?:files|files-with-matches|hidden|no-ignore)"),
    ),
}
"""Searches that print names and nothing else: the flag that makes them do so, and the flags that let them go on so. Not
`ls -a`, which names the folder around."""
_LISTING_TRACKED = re.compile(r"-[cdmz]+|--(?:cached|deleted|modified|deduplicate)|--")
"""Flags of `git ls-files` with which it prints names below the folder, of files that git tracks, and nothing else."""
_STAYS_IN_FOLDER = re.compile(r"(?:(?:\.?[\w@%+=,*?\[\]!^ -][\w.@%+=,*?\[\]!^ -]*|\.)(?:/+|$))+")
"""A pathspec that leads nowhere else, each of its parts the name of something in its folder."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a search prints the names of."""

    folders: tuple[str, ...]
    only_names: tuple[str, ...] = ()
    leaves_out_hidden: bool = False
    globs: tuple[str, ...] = ()
    only_tracked: bool = False
    leads: tuple[str, ...] = ()
    """Beginnings of the names; empty where they may begin in any way."""
    odd_names: re.Pattern[str] = SPLIT_NAME
    """Found in names that do not arrive as they are where they are not parted by NUL."""


def listing_of(command: SimpleCommand, search: Effect) -> Listing | None:
    """Return what a search prints the names of, one a line or parted by NUL; None where it prints anything else."""
    texts = [word.text or "" for word in command.words]
    if not texts or command.redirects or not search.is_read_only:
        return None
    if texts[0] == "git":
        return _tracked(command.words[1:])
    if texts[0] == "find":
        is_plain = (
            all(_FIND_PRINTS_NAMES.fullmatch(text) for text in texts if text.startswith("-")) and not search.globs
        )
        return found_by(search, command.words) if is_plain else None
    if texts[0] not in _LISTING:
        return None
    needed, allowed = _LISTING[texts[0]]
    flags = [text for text in texts[1:] if text.startswith("-")]
    is_listing = not needed.pattern or any(needed.fullmatch(flag) for flag in flags)
    if not is_listing or not all(allowed.fullmatch(flag) for flag in flags):
        return None
    if texts[0] == "ls":
        # It names what lies in a folder without the folder, as if it lay here.
        # BSD's shows hidden names to root whatever it is told.
        shows_hidden = any("A" in flag for flag in flags) or (sys.platform != "linux" and os.geteuid() == 0)
        folders = tuple(dict.fromkeys((".", *(search.reads or ()))))
        odd_names = (
            BARE_NAME if search.globs else SPLIT_NAME
        )  # what is in a folder that a pattern matches it shows, too
        return Listing(folders, leaves_out_hidden=not shows_hidden, globs=search.globs, odd_names=odd_names)
    if search.globs:
        return None
    return Listing(search.reads or (), search.only_names, search.leaves_out_hidden)


def found_by(search: Effect, words: Sequence[Word]) -> Listing:
    """Return what find hands on, whose names begin with the folders that it starts in.

    Args:
        search: What find does without handing anything on.
        words: Its words up to where it does.
    """
    starts = search.reads or ()
    return Listing(starts, only_names_of(words), leads=starts, odd_names=PARTED_NAME)


def _tracked(words: Sequence[Word]) -> Listing | None:
    """Return the listing of `git ls-files` with these words behind `git`."""
    rest = list(words)
    while rest and rest[0].text in ("--no-pager", "-P"):
        rest.pop(0)
    if not rest or rest[0].text != "ls-files":
        return None
    for word in rest[1:]:
        text = word.text if word.text is not None else word.pattern
        is_known = _LISTING_TRACKED if text.startswith("-") else _STAYS_IN_FOLDER
        if not is_known.fullmatch(text):
            return None
    return Listing((".",), only_tracked=True, odd_names=QUOTED_NAME)


def ends_names(command: SimpleCommand) -> bool:
    """Return whether a search parts the names that it prints by NUL."""
    texts = [word.text or "" for word in command.words]
    if texts[0] == "git":
        return any(re.fullmatch(r"-[a-z]*z[a-z]*", text) for text in texts)
    return texts[0] == "find" and "-print0" in texts


def only_names_of(words: Sequence[Word]) -> tuple[str, ...]:
    """Return a pattern that every name fits which find hands on; none where that is not known."""
    texts = [word.text or "" for word in words]
    tested = texts[: min((texts.index(word) for word in ("-print", "-print0") if word in texts), default=None)]
    if not _JOINS_ANY.isdisjoint(texts) or "-name" not in tested[:-1]:
        return ()
    at = tested.index("-name")
    is_plain = tested[at - 1] not in ("!", "-not") and _PLAIN_PATTERN.fullmatch(tested[at + 1])
    return (tested[at + 1],) if is_plain else ()
