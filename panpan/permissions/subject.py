"""A call as rules see it: the tool, what it would touch, and the words that matter.

Everything is taken from the validated arguments, and each path is located once.
"""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from anyio import to_thread

from panpan.core.effects import Effects, PathUse
from panpan.core.hooks import ToolCall
from panpan.errors import ToolError
from panpan.permissions.reach.argument_paths import (
    Reached,
    ReachedPaths,
    all_words,
    argument_paths,
    folders_outside,
    hidden_access,
    may_reach_unnamed_paths,
    resolved_paths,
)
from panpan.permissions.reach.deletions import deletions, protected_deletions
from panpan.permissions.reach.located import LocatedUse, Locator, PlainFiles, git_path_uses
from panpan.shell_analysis.facts import Effect, LineFacts
from panpan.shell_analysis.guesses import changes_git, fetches
from panpan.system.files.paths import Location
from panpan.system.git.git_places import repository_around
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.permission import Box, widest

_MOST_QUICK_CHARS = 1_000
_MOST_QUICK_USES = 200
_MOST_QUICK_PATHS = 50
"""Largest call that is judged without a worker thread, which costs more than the look."""
_MAY_BE_PLACED = compile_late(r"[~$`=]")
"""Signs of a line in which the shell replaces a part of a word, or assigns a variable."""


@dataclass(frozen=True, slots=True)
class CommandPaths:
    """Paths of command lines that the calls' own effects do not tell."""

    matched: tuple[PlainFiles, ...] = ()
    """Files that patterns match; only rules can say anything about these."""
    possible: tuple[LocatedUse, ...] = ()
    """Paths of which it is not known what becomes of them, once for each access that is possible."""
    deletions: tuple[LocatedUse, ...] = ()
    """Protected paths in folders that are deleted, and folders that hold the workspace or the home."""
    hidden: frozenset[Literal["read", "write"]] = frozenset()
    """Accesses to files that the words do not name."""
    unseen: str = ""
    """Reason why not all was looked at that commands reach; empty if all was."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One call, as far as permissions are concerned."""

    tool: str
    declared: Effects
    """Effects of the call, as its tool tells them."""
    uses: tuple[LocatedUse, ...]
    """Places that it would touch, but for `commands.matched`."""
    root: Path
    """Canonical root of the project; patterns start from it."""
    cwd: Path
    """Directory in which relative paths start."""
    facts: LineFacts | None = None
    """Effects of its command line; None if there is none."""
    is_placed: bool = False
    """True if `facts` has folders in place of words such as `$PWD/src`. Then they serve to refuse, never to allow."""
    commands: CommandPaths = CommandPaths()
    narrowest_box: Box = "usual"
    """The narrowest box in which its commands can run here; the usual one where they are to leave the sandbox."""
    changes_kept_git: bool = False
    """True if its line writes in a `.git` that the sandbox keeps as it is."""

    @property
    def only_runs_commands(self) -> bool:
        """True if it does nothing but to run command lines, which read and write files."""
        rest = self._rest
        return self.command is not None and (rest.is_read_only or rest.only_changes_files) and not rest.uses_web

    @property
    def may_run_unasked(self) -> bool:
        """True if it can run where the sandbox holds it, and is not known to need more."""
        if self.narrowest_box == "usual":
            return False
        if self.facts is None or not self.only_runs_commands:
            return self.only_runs_elsewhere
        return not (self.changes_kept_git or fetches(self.facts))

    @property
    def only_runs_elsewhere(self) -> bool:
        """True if all that it may do beyond its own effects is done by commands in an environment of its own."""
        declared = self.declared
        return (
            bool(declared.commands)
            and all(one.is_elsewhere for one in declared.commands)
            and not (declared.agents or declared.asks_web)
        )

    @property
    def may_run_sealed(self) -> bool:
        """True if it can run where nothing can be written, and is not known to need more."""
        if self.narrowest_box != "looking" or not self.may_run_unasked or self.facts is None:
            return False
        return not (changes_git(self.facts) or any(use.is_write for use in self.uses))

    @property
    def is_read_only(self) -> bool:
        """True if it is known to change nothing, with no more than what the sandbox gives to commands that look."""
        return self.declared.is_read_only or (self.only_reads and self.declared.sandbox == "on")

    @property
    def command(self) -> str | None:
        """The command line; None if it runs none."""
        return command_line(self.declared)

    @property
    def runs(self) -> str:
        """The command line that would run in an environment of its own; empty if none does.

        Rules that deny or ask about commands hold for it, and it is never one that a rule for Bash allows.
        """
        return "\n".join(command.line for command in self.declared.commands if command.is_elsewhere)

    @property
    def url(self) -> str | None:
        """The one address that is all that the call would look at; rules that allow a host speak of that alone."""
        declared = self.declared
        others = (
            declared.reads
            or declared.searches
            or declared.commands
            or declared.agents
            or declared.names
            or declared.asks_web
        )
        return declared.urls[0] if len(declared.urls) == 1 and self.is_read_only and not others else None

    @property
    def names(self) -> Sequence[str]:
        """Names that rules may have in brackets, those of agents among them."""
        return (*self.declared.names, *(agent.name for agent in self.declared.agents))

    @property
    def all_uses(self) -> Iterator[LocatedUse]:
        """Everything that it would touch, path by path."""
        yield from self.uses
        yield from (files.use(name) for files in self.commands.matched for name in files.commands)

    @property
    def is_large(self) -> bool:
        """True if it takes long to hold rules against all that it touches and names."""
        commands = self.commands
        counts = (len(self.uses), len(commands.possible), *(len(files.commands) for files in commands.matched))
        return sum(counts) > _MOST_QUICK_USES or len(self.command or "") > _MOST_QUICK_CHARS

    @property
    def only_reads(self) -> bool:
        """True if its command line, as it is written, is known only to look, and it does nothing else but read."""
        return self.seems_read_only and not self.is_placed and self._rest.is_read_only

    @property
    def seems_read_only(self) -> bool:
        """True if it is a command line that only looks, provided its words become what they are judged as."""
        return self.facts is not None and self.facts.is_read_only

    @property
    def only_creates(self) -> bool:
        """True if its command line, as it is written, is known only to make files and folders, as is all else."""
        makes = self.facts is not None and self.facts.only_creates and not self.is_placed
        return makes and (self._rest.is_read_only or self._rest.only_changes_files) and not self._rest.uses_web

    @property
    def _rest(self) -> Effects:
        """Effects beside those of its command lines."""
        elsewhere = [command for command in self.declared.commands if command.is_elsewhere]
        return replace(self.declared, commands=elsewhere)

    @property
    def effects(self) -> Sequence[Effect]:
        """Effects of the parts of the command line; empty for a call without one."""
        return self.facts.effects if self.facts is not None else ()

    @property
    def protected(self) -> list[LocatedUse]:
        """Places that only a person may open.

        A program in the sandbox cannot change the folder of a skill or plug-in that it is called from, nor one that the
        user keeps as it is.
        """

        def is_safe(place: Location) -> bool:
            return place.is_only_as_named or (is_held and (place.is_shown or place.is_kept) and not place.is_secret)

        is_held = self.narrowest_box != "usual" and not self.changes_kept_git  # which may leave the sandbox
        possible = [use for use in self.commands.possible if not is_safe(use.location)]
        return [use for use in (*self.uses, *possible, *self.commands.deletions) if use.needs_a_person]


