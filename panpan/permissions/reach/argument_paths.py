"""Paths in the words of commands whose effect on them is unknown, and paths that the words hide.

The rule: every word that may be a path counts: as written, in its parts, and as a shell would read it. More may be
named than is touched, never less.

The rule: these are protected places (system/files/protected.py). What writes them by name is asked about in every mode;
so is what writes them by a program that is made for it.

The rule: a rule for paths may hold for it. Words that are data, such as messages and numbers, are no paths. Behind
`shopt -s cdable_vars` and the like any word may be one.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.permissions.reach.deletions import SHELLS, name_of, operands, unwrapped_words
from panpan.permissions.reach.folder_walk import MOST_NAMES, TooManyNamesError, links_below, match_pattern, matches
from panpan.permissions.reach.located import LocatedUse, Locator
from panpan.shell_analysis.facts import Effect, LineFacts, SimpleCommand, Word
from panpan.system.files.protected import protections
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.shell_analysis.writers import Written


@dataclass(frozen=True, slots=True)
class _Writer:
    """Program that arranges for something to run later, and the places that it writes for that."""

    place: str
    own_place: str = ""
    """Place that it writes for one user, if a flag says so; empty if there is none."""
    forms: frozenset[str] = frozenset()
    """Its subcommands that do so; empty if it does whatever it is given."""
    looks: re.Pattern[str] = compile_late(r"(?!)")
    """Flags with which it only looks."""


_FOR_USER = frozenset({"--user"})
_WRITERS: Mapping[str, _Writer] = {
    "at": _Writer("/var/spool/cron/atjobs", looks=compile_late(r"-[lcV]|-q[a-zA-Z]?l")),
    "batch": _Writer("/var/spool/cron/atjobs"),
    "chkconfig": _Writer("/etc/systemd/system", forms=frozenset({"on", "--add"})),
    "crontab": _Writer("/var/spool/cron", looks=compile_late(r"-l|-V")),
    "launchctl": _Writer("~/Library/LaunchAgents", forms=frozenset({"bootstrap", "enable", "load", "submit"})),
    "systemctl": _Writer(
        "/etc/systemd/system",
        "~/.config/systemd/user",
        frozenset({"add-requires", "add-wants", "edit", "enable", "link", "preset", "preset-all", "reenable", "revert",
                   "set-default"}),
    ),
    "update-rc.d": _Writer("/etc/systemd/system"),
}  # fmt: skip


def autostart_places(command: SimpleCommand) -> Sequence[str]:
    """Return the places that a command writes without naming them, and from which commands are run later."""
    words = unwrapped_words(command.words)
    writer = _WRITERS.get(name_of(words))
    if writer is None:
        return ()
    texts = [word.text or word.source for word in words[1:]]
    if any(writer.looks.fullmatch(text) for text in texts):
        return ()
    if writer.forms and writer.forms.isdisjoint(texts) and all(word.text is not None for word in operands(words)):
        return ()
    is_own = bool(writer.own_place) and not _FOR_USER.isdisjoint(texts)
    return (writer.own_place if is_own else writer.place,)


_LEADS_TO = frozenset({"cd", "link", "ln"})
"""Programs after which another name, or a bare one, leads to their arguments."""
_PARTING = compile_late(r"""[\s'";&|<>()=`$]+""")
_VALUE = compile_late(r"(?<=[=\s])\S+")
_MOST_MATCHES = 2_000
"""Names looked at of those that a pattern in a command matches."""
_FLAGS = compile_late(r"-?[A-Za-z]{1,10}", re.ASCII)
_FOLDER_FLAGS = ("--chdir", "--cwd", "--directory", "--working-directory")
"""Long flags with which env, make, tar, uv, yarn and systemd-run work in another folder; they may be shortened."""
_SHORT_FOLDER_FLAG = compile_late(r"-[A-Za-z]*?C(.*)", re.DOTALL)
"""The short flag, which may come after others and have the folder in the same word: `-xzC`, `-C..`."""
_OLD_FLAGS_OF_TAR = compile_late(r"[A-Za-z]*C[A-Za-z]*")
_QUOTES = compile_late(r"""["'\\]""")


def argument_paths(facts: LineFacts, uses: Iterable[LocatedUse], cwd: Path, locator: Locator) -> Iterator[LocatedUse]:
    """Yield the paths that a line names for commands which may do anything with them, once for each possible access.

    Args:
        facts: What the line would do.
        uses: What is located of it already.
        cwd: Where it starts.
        locator: Locates the rest.
    """
    if facts.is_read_only:
        return
    known = {use.use.path: use for use in uses}
    names: dict[str, bool] = {}
    sources: dict[str, str] = {}
    for effect in facts.effects:
        may_read = effect.reads != ()
        for name in _names(effect, cwd):
            names[name] = may_read or names.get(name, False)
            sources.setdefault(name, effect.command.source)
    for name, may_read in names.items():
        written = PathUse(name, "write")
        with suppress(ToolError):  # not a path that could be touched
            found = known.get(name) or locator.locate_use(written)
            for use in (written, PathUse(name, "read")) if may_read else (written,):
                yield LocatedUse(use, found.location, found.spellings, found.is_shallow, sources[name])


def folders_outside(facts: LineFacts, locator: Locator) -> Iterator[LocatedUse]:
    """Yield the folders outside where commands are told to work (`tar -C ~`); a `cd` to them would ask, too.

    Args:
        facts: What the line would do.
        locator: Locates them.
    """
    for effect in facts.effects:
        if effect.reads is None:
            for folder in _told_folders(effect.command):
                with suppress(ToolError):  # not a folder in which anything could run
                    found = locator.locate_use(PathUse(folder, "read"), is_shallow=True, command=effect.command.source)
                    if not found.is_open:
                        yield found


def all_words(command: SimpleCommand) -> Sequence[Word]:
    """Return the words of a command, the targets of its redirects among them."""
    return (*command.words, *(redirect.target for redirect in command.redirects))


def _names(effect: Effect, cwd: Path) -> Iterator[str]:
    """Yield the paths that a command may do anything with."""
    command = effect.command
    words = all_words(command)
    yield from _assigned(command)
    yield from _in_words_for_shells(words)
    is_unknown = effect.reads is None or effect.placed_writes is None or effect.runs_code is not False
    if is_unknown or effect.program in _LEADS_TO:
        yield from map(str, _matched(words, command, cwd))
        yield from _used_unseen(effect, words, cwd)
        yield from autostart_places(command)


def _matched(words: Sequence[Word], command: SimpleCommand, cwd: Path) -> Iterator[Path]:
    """Yield what the patterns of a command match."""
    for pattern in command.placed_patterns(word.pattern for word in words if word.is_glob):
        yield from islice(matches(pattern, cwd), _MOST_MATCHES)


def _assigned(command: SimpleCommand) -> Iterator[str]:
    """Yield the values of what may be variables that it sets."""
    for value in command.assignments and _VALUE.findall(command.source):
        yield _QUOTES.sub("", value)
    for word in command.assigned:
        yield from (part for part in (word.text or word.home_path).split(":") if part)


def _in_words_for_shells(words: Sequence[Word]) -> Iterator[str]:
    """Yield the parts of words which a shell among the words would take for command lines."""
    texts = [word.text for word in words if word.text]
    if any(text.rpartition("/")[2] in SHELLS for text in texts):
        yield from (part for text in texts if " " in text for part in _PARTING.split(text) if part)


def _used_unseen(effect: Effect, words: Sequence[Word], cwd: Path) -> Iterator[str]:
    """Yield what the words may name of which it is not known what becomes of it."""
    from panpan.shell_analysis.words import with_ansi_c_decoded  # imported with the rest of the analysis

    folders = _folders(effect.command)
    yield from (posixpath.join(folder, word) for word in effect.path_like_words for folder in folders)
    places = [os.path.join(cwd, folder) for folder in folders]  # noqa: PTH118 - strings, of which there are many
    for text in filter(None, (word.text for word in words[1:])):
        yield from _behind_letters(text, places)
    for word in words:
        if word.text is None:  # the visible part may tell the place, or the name
            name = _QUOTES.sub("", with_ansi_c_decoded(word.source))
            yield from [name] if name.startswith("~") else (posixpath.join(folder, name) for folder in folders)


def _behind_letters(text: str, folders: Sequence[str]) -> Iterator[str]:
    """Yield paths behind letters that may be flags, if they exist or are protected: `-czTnames`, `cT.env`."""
    found = _FLAGS.match(text)
    is_flags = text.startswith("-")
    if found is None or (not is_flags and any(os.path.lexists(f"{folder}/{text}") for folder in folders)):
        return
    for at in range(3 if is_flags else 1, min(found.end() + 1, len(text))):
        if not is_flags and text[at] == "/":
            return
        for folder in folders:
            place = os.path.join(folder, text[at:])  # noqa: PTH118 - as above
            if os.path.lexists(place) or (is_flags and next(protections(Path(place)), None)):
                yield place


def _folders(command: SimpleCommand) -> Sequence[str]:
    """Return where a command may run, or be told to work, relative to where the line starts."""
    return (*(command.directories or command.likely), *_told_folders(command))


def _told_folders(command: SimpleCommand) -> Sequence[str]:
    """Return where flags of a command may tell it to work, relative to where the line starts."""
    texts = [word.text or word.home_path for word in command.words]
    told = [folder for flag, behind in pairwise((*texts, "")) if (folder := _folder_of_flag(flag, behind))]
    if texts[:1] == ["tar"] and len(texts) > 1 and _OLD_FLAGS_OF_TAR.fullmatch(texts[1]):
        told += filter(None, texts[2 : 2 + len(texts[1])])
    return [posixpath.join(folder, text) for text in told for folder in command.directories or command.likely]


def _folder_of_flag(flag: str, behind: str) -> str:
    """Return the folder that a word may name as a flag, with the word behind it; empty if it is no such flag."""
    if flag.startswith("--"):
        name, has_value, value = flag.partition("=")
        is_one = len(name) > 3 and any(one.startswith(name) for one in _FOLDER_FLAGS)
        return (value if has_value else behind) if is_one else ""
    found = _SHORT_FOLDER_FLAG.fullmatch(flag)
    return found[1] or behind if found else ""


_Access: TypeAlias = Literal["read", "write"]
_TAKES_NO_PATHS = frozenset({
    ":", "break", "continue", "exit", "expr", "false", "kill", "let", "return", "seq", "shift", "sleep", "true", "wait",
})  # fmt: skip
_HAND_ON = frozenset({"cpio", "fd", "fdfind", "find", "parallel", "pax", "xargs"})
"""Programs that take names which no word tells, or give them to others: `find . -exec rm {} +`, `xargs cat`."""
_TAKES_LIST = compile_late(r"(?s:--files0?-from.*)|-@")
_TARS = frozenset({"bsdtar", "gtar", "tar"})
_TAR_TAKES_LIST = compile_late(r"(?s:-?[A-Za-z]{0,9}T.*)|--files-.*")
"""Flags that take the names of files from a file: `tar -cT names`, `sort --files0-from=names`, `zip -@`."""
_TESTS = frozenset({"[", "[[", "test"})
_FILE_TEST = compile_late(r"-(?:[a-hkprstuwxGLNOS]|nt|ot|ef)")
_NUMBER = compile_late(r"\"?\$(?:\(\([^`]*\)\)|[?#$!])\"?")
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
    if name in _TARS:  # its first word may be flags without a dash
        flags = [*texts[:1], *(text for text in texts if text.startswith("-"))]
        return any(map(_TAR_TAKES_LIST.fullmatch, flags))
    return name in _HAND_ON or any(map(_TAKES_LIST.fullmatch, texts))


def _unknown_words(effect: Effect) -> Iterator[Word]:
    from panpan.shell_analysis.judge import is_message  # not needed before the first command

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


MAX_PATHS = 20_000
"""Most paths of a call that are looked at."""


class _TooManyError(Exception):
    """There is more than can be looked at; says what."""


@dataclass(slots=True)
class ReachedPaths:
    """Paths that are reached, each with the first simple command that does it."""

    uses: dict[PathUse, str] = field(default_factory=dict)
    files: dict[PathUse, dict[str, str]] = field(default_factory=dict)
    """Regular files beside these: for each folder, with what is done to the files in it, their names."""
    _count: int = 0
    """Number of all these names."""

    def add(self, use: PathUse, command: str) -> None:
        """Add a path."""
        self.uses.setdefault(use, command)
        self._require_few(command)

    def add_files(self, folder: PathUse, names: Iterable[str], command: str) -> None:
        """Add regular files of a folder."""
        known = self.files.setdefault(folder, {})
        room = max(0, MAX_PATHS + 1 - len(self.uses) - self._count)
        new = list(islice((name for name in names if name not in known), room))
        known |= dict.fromkeys(new, command)
        self._count += len(new)
        self._require_few(command)

    def _require_few(self, command: str) -> None:
        if len(self.uses) + self._count > MAX_PATHS:
            raise _TooManyError(f"`{command}` reaches too many files to look at each of them")


@dataclass(frozen=True, slots=True)
class Reached:
    """Paths that a line reaches without naming them."""

    used: ReachedPaths = field(default_factory=ReachedPaths)
    looked_at: ReachedPaths = field(default_factory=ReachedPaths)
    """Paths that are only looked at, beside these; of folders, without what lies in them."""
    unseen: str = ""
    """Reason why these are not all; empty if they are."""


def may_reach_unnamed_paths(facts: LineFacts) -> bool:
    """Return whether a line may reach anything without naming it, so that folders have to be looked through."""
    return any(effect.search.follows_links or next(_patterns(effect), None) for effect in facts.effects)


def resolved_paths(facts: LineFacts, cwd: Path) -> Reached:
    """Return what a line reaches without naming it.

    Args:
        facts: What the line would do.
        cwd: Where it starts.
    """
    is_wide = any(effect.program == "shopt" or "GLOBIGNORE" in effect.command.assignments for effect in facts.effects)
    used, looked_at = ReachedPaths(), ReachedPaths()
    unseen = ""
    for effect in facts.effects:
        try:
            _add_matched(effect, cwd, looked_at if _written(effect) is None else used, is_wide=is_wide)
            for use in _linked(effect, cwd):
                (looked_at if effect.is_read_only else used).add(use, effect.command.source)
        except (_TooManyError, TooManyNamesError) as exc:
            unseen = str(exc)
    return Reached(used, looked_at, unseen)


def _add_matched(effect: Effect, cwd: Path, found: ReachedPaths, *, is_wide: bool) -> None:
    """Add what the patterns of a command match."""
    for pattern in _patterns(effect):
        for placed in effect.command.placed_patterns([pattern.path]):
            # As the shell passes it on, without a prefix that the resolver would interpret.
            base, start = ("", "") if placed.startswith("/") else (str(cwd).rstrip("/"), ".")
            for some in match_pattern(placed, cwd, is_wide=is_wide):
                if some.files:
                    folder = PathUse(f"{start}{some.folder[len(base) :]}" or "/", pattern.access)
                    found.add_files(folder, some.files, effect.command.source)
                for path in some.others:
                    found.add(PathUse(f"{start}{path[len(base) :]}", pattern.access), effect.command.source)


def _linked(effect: Effect, cwd: Path) -> Iterator[PathUse]:
    """Yield the links in folders that a command searches and follows links in."""
    search = effect.search
    folders = dict.fromkeys(cwd / path for path in effect.placed_searches) if search.follows_links else ()
    links = links_below(
        folders, search.only_names, leaves_out_hidden=search.leaves_out_hidden, only_tracked=search.only_tracked
    )
    for count, link in enumerate(links, 1):
        if count > MOST_NAMES:
            raise _TooManyError("the folder is too large to tell whether links in it lead elsewhere")
        if link is not None:
            yield PathUse(str(link), "read")


def _patterns(effect: Effect) -> Iterator[PathUse]:
    """Yield the patterns of a command of which it is known what it does with what they match."""
    for redirect in effect.command.redirects:
        if redirect.target.is_glob:
            yield PathUse(redirect.target.pattern, "write" if redirect.is_write else "read")
    written = _written(effect)
    if written is None:  # it reads them, whatever else the line does
        yield from (PathUse(pattern, "read") for pattern in effect.read_details.globs)
    else:
        yield from (PathUse(word.pattern, "read") for word in _globs(written.reads))
        yield from (PathUse(word.pattern, "write") for word in _globs(written.writes))


def _written(effect: Effect) -> "Written | None":
    """Return what a program touches that writes what it is given; None for all others."""
    if effect.is_read_only:
        return None
    from panpan.shell_analysis.writers import written_by  # not needed before the first command

    words = unwrapped_words(effect.command.words)
    return written_by(name_of(words), words[1:])


def _globs(words: tuple[Word, ...]) -> Iterator[Word]:
    return (word for word in words if word.is_glob)
