"""Programs that are handed the names which a search finds: `find … -exec wc -l {} +`, `find … | xargs grep foo`.

The rule: where the search only looks, and the program only looks whichever names below the searched folders it is
given, the whole is a search through these folders. What the names have to be for that, the effect says, and the gate
looks for itself: without `-print0` and `-0`, `xargs` parts them at blanks and takes quotes away, and a name that does
not begin with its folder, as those of `git ls-files -z` do not, may look like a flag. A program that looks at no file,
whatever it is given, may be given anything: `… | xargs -n1 basename`.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from panpan.shell_analysis.facts import (
    BARE_NAME,
    PARTED_NAME,
    QUOTED_NAME,
    SIGNED_NAME,
    SPLIT_NAME,
    UNSIGNED_NAMES,
    Effect,
    Kind,
    ReadDetails,
    Search,
    SimpleCommand,
    Word,
)
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_FIND_PRINTS_NAMES = compile_late(
    r"-(?:a|amin|and|atime|cmin|ctime|daystart|depth|empty|executable|false|group|iname|inum|ipath|iregex|iwholename"
    r"|links|lname|maxdepth|mindepth|mmin|mount|mtime|name|newer|nogroup|not|nouser|o|or|path|perm|print|print0|prune"
    r"|quit|readable|regex|regextype|size|true|type|user|wholename|writable|xdev|xtype|[0-9]+[bcdhkmswGMPT]?)"
)
"""Words that begin with a dash in an expression of find that prints names and nothing else; also negative numbers."""
_JOINS_ANY = frozenset({"-o", "-or", ",", "(", ")"})
"""Words in an expression of find with which a test in it need not hold for what is found."""
_PLAIN_PATTERN = compile_late(r"[\w.*?-]+")
"""Patterns that the fnmatch of C and that of Python read alike."""
_LISTING: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "fd": (compile_late(r""), compile_late(r"-[HIsuFip]+|-[etEd]\w*|--(?:hidden|no-ignore|glob)")),
    "grep": (
        compile_late(r"-\w*[lL]\w*"),
        compile_late(r"-[rlLivwxEFPIsHn]+|--(?:include|exclude|exclude-dir)=.*"),
    ),
    "ls": (compile_late(r""), compile_late(r"-[1ASUXcdrtuv]+|--color=never")),
    "rg": (
        compile_late(r"-\w*l\w*|--files(?:-with-matches)?"),
        compile_late(r"-[liSsuwxFPn.]+|-[tTge]\w*|--(?:files|files-with-matches|hidden|no-ignore)"),
    ),
}
"""Searches that print names and nothing else: the flag that makes them do so, and the flags that let them go on so. Not
`ls -a`, which names the folder around."""
_LISTING_TRACKED = compile_late(r"-[cdmz]+|--(?:cached|deleted|modified|deduplicate)|--")
"""Flags of `git ls-files` with which it prints names below the folder, of files that git tracks, and nothing else."""
_STAYS_IN_FOLDER = compile_late(r"(?:(?:\.?[\w@%+=,*?\[\]!^ -][\w.@%+=,*?\[\]!^ -]*|\.)(?:/+|$))+")
"""A pathspec that leads nowhere else, each of its parts the name of something in its folder."""


@dataclass(frozen=True, slots=True)
class PrintedNames:
    """Names that a search prints."""

    search: Search
    """The search, with `odd_names` for names that do not arrive whole unless NULs separate them."""
    globs: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    """Beginnings of the names; empty if they may begin in any way."""


def printed_names(command: SimpleCommand, search: Effect) -> PrintedNames | None:
    """Return what a search prints the names of, one a line or parted by NUL; None if it prints anything else."""
    texts = [word.text or "" for word in command.words]
    if not texts or command.redirects or not search.is_read_only:
        return None
    if texts[0] == "git":
        return _tracked(command.words[1:])
    if texts[0] == "find":
        is_plain = (
            all(_FIND_PRINTS_NAMES.fullmatch(text) for text in texts if text.startswith("-"))
            and not search.read_details.globs
        )
        return names_from_find(search, command.words) if is_plain else None
    if texts[0] not in _LISTING:
        return None
    needed, allowed = _LISTING[texts[0]]
    flags = [text for text in texts[1:] if text.startswith("-")]
    is_listing = not needed.pattern or any(needed.fullmatch(flag) for flag in flags)
    if not is_listing or not all(allowed.fullmatch(flag) for flag in flags):
        return None
    if texts[0] == "ls":
        # ls prints names without their folder, as if the files were here. BSD's ls shows hidden names to root, whatever
        # its flags.
        shows_hidden = any("A" in flag for flag in flags) or (sys.platform != "linux" and os.geteuid() == 0)
        folders = tuple(dict.fromkeys((".", *(search.reads or ()))))
        # ls also lists a folder that a pattern matches.
        odd_names = BARE_NAME if search.read_details.globs else SPLIT_NAME
        return PrintedNames(
            Search(folders, leaves_out_hidden=not shows_hidden, odd_names=odd_names), search.read_details.globs
        )
    if search.read_details.globs:
        return None
    told = search.search
    folders = search.reads or ()
    return PrintedNames(
        Search(folders, told.only_names, leaves_out_hidden=told.leaves_out_hidden, odd_names=SPLIT_NAME)
    )


def names_from_find(search: Effect, words: Sequence[Word]) -> PrintedNames:
    """Return what find hands on, whose names begin with the folders that it starts in.

    Args:
        search: What find does without handing anything on.
        words: Its words up to where it does.
    """
    starts = search.reads or ()
    return PrintedNames(Search(starts, name_pattern_of(words), odd_names=PARTED_NAME), leads=starts)


def _tracked(words: Sequence[Word]) -> PrintedNames | None:
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
    return PrintedNames(Search((".",), only_tracked=True, odd_names=QUOTED_NAME))


def uses_nul_separator(command: SimpleCommand) -> bool:
    """Return whether a search parts the names that it prints by NUL."""
    texts = [word.text or "" for word in command.words]
    if texts[0] == "git":
        return any(re.fullmatch(r"-[a-z]*z[a-z]*", text) for text in texts)
    return texts[0] == "find" and "-print0" in texts


def name_pattern_of(words: Sequence[Word]) -> tuple[str, ...]:
    """Return a pattern that every name fits which find hands on; none if that is not known."""
    texts = [word.text or "" for word in words]
    tested = texts[: min((texts.index(word) for word in ("-print", "-print0") if word in texts), default=None)]
    if not _JOINS_ANY.isdisjoint(texts) or "-name" not in tested[:-1]:
        return ()
    at = tested.index("-name")
    is_plain = tested[at - 1] not in ("!", "-not") and _PLAIN_PATTERN.fullmatch(tested[at + 1])
    return (tested[at + 1],) if is_plain else ()


_ANY_TEXT = Word('"$1"', None)
"""A word that may be any text."""
_SPECIAL = compile_late(r"[\\*?\[\]]")
_PASSING: Mapping[str, re.Pattern[str]] = {
    "grep": compile_late(r"-[vivEFPw]+|-e"),
    "head": compile_late(r"-n|-n?\d+"),
    "sort": compile_late(r"-[nruV]+"),
    "tail": compile_late(r"-n|-n?\d+"),
    "uniq": compile_late(r"-[ud]"),
}
"""Programs that print some of the lines that they read, and each as it was; with the flags for which that holds."""


def find_exec(command: SimpleCommand, judge: Callable[[SimpleCommand], Effect]) -> Effect | None:
    """Return what find with `-exec`, or xargs behind a search, would do, where that is only to look; else None.

    Args:
        command: What is judged.
        judge: Returns what a simple command would do.
    """
    match command.words[0].text:
        case "find":
            return _of_exec(command, judge)
        case "xargs":
            return _of_xargs(command, judge)
        case _:
            return None


def _of_exec(command: SimpleCommand, judge: Callable[[SimpleCommand], Effect]) -> Effect | None:
    texts = [word.text for word in command.words]
    if texts.count("-exec") != 1:
        return None
    begin = texts.index("-exec")
    end = next(
        (at for at in range(begin, len(texts)) if texts[at] == ";" or texts[at - 1 : at + 1] == ["{}", "+"]), None
    )
    program = command.words[begin + 1 : end]
    if end is None:
        return None
    # `-exec …` is a test; put another test in its place.
    rest = (*command.words[:begin], Word("-true", "-true"), *command.words[end + 1 :])
    search = judge(replace(command, words=rest, redirects=(), piped_from=()))
    if not search.is_read_only or search.read_details.globs:
        return None
    listing = names_from_find(search, command.words[:begin])
    variants = [_with_names(program, "{}", name) for name in _names_of(listing)]
    return _joined(command, search, _effects(command, variants, judge), listing) if all(variants) else None


def _of_xargs(command: SimpleCommand, judge: Callable[[SimpleCommand], Effect]) -> Effect | None:
    given = _read_xargs(command.words[1:])
    if given is None:
        return None
    if harmless := _of_any_text(command, given, judge):
        return harmless
    if not command.piped_from or any(feeding.joins_errors for feeding in command.piped_from):
        return None
    first, *passing = command.piped_from
    search = judge(first)
    listing = printed_names(first, search)
    if listing is None or not all(_passes_lines(feeding, judge) for feeding in passing):
        return None
    variants = given.with_names(_names_of(listing))
    odd_names = listing.search.odd_names
    if given.is_exact and uses_nul_separator(first) and not passing:
        odd_names = None if listing.leads else SIGNED_NAME
    elif any(SPLIT_NAME.search(path) for path in search.reads or ()):
        return None
    found = _joined(command, search, _effects(command, variants, judge), listing)
    return found and replace(found, search=replace(found.search, odd_names=odd_names))


def _of_any_text(
    command: SimpleCommand, given: "_XargsArguments", judge: Callable[[SimpleCommand], Effect]
) -> Effect | None:
    """Return the effect of xargs with a program that looks at no file, whatever words it is given; else None."""
    effects = _effects(command, given.with_any_text(), judge)
    if not effects or any(
        not effect.is_read_only or effect.reads or effect.read_details.asks_git_in for effect in effects
    ):
        return None
    needed = {name: value for effect in effects for name, value in effect.needed_environment.items()}
    why = f"it gives what it reads to {effects[0].program}, and {effects[0].why}"
    kind = Kind(runs_code=False, uses_network=False, why=why)
    return Effect(
        command, "xargs", (), (), kind, read_details=ReadDetails(opens_nothing=True), needed_environment=needed
    )


def _effects(
    command: SimpleCommand, variants: Sequence[tuple[Word, ...]], judge: Callable[[SimpleCommand], Effect]
) -> list[Effect]:
    """Return what the program would do with each of these words."""
    return [judge(replace(command, words=words, redirects=(), piped_from=())) for words in variants]


def _names_of(listing: PrintedNames) -> Sequence[Word]:
    """Return words in place of the names: like those that a pattern matches in each folder, or anywhere."""
    leads = [_SPECIAL.sub(r"\\\g<0>", lead.rstrip("/")) for lead in listing.leads]
    patterns = [f"{lead}/*" for lead in leads] or [UNSIGNED_NAMES]
    return [Word("{}", None, is_glob=True, pattern=pattern) for pattern in patterns]


def _joined(command: SimpleCommand, search: Effect, effects: Sequence[Effect], listing: PrintedNames) -> Effect | None:
    """Return the effect of a search and of what is done with its names; None if one of them does more than look."""
    patterns = [word.pattern for word in _names_of(listing)]
    if not effects:
        return None
    for effect in effects:
        if (
            not effect.is_read_only
            or effect.search.folders
            or effect.read_details.asks_git_in
            or not (
                effect.read_details.globs == ()
                or (len(effect.read_details.globs) == 1 and effect.read_details.globs[0] in patterns)
            )
        ):
            return None
    reads = (*listing.search.folders, *(path for effect in effects for path in effect.reads or ()))
    own = {} if search.read_details.asks_git_in else search.needed_environment
    needed = {name: value for part in (own, *(e.needed_environment for e in effects)) for name, value in part.items()}
    return Effect(
        command,
        command.words[0].text,
        tuple(dict.fromkeys(reads)),
        (),
        Kind(False, False, f"it gives the names found to {effects[0].program}, and {effects[0].why}"),
        replace(listing.search, follows_links=True, odd_names=None),
        ReadDetails(listing.globs, opens_nothing=all(effect.read_details.opens_nothing for effect in effects)),
        needed_environment=needed,
    )


def _with_names(words: Sequence[Word], token: str, name: Word) -> tuple[Word, ...]:
    """Return the words of the program with a name in its place; none if that is not a word of its own."""
    others = [word for word in words if word.text != token]
    if not words or words[0].text == token or any(token in word.source or word.text is None for word in others):
        return ()
    return tuple(name if word.text == token else word for word in words)


@dataclass(frozen=True, slots=True)
class _XargsArguments:
    """Arguments of xargs."""

    program: tuple[Word, ...]
    token: str = ""
    """Text that xargs replaces by a name in the words of the program (`-I`); empty if names are appended."""
    is_exact: bool = False
    """True if it takes names as they are."""
    needs_names: bool = False
    """True if nothing runs where there are no names."""

    def with_names(self, names: Sequence[Word]) -> list[tuple[Word, ...]]:
        """Return what it may run, with each of these names and without; nothing if that is not known."""
        if self.token:
            with_names = [_with_names(self.program, self.token, name) for name in names]
            return with_names if all(with_names) else []
        if any(word.text is None for word in self.program):
            return []
        return [*((*self.program, name) for name in names), *([] if self.needs_names else [self.program])]

    def with_any_text(self) -> list[tuple[Word, ...]]:
        """Return the same with any words in the place of the names."""
        first, *rest = self.program
        if first.text is None or (self.token and self.token in first.text):
            return []
        if self.token:
            return [(first, *(_ANY_TEXT if self.token in word.source else word for word in rest))]
        return [(*self.program, _ANY_TEXT), self.program]


def _read_xargs(words: Sequence[Word]) -> _XargsArguments | None:
    """Return what xargs is told; None if that is not known."""
    waiting = list(words)[::-1]
    is_exact, needs_names, token = False, False, ""
    while waiting and (waiting[-1].text or "").startswith("-"):
        flag = waiting.pop().text or ""
        if flag in ("-n", "-L", "-P", "-I", "-d"):
            if not waiting:
                return None
            flag += waiting.pop().text or ""
        if flag.startswith("-I") and len(flag) > len("-I"):
            token = flag.removeprefix("-I")
        elif flag in ("-0", "-0r", "-r0"):
            is_exact, needs_names = True, needs_names or "r" in flag
        elif flag == "-r":
            needs_names = True
        elif flag not in ("-d\\n", "-d\n") and not re.fullmatch(r"-[nLP]\d{1,4}", flag):
            return None
    return _XargsArguments(tuple(waiting[::-1]) or (Word("echo", "echo"),), token, is_exact, needs_names)


def _passes_lines(command: SimpleCommand, judge: Callable[[SimpleCommand], Effect]) -> bool:
    """Return whether a part of the pipeline lets through some of its lines, as they are."""
    texts = [word.text or "" for word in command.words]
    flags = _PASSING.get(texts[0]) if texts else None
    if flags is None or not all(flags.fullmatch(text) for text in texts[1:] if text.startswith("-")):
        return False
    effect = judge(command)
    return effect.is_read_only and effect.reads == ()