async def subject_of(call: ToolCall) -> Subject:
    """Return what permissions have to know about `call`; where that may take long, a worker thread finds it out.

    Raises:
        ToolError: A path of the call cannot be used.
    """
    return replace(await _subject(call), narrowest_box=await _narrowest_box(call))


def changes_kept_git(call: ToolCall, facts: LineFacts) -> bool:
    """Return whether a line of a call writes in a `.git` that the sandbox keeps as it is."""
    repositories = call.context.sandbox.repositories

    def is_own(folder: str) -> bool:
        try:
            place = call.context.paths.decided_location(folder).path
        except ToolError:
            return False
        return repository_around(place) in repositories

    return changes_git(facts, is_own if repositories else lambda _: False)


async def _narrowest_box(call: ToolCall) -> Box:
    declared, sandbox = call.effects, call.context.sandbox
    if declared.is_read_only or declared.sandbox != "on" or declared.narrowest_box == "usual" or not sandbox.is_on:
        return "usual"
    working = (await sandbox.choice()).sandbox
    if working is None:
        return "usual"
    return declared.narrowest_box if working.can_seal else widest((declared.narrowest_box, "unasked"))


async def _subject(call: ToolCall) -> Subject:
    command = command_line(call.effects)
    if len(command or "") > _MOST_QUICK_CHARS or _paths_in(call.effects) > _MOST_QUICK_PATHS:
        return await to_thread.run_sync(_subject_of, call, None, abandon_on_cancel=True)
    facts = facts_of(command, call.context.paths.cwd) if command is not None else None
    if facts is not None and _may_take_long(facts):
        return await to_thread.run_sync(_subject_of, call, facts, abandon_on_cancel=True)
    return _subject_of(call, facts)


