"""What a command line names for commands of which it is not known what they do with it.

The rule: every word that may be a path counts, as it stands, as a part of it may, and as a shell would read it; more
may be named than is touched, never less.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path

from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.permissions.reach.autostart import autostart_places
from panpan.permissions.reach.live_patterns import matches
from panpan.permissions.reach.located import LocatedUse, Locator
from panpan.permissions.reach.takings import SHELLS
from panpan.shell_analysis.facts import Effect, LineFacts, SimpleCommand, Word
from panpan.system.files.protected import protections

_LEADS_TO = frozenset({"cd", "link", "ln"})
"""Programs behind which another name, or a bare one, stands for what they are given."""
_PARTING = re.compile(r"""[\s'";&|<>()=`$]+""")
_VALUE = re.compile(r"(?<=[=\s])\S+")
_MOST_MATCHES = 2_000
"""Names looked at of those that a pattern in a command matches."""
_FLAGS = re.compile(r"-?[A-Za-z]{1,10}", re.ASCII)
_FOLDER_FLAGS = ("--chdir", "--cwd", "--directory", "--working-directory")
"""Long flags with which env, make, tar, uv, yarn and systemd-run work in another folder; they may be shortened."""
_SHORT_FOLDER_FLAG = re.compile(r"-[A-Za-z]*?C(.*)", re.DOTALL)
"""The short one, which may stand behind others and have the folder in the same word: `-xzC`, `-C..`."""
_OLD_FLAGS_OF_TAR = re.compile(r"[A-Za-z]*C[A-Za-z]*")
_QUOTES = re.compile(r"""["'\\]""")


def named_uses(facts: LineFacts, uses: Iterable[LocatedUse], cwd: Path, locator: Locator) -> Iterator[LocatedUse]:
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
        with suppress(ToolError):  # no path that could be touched
            found = known.get(name) or locator.located(written)
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
                with suppress(ToolError):  # no folder in which anything could run
                    found = locator.located(PathUse(folder, "read"), is_shallow=True, command=effect.command.source)
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
    from panpan.shell_analysis.words import with_ansi_c_decoded  # with the rest of the analysis

    folders = _folders(effect.command)
    yield from (posixpath.join(folder, word) for word in effect.mentions for folder in folders)
    places = [os.path.join(cwd, folder) for folder in folders]  # noqa: PTH118 - strings, of which there are many
    for text in filter(None, (word.text for word in words[1:])):
        yield from _behind_letters(text, places)
    for word in words:
        if word.text is None:  # what can be seen of it may tell the place, or the name
            name = _QUOTES.sub("", with_ansi_c_decoded(word.source))
            yield from [name] if name.startswith("~") else (posixpath.join(folder, name) for folder in folders)


def _behind_letters(text: str, folders: Sequence[str]) -> Iterator[str]:
    """Yield what is there or protected, of what stands behind letters that may be flags: `-czTnames`, `cT.env`."""
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
    """Return the folder that a word may name as a flag, with the word behind it; empty where it is no such flag."""
    if flag.startswith("--"):
        name, has_value, value = flag.partition("=")
        is_one = len(name) > 3 and any(one.startswith(name) for one in _FOLDER_FLAGS)
        return (value if has_value else behind) if is_one else ""
    found = _SHORT_FOLDER_FLAG.fullmatch(flag)
    return found[1] or behind if found else ""
