"""Programs that are handed the names which a search finds: `find … -exec wc -l {} +`, `find … | xargs grep foo`.

The rule: where the search only looks, and the program only looks whichever names below the searched folders it is
given, the whole is a search through these folders. What the names have to be for that, the effect says, and the gate
looks for itself: without `-print0` and `-0`, `xargs` parts them at blanks and takes quotes away, and a name of a search
that does not begin with its folder may look like a flag.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from panpan.tools.shell.analysis.facts import ODD_NAME, Effect, SimpleCommand, Word

_NAME = Word("{}", None, is_glob=True, pattern="./*")
"""Stands for the names: like those that a pattern matches in a folder."""
_PRINTS_ELSE = frozenset({"-printf", "-ls", "-exec"})
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
    "rg": (
        re.compile(r"-\w*l\w*|--files(?:-with-matches)?"),
        re.compile(r"-[liSsuwxFPn.]+|-[tTge]\w*|--(?:files|files-with-matches|hidden|no-ignore)"),
    ),
}
"""Searches that print names and nothing else: the flag that makes them do so, and the flags that let them go on so."""
_PASSING: Mapping[str, re.Pattern[str]] = {
    "grep": re.compile(r"-[vivEFPw]+|-e"),
    "head": re.compile(r"-n|-n?\d+"),
    "sort": re.compile(r"-[nruV]+"),
    "tail": re.compile(r"-n|-n?\d+"),
    "uniq": re.compile(r"-[ud]"),
}
"""Programs that print some of the lines that they read, and each as it was; with the flags for which that holds."""


def handed_on(command: SimpleCommand, judge: Callable[[SimpleCommand], Effect]) -> Effect | None:
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
    inner = _with_names(command.words[begin + 1 : end], "{}")
    if end is None or not inner:
        return None
    # In the place of `-exec …`, which is a test, stands another one.
    rest = (*command.words[:begin], Word("-true", "-true"), *command.words[end + 1 :])
    search = judge(replace(command, words=rest, redirects=(), fed_by=()))
    effect = judge(replace(command, words=inner, redirects=(), fed_by=()))
    return _joined(command, search, [effect], _only_names(command.words[:begin]))


def _of_xargs(command: SimpleCommand, judge: Callable[[SimpleCommand], Effect]) -> Effect | None:
    if not command.fed_by or any(feeding.joins_errors for feeding in command.fed_by):
        return None
    first, *passing = command.fed_by
    read = _read_xargs(command.words[1:])
    if read is None or not _lists_names(first) or not all(_passes_lines(feeding, judge) for feeding in passing):
        return None
    variants, is_exact = read
    search = judge(first)
    effects = [judge(replace(command, words=words, redirects=(), fed_by=())) for words in variants]
    is_find = first.words[0].text == "find"
    is_split = not (is_find and is_exact and "-print0" in [word.text for word in first.words] and not passing)
    if is_split and any(ODD_NAME.search(path) for path in search.reads or ()):
        return None
    found = _joined(command, search, effects, _only_names(first.words) if is_find else search.only_names)
    return found and replace(found, splits_names=is_split)


def _joined(
    command: SimpleCommand, search: Effect, effects: Sequence[Effect], only_names: tuple[str, ...]
) -> Effect | None:
    """Return the effect of a search and of what is done with its names; None where one of them does more than look."""
    for effect in effects:
        if (
            not effect.is_read_only
            or effect.searches
            or effect.asks_git_in
            or effect.globs not in ((), (_NAME.pattern,))
        ):
            return None
    if not search.is_read_only or search.globs:
        return None
    folders = search.reads or ()
    reads = (path for effect in (search, *effects) for path in effect.reads or ())
    needed = {name: value for effect in (search, *effects) for name, value in effect.needed_environment.items()}
    return Effect(
        command,
        command.words[0].text,
        tuple(dict.fromkeys(reads)),
        (),
        runs_code=False,
        uses_network=False,
        why=f"it gives the names found to {effects[0].program}, and {effects[0].why}",
        searches=folders,
        follows_links=True,
        only_names=only_names,
        leaves_out_hidden=search.leaves_out_hidden,
        opens_nothing=all(effect.opens_nothing for effect in effects),
        needed_environment=needed,
    )


def _with_names(words: Sequence[Word], token: str) -> tuple[Word, ...]:
    """Return the words of the program with the names in their place; none where that is not a word of its own."""
    others = [word for word in words if word.text != token]
    if not words or words[0].text == token or any(token in word.source or word.text is None for word in others):
        return ()
    return tuple(_NAME if word.text == token else word for word in words)


def _read_xargs(words: Sequence[Word]) -> tuple[list[tuple[Word, ...]], bool] | None:
    """Return what xargs may run, with names and without, and whether it takes names as they are; None: not known."""
    waiting = list(words)[::-1]
    is_exact, token = False, ""
    while waiting and (waiting[-1].text or "").startswith("-"):
        flag = waiting.pop().text or ""
        if flag in ("-n", "-L", "-P", "-I"):
            if not waiting:
                return None
            flag += waiting.pop().text or ""
        if flag.startswith("-I") and len(flag) > len("-I"):
            token = flag.removeprefix("-I")
        elif flag in ("-0", "-0r", "-r0"):
            is_exact = True
        elif flag != "-r" and not re.fullmatch(r"-[nLP]\d{1,4}", flag):
            return None
    program = tuple(waiting[::-1]) or (Word("echo", "echo"),)
    if token:
        with_names = _with_names(program, token)
        return ([with_names], is_exact) if with_names else None
    if any(word.text is None for word in program):
        return None
    return [(*program, _NAME), program], is_exact


def _lists_names(command: SimpleCommand) -> bool:
    """Return whether a search prints the names of files below its folders, one a line or parted by NUL."""
    texts = [word.text or "" for word in command.words]
    if not texts or command.redirects:
        return False
    if texts[0] == "find":
        return _PRINTS_ELSE.isdisjoint(texts)
    if texts[0] not in _LISTING:
        return False
    needed, allowed = _LISTING[texts[0]]
    flags = [text for text in texts[1:] if text.startswith("-")]
    is_listing = not needed.pattern or any(needed.fullmatch(flag) for flag in flags)
    return is_listing and all(allowed.fullmatch(flag) for flag in flags)


def _passes_lines(command: SimpleCommand, judge: Callable[[SimpleCommand], Effect]) -> bool:
    """Return whether a part of the pipeline lets through some of its lines, as they are."""
    texts = [word.text or "" for word in command.words]
    flags = _PASSING.get(texts[0]) if texts else None
    if flags is None or not all(flags.fullmatch(text) for text in texts[1:] if text.startswith("-")):
        return False
    effect = judge(command)
    return effect.is_read_only and effect.reads == ()


def _only_names(words: Sequence[Word]) -> tuple[str, ...]:
    """Return a pattern that every name fits which find hands on; none where that is not known."""
    texts = [word.text or "" for word in words]
    tested = texts[: min((texts.index(word) for word in ("-print", "-print0") if word in texts), default=None)]
    if not _JOINS_ANY.isdisjoint(texts) or "-name" not in tested[:-1]:
        return ()
    at = tested.index("-name")
    is_plain = tested[at - 1] not in ("!", "-not") and _PLAIN_PATTERN.fullmatch(tested[at + 1])
    return (tested[at + 1],) if is_plain else ()
