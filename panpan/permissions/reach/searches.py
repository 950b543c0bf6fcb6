"""Files that a command would read unseen: withheld files in a folder that it searches, pipes and devices.

A rule such as `Read(.env)` names the file, and a search names the folder it lies in; without this the search would show
what the rule withholds. The look around is bounded, and what it could not see counts as withheld.

The rule: only commands that open what they name are meant; `ls` and `stat` ask the file system, and wait for nobody.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, starmap
from pathlib import Path

import anyio.to_thread

from panpan.permissions.reach.folder_walk import (
    MOST_NAMES,
    Doubt,
    TooManyNamesError,
    look_for_odd_names,
    look_for_signed_names,
    matches,
    names_filter,
    walk_folders,
    why_unclear,
)
from panpan.permissions.reach.located import repository_around
from panpan.permissions.rules.patterns import PathPattern
from panpan.permissions.rules.rules import Rule
from panpan.permissions.subject import Subject
from panpan.shell_analysis.facts import Effect, LineFacts, Search
from panpan.system.files.canonical import canonical_path
from panpan.system.files.paths import PathResolver
from panpan.system.files.protected import may_name_secrets
from panpan.types.permission import Reason

_MOST_FILES = 20_000
_NOT_ONE_NAME = frozenset("!{},;")
"""Characters with which a glob may mean more than one pattern says; then every file counts as searched."""
_ADVICE = "search a narrower path, or with a glob that leaves it out"
_BY_GREP = "use Grep, which leaves out files for secrets"


async def withheld_file(rules: Sequence[Rule], subject: Subject) -> Reason | None:
    """Return why the search may show what a rule withholds, or None if it does not.

    Args:
        rules: Rules that deny or ask.
        subject: The search.
    """
    readers = [
        rule
        for rule in rules
        if isinstance(rule.specifier, PathPattern) and (rule.is_about_reading or rule.tool == subject.tool)
    ]
    searching = any(effect.search.folders or effect.read_details.read_recursively for effect in subject.effects)
    if not readers or not (subject.declared.searches or searching):
        return None
    look = partial(_look, readers, subject)
    return await anyio.to_thread.run_sync(look, abandon_on_cancel=True)


async def secret_file(subject: Subject, paths: PathResolver) -> Reason | None:
    """Return why a search in the shell would show a file for secrets, or None.

    Grep leaves such files out itself, and what git tracks is no secret.
    """
    searching = [
        effect
        for effect in subject.effects
        if effect.read_details.bare_globs or (effect.read_details.asks_git_in is None and effect.search.folders)
    ]
    if not searching:
        return None

    def first_reason() -> Reason | None:
        reasons = (_look_through(effect, subject.cwd, paths) for effect in searching)
        return next(filter(None, reasons), None)

    return await anyio.to_thread.run_sync(first_reason, abandon_on_cancel=True)


def _look_through(search: Effect, cwd: Path, paths: PathResolver) -> Reason | None:
    """Return why what is in the folders of a search may not be shown, or not as it would be, or None."""
    folders = _folders_of(search, cwd)
    odd_names = search.search.odd_names
    if search.search.only_tracked:
        odd = why_unclear(folders, odd_names)
    else:
        odd = look_for_odd_names(folders, odd_names) if odd_names is not None else None
    if odd is None and search.read_details.bare_globs:
        odd = _look_for_signed_names(search, cwd)
    if odd is not None:
        source = search.command.source
        return Reason(odd.text, "protected", command=source, assumption=odd.text, advice=odd.advice)
    return _look_for_secrets(folders, paths, search)


def _look_for_signed_names(search: Effect, cwd: Path) -> Doubt | None:
    try:
        return look_for_signed_names(
            search.read_details.bare_globs, [cwd / folder for folder in search.command.directories or ()]
        )
    except TooManyNamesError as exc:
        return Doubt(str(exc))


def _look_for_secrets(folders: Sequence[Path], paths: PathResolver, search: Effect) -> Reason | None:
    source, shown = search.command.source, search.search
    is_meant = names_filter(shown.only_names)
    count = 0
    for parent, _, files in walk_folders(
        folders, leaves_out_hidden=shown.leaves_out_hidden, only_tracked=shown.only_tracked
    ):
        count += len(files)
        if count > MOST_NAMES:
            doubt = "the folder is too large to tell whether it holds files for secrets"
            return Reason(doubt, "protected", command=source, assumption=doubt, advice=_BY_GREP)
        named = [file.name for file in files if may_name_secrets(file.name) and is_meant(file.name)]
        shows_any = bool(named) or any(is_meant(file.name) for file in files)
        suspects = [*([parent] if shows_any else ()), *(f"{parent}/{name}" for name in named)]
        for suspect in map(Path, suspects):
            if not paths.may_show(suspect):
                text = f"{suspect} may hold secrets, and the search would read it"
                return Reason(text, "protected", command=source, path=str(suspect), advice=_BY_GREP)
    return None


def _searches(subject: Subject) -> list[tuple[list[Path], Effect | None]]:
    """Return the folders whose files the call would show, with the search; listing their names shows no file."""
    searched = set(subject.declared.searches)
    places = [use.path for use in subject.uses if use.use.path in searched and use.path.is_dir()]
    found: list[tuple[list[Path], Effect | None]] = [(places, None)]
    # Also each part of a command line, whatever the others do.
    found += [(_shown_folders(effect, subject), effect) for effect in subject.effects]
    found += [(list(_gathered_by(effect, subject.cwd)), _of_all_names(effect)) for effect in subject.effects]
    return [(folders, search) for folders, search in found if folders]


def _shown_folders(search: Effect, subject: Subject) -> list[Path]:
    """Return the folders whose files a search may show: git shows what is in the whole repository, wherever it runs."""
    folders = _folders_of(search, subject.cwd)
    if search.read_details.asks_git_in is None:
        return folders
    tops = (repository_around(folder) for folder in folders)
    # A search inside the workspace does not cover the repository around it.
    inside = (subject.root if subject.root.is_relative_to(top) else top for top in tops)
    return list(dict.fromkeys(inside))


def _folders_of(search: Effect, cwd: Path) -> list[Path]:
    return list(dict.fromkeys(_folders_in(cwd / path for path in search.assumed_searches)))


def _gathered_by(effect: Effect, cwd: Path) -> Iterator[Path]:
    """Yield the folders among the words of a program that may hand on all that lies in them."""
    command = effect.command
    for word in effect.read_details.read_recursively:
        if not word.is_glob:
            text = word.home_path or word.text or ""
            names = filter(None, (text, text.partition("=")[2]))
            places = command.directories or command.likely
            yield from _folders_in(cwd / place / name for name in names for place in places)
            continue
        try:
            for pattern in command.placed_patterns([word.pattern]):
                yield from _folders_in(islice(matches(pattern, cwd), _MOST_FILES))
        except TooManyNamesError:
            yield cwd


def _folders_in(paths: Iterable[Path]) -> Iterator[Path]:
    return (path for path in map(canonical_path, paths) if path.is_dir())


def _of_all_names(effect: Effect) -> Effect:
    """Return what a program does that may hand on all in a folder, beside the search that it may run."""
    return replace(effect, search=Search())


def _look(rules: Sequence[Rule], subject: Subject) -> Reason | None:
    root, glob = subject.root, subject.declared.searched_names
    count = 0
    for folder, names, search in chain.from_iterable(starmap(_files, _searches(subject))):
        source = search.command.source if search is not None else ""
        count += len(names)
        if count > _MOST_FILES:
            doubt = f"the folder is too large to tell whether {rules[0]} names a file in it"
            first = rules[0]
            return Reason(doubt, "withheld", first.text, first.source, source, assumption=doubt, advice=_ADVICE)
        searched = [name for name in names if _is_searched(name, glob)]
        for rule in rules:
            if isinstance(rule.specifier, PathPattern) and (
                name := rule.specifier.first_restricted_file(folder, searched, root)
            ):
                does, advice = "the search would read", _ADVICE
                if search is not None and not search.search.folders:
                    does, advice = "the command may hand on with its folder", "name the files that it needs"
                text, path = f"{rule} names {folder / name}, which {does}", str(folder / name)
                return Reason(text, "withheld", rule.text, rule.source, source, path, advice=advice)
    return None


def _files(folders: Sequence[Path], search: Effect | None) -> Iterator[tuple[Path, Sequence[str], Effect | None]]:
    """Yield each folder, the names of the files in it that a search may show, links among them, and the search."""
    shown = search.search if search is not None else Search()
    is_meant = names_filter(shown.only_names)
    walk = walk_folders(
        folders, leaves_out_hidden=shown.leaves_out_hidden, enters_git=False, only_tracked=shown.only_tracked
    )
    for folder, _, files in walk:
        yield Path(folder), [file.name for file in files if is_meant(file.name)], search


def _is_searched(name: str, glob: str | None) -> bool:
    if not isinstance(glob, str) or glob.split() != [glob] or _NOT_ONE_NAME & set(glob):
        return True
    try:
        # Wider than the search's own reading of the glob: only the name, at any depth.
        return PathPattern(glob.rsplit("/", 1)[-1] or "*").restricts_file(Path("/", name), Path("/"))
    except ValueError:
        return True


_MOST_LOOKED_AT = 200_000
_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


async def waiting_file(subject: Subject) -> Reason | None:
    """Return why a command line that only looks might not come to an end, or None."""
    if subject.facts is None or not subject.seems_read_only:
        return None
    if reason := _first_special(_named_files(subject, subject.facts)):
        return reason
    searches = [
        effect for effect in subject.effects if effect.search.follows_links and not effect.read_details.opens_nothing
    ]
    if not searches:
        return None

    def first_reason() -> Reason | None:
        return _first_special(chain.from_iterable(_found_files(effect, subject.cwd) for effect in searches))

    return await anyio.to_thread.run_sync(first_reason, abandon_on_cancel=True)


def _named_files(subject: Subject, facts: LineFacts) -> Iterator[Path]:
    """Yield what is opened of what the line names; with patterns in it, of all that any pattern in the line matches."""
    opening = [effect for effect in facts.effects if not effect.read_details.opens_nothing or effect.command.redirects]
    opened = {path for effect in opening for path in effect.assumed_reads}
    has_patterns = any(effect.read_details.globs or effect.search.follows_links for effect in opening)
    for use in subject.uses:
        if use.use.path in opened or (use.is_shallow and has_patterns):
            yield use.path


def _found_files(search: Effect, cwd: Path) -> Iterator[Path]:
    """Yield what is neither a folder nor a file nor a link in the folders whose files a search hands on."""
    count = 0
    shown = search.search
    is_meant = names_filter(shown.only_names)
    folders = [cwd / path for path in search.placed_searches]
    for _, _, others in walk_folders(
        folders, leaves_out_hidden=shown.leaves_out_hidden, only_tracked=shown.only_tracked
    ):
        count += len(others)
        if count > _MOST_LOOKED_AT:
            return
        for entry in others:
            if not (_is_file(entry) or entry.is_symlink()) and is_meant(entry.name):
                yield Path(entry.path)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return True


def _first_special(files: Iterator[Path]) -> Reason | None:
    for file in files:
        try:
            kind = _KINDS.get(stat.S_IFMT(os.stat(file).st_mode))  # noqa: PTH116 - Path.stat costs as much again
        except OSError:
            continue
        if kind:
            text = f"{file} is {kind}, and a command that reads it may wait, or go on, without an end"
            return Reason(text, "unknown", path=str(file), assumption=text)
    return None