def _subject_of(call: ToolCall, facts: LineFacts | None) -> Subject:
    paths, declared = call.context.paths, call.effects
    _require_whole_lines([command.line for command in declared.commands if not command.is_elsewhere])
    _require_whole_lines([command.line for command in declared.commands if command.is_elsewhere])
    command = command_line(declared)
    facts = facts_of(command, paths.cwd) if facts is None and command is not None else facts
    reached = resolved_paths(facts, paths.cwd) if facts is not None else Reached()
    sources = _sources(facts) if facts is not None else {}
    locator = Locator(paths)
    plain = facts_of(command) if command is not None else None
    is_placed = facts != plain
    judged = [found for found in (facts, _facts_elsewhere(declared, paths.cwd)) if found is not None]
    also = [use for found in (plain, *judged) if found is not None for use in _uses_of(found)]
    named = dict.fromkeys((*declared.path_uses, *also))
    uses = [locator.locate_use(use, command=sources.get(use.path, "")) for use in named]
    used, used_files = _reached(reached.used, locator, is_shallow=False)
    looked_at, files_looked_at = _reached(reached.looked_at, locator, is_shallow=True)
    recorded = git_path_uses(facts, paths.cwd, locator) if facts is not None else ()
    outside = [use for found in judged for use in folders_outside(found, locator)]
    uses += (*recorded, *used, *looked_at, *outside)
    return Subject(
        changes_kept_git=facts is not None and changes_kept_git(call, facts),
        tool=call.tool.name,
        declared=declared,
        uses=tuple(uses),
        root=paths.root,
        cwd=paths.cwd,
        facts=facts,
        is_placed=is_placed,
        commands=CommandPaths(
            matched=(*used_files, *files_looked_at),
            possible=tuple(use for found in judged for use in argument_paths(found, uses, paths.cwd, locator)),
            deletions=tuple(protected_deletions(facts, paths, locator)) if facts is not None else (),
            hidden=hidden_access(facts) if facts is not None else frozenset(),
            unseen=reached.unseen,
        ),
    )


def command_line(declared: Effects) -> str | None:
    """Return the command lines of a call as one, as a shell would run them one after the other."""
    lines = [command.line for command in declared.commands if not command.is_elsewhere]
    return "\n".join(lines) if lines else None


def _require_whole_lines(lines: Sequence[str]) -> None:
    """Raise unless each command means the same before the next as alone, since they are judged as one line.

    Raises:
        ToolError: One goes on in the next, as one that ends within a quoted text does.
    """
    if len(lines) < 2:
        return
    apart = [effect.command.source for line in lines for effect in facts_of(line).effects]
    if apart != [effect.command.source for effect in facts_of("\n".join(lines)).effects]:
        raise ToolError("a command continues in the next one; put each into a call of its own")


def _facts_elsewhere(declared: Effects, cwd: Path) -> LineFacts | None:
    lines = [command.line for command in declared.commands if command.is_elsewhere and command.line]
    return facts_of("\n".join(lines), cwd) if lines else None


def _paths_in(declared: Effects) -> int:
    return sum(map(len, (declared.reads, declared.searches, declared.writes, declared.deletes)))


def _may_take_long(facts: LineFacts) -> bool:
    """Return whether folders may have to be looked through to tell what a line reaches."""
    acting = [effect.command for effect in facts.effects if not effect.is_read_only]
    if any(effect.read_details.asks_git_in for effect in facts.effects):  # it searches the git folder
        return True
    has_pattern = any(word.is_glob for acts in acting for word in all_words(acts))
    return has_pattern or may_reach_unnamed_paths(facts) or any(next(deletions(acts), None) for acts in acting)


def facts_of(command: str, start: Path | None = None) -> LineFacts:
    """Return what a line would do, with folders in its words where it is given in which folder it starts."""
    from panpan.shell_analysis.judge import analyse  # not needed before the first command

    return analyse(command, str(start) if start is not None and _MAY_BE_PLACED.search(command) else None)


def _uses_of(facts: LineFacts) -> Sequence[PathUse]:
    return [*(PathUse(path, "read") for path in facts.reads), *(PathUse(path, "write") for path in facts.writes)]


def _sources(facts: LineFacts) -> dict[str, str]:
    """Return for each path of a line the first simple command that is known to touch it."""
    return {
        path: effect.command.source
        for effect in reversed(facts.effects)
        for path in (*effect.assumed_reads, *effect.assumed_writes)
    }


def _reached(found: ReachedPaths, locator: Locator, *, is_shallow: bool) -> tuple[list[LocatedUse], list[PlainFiles]]:
    """Return what is reached: each path where it really is, and the plain files of each folder together."""
    uses = dict(found.uses)
    files: list[PlainFiles] = []
    for folder, commands in found.files.items():
        plain = locator.plain_files(folder, commands)
        rest = [name for name in commands if name not in plain.commands]
        uses |= {PathUse(posixpath.join(folder.path, name), folder.access): commands[name] for name in rest}
        files += [plain] if plain.commands else []
    located: list[LocatedUse] = []
    for use, command in uses.items():
        with suppress(ToolError):  # a dangling link, which no program can open either
            located.append(locator.locate_use(use, is_shallow=is_shallow, command=command))
    return located, files
