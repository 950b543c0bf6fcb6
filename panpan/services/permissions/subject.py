"""What a call is, as rules see it: the tool, what it would touch, and the words that matter.

Everything is taken from the validated arguments, and each path is located once.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from anyio import to_thread

from panpan.core.hooks import ToolCall
from panpan.errors import ToolError
from panpan.services.permissions.reach.hidden import hidden_access
from panpan.services.permissions.reach.located import LocatedUse, Locator, PlainFiles
from panpan.services.permissions.reach.named import all_words, named_uses
from panpan.services.permissions.reach.reached import Reached, ReachedPaths, reached_paths, reaches_unnamed
from panpan.services.permissions.reach.recorded import recorded_uses
from panpan.services.permissions.reach.taken_away import taken_away
from panpan.services.permissions.reach.takings import takings
from panpan.services.permissions.rules.rules import PACKAGE_TOOLS
from panpan.tools.shell.analysis.facts import Effect, LineFacts
from panpan.tools.tool import PathUse, ToolClass
from panpan.types.dataclass import dataclass

_MOST_QUICK_CHARS = 1_000
_MOST_QUICK_USES = 200
"""Of a call that is looked at without a worker thread, which costs more than the look."""
_MAY_BE_PLACED = re.compile(r"[~$`=]")
"""Signs of a line in which the shell replaces a part of a word, or assigns a variable."""
_NAMED = ("subagent_type", "agent", "skill", "name")
"""Arguments that hold what rules of agents and skills name."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One call, as far as permissions are concerned."""

    tool: str
    tool_class: ToolClass
    is_read_only: bool
    uses: tuple[LocatedUse, ...]
    """What it would touch, but for `files`."""
    root: Path
    """Canonical root of the project; patterns start from it."""
    cwd: Path
    """Where relative paths start."""
    command: str | None = None
    """The command line, for Bash."""
    runs: str = ""
    """The command line that a tool for packages would run in an environment; rules that deny or ask about commands hold
    for it, and it is never one that a rule for Bash allows."""
    url: str | None = None
    """The one address that the call would look at; rules that allow a host speak of that alone."""
    web_uses: tuple[str, ...] = ()
    """All addresses that the call would ask for, whatever its tool; rules that deny or ask about hosts hold for all."""
    names: tuple[str, ...] = ()
    """What an agent or skill is called, or the operation of a tool for packages."""
    files: tuple[PlainFiles, ...] = ()
    """What it would touch beside `uses`; only rules can say anything about these."""
    facts: LineFacts | None = None
    """What the command line would do, for Bash."""
    named: tuple[LocatedUse, ...] = ()
    """Paths that commands name and of which it is not known what becomes of them, once for each access that is
    possible."""
    taken: tuple[LocatedUse, ...] = ()
    """Protected paths in folders that are taken away, and folders that hold the workspace or the home."""
    is_placed: bool = False
    """True if `facts` has folders in place of words such as `$PWD/src`. Then they serve to refuse, never to allow."""
    hidden: frozenset[Literal["read", "write"]] = frozenset()
    """Accesses of commands to files that their words do not name."""
    unseen: str = ""
    """Why not all was looked at that commands reach; empty where it was."""

    @property
    def all_uses(self) -> Iterator[LocatedUse]:
        """Everything that it would touch, path by path."""
        yield from self.uses
        yield from (files.use(name) for files in self.files for name in files.commands)

    @property
    def is_large(self) -> bool:
        """Whether it takes long to hold rules against all that it touches and names."""
        counts = (len(self.uses), len(self.named), *(len(files.commands) for files in self.files))
        return sum(counts) > _MOST_QUICK_USES or len(self.command or "") > _MOST_QUICK_CHARS

    @property
    def only_looks(self) -> bool:
        """True if it is a command line that, as it is written, is known only to look."""
        return self.seems_to_look and not self.is_placed

    @property
    def seems_to_look(self) -> bool:
        """True if it is a command line that only looks, provided its words become what they are judged as."""
        return self.facts is not None and self.facts.is_read_only

    @property
    def only_makes(self) -> bool:
        """True if it is a command line that, as it is written, is known only to make empty files and folders."""
        return self.facts is not None and self.facts.only_makes and not self.is_placed

    @property
    def effects(self) -> Sequence[Effect]:
        """What each part of the command line would do; empty for what is none."""
        return self.facts.effects if self.facts is not None else ()

    @property
    def protected(self) -> list[LocatedUse]:
        """What only a person may open."""
        named = [use for use in self.named if not use.location.is_only_as_named]
        return [use for use in (*self.uses, *named, *self.taken) if use.needs_a_person]


async def subject_of(call: ToolCall) -> Subject:
    """Return what permissions have to know about `call`; where that may take long, a worker thread finds it out.

    Raises:
        ToolError: A path of the call cannot be used.
    """
    further = await call.tool.further_path_uses(call.args, call.context)
    if further:
        return await to_thread.run_sync(_subject_of, call, None, None, further, abandon_on_cancel=True)
    command = _text(call, "command") if call.tool.name == "Bash" else None
    if command and len(command) > _MOST_QUICK_CHARS:
        return await to_thread.run_sync(_subject_of, call, command, abandon_on_cancel=True)
    facts = _facts_of(command, call.context.paths.cwd) if command is not None else None
    if facts is not None and _may_take_long(facts):
        return await to_thread.run_sync(_subject_of, call, command, facts, abandon_on_cancel=True)
    return _subject_of(call, command, facts)


def _subject_of(
    call: ToolCall, command: str | None, facts: LineFacts | None = None, further: Sequence[PathUse] = ()
) -> Subject:
    paths = call.context.paths
    naming = ("operation",) if call.tool.name in PACKAGE_TOOLS else _NAMED
    facts = _facts_of(command, paths.cwd) if facts is None and command is not None else facts
    reached = reached_paths(facts, paths.cwd) if facts is not None else Reached()
    sources = _sources(facts) if facts is not None else {}
    web_uses = tuple(call.tool.web_uses(call.args, call.context))
    looks_at_web = call.tool.tool_class == "network" and call.tool.is_read_only(call.args)
    locator = Locator(paths)
    runs = _run_by_packages(call)
    run = _facts_of(runs, paths.cwd) if runs else None
    is_placed = facts is not None and command is not None and facts != _facts_of(command)
    placed = _uses_of(facts) if facts is not None and is_placed else _uses_of(run) if run is not None else ()
    named = dict.fromkeys((*call.tool.path_uses(call.args), *further, *placed))
    uses = [locator.located(use, command=sources.get(use.path, "")) for use in named]
    used, used_files = _reached(reached.used, locator, is_shallow=False)
    looked_at, files_looked_at = _reached(reached.looked_at, locator, is_shallow=True)
    recorded = recorded_uses(facts, paths.cwd, locator) if facts is not None else ()
    uses += (*recorded, *used, *looked_at)
    return Subject(
        tool=call.tool.name,
        tool_class=call.tool.tool_class,
        is_read_only=call.tool.is_read_only(call.args),
        uses=tuple(uses),
        root=paths.root,
        cwd=paths.cwd,
        command=command,
        runs=runs,
        url=web_uses[0] if looks_at_web and len(web_uses) == 1 else None,
        web_uses=web_uses,
        names=tuple(name for key in naming if (name := _text(call, key))),
        files=(*used_files, *files_looked_at),
        facts=facts,
        named=tuple(named_uses(judged, uses, paths.cwd, locator)) if (judged := facts or run) is not None else (),
        taken=tuple(taken_away(facts, paths, locator)) if facts is not None else (),
        is_placed=is_placed,
        hidden=hidden_access(facts) if facts is not None else frozenset(),
        unseen=reached.unseen,
    )


def _run_by_packages(call: ToolCall) -> str:
    return shlex.join(getattr(call.args, "command", ())) if call.tool.name in PACKAGE_TOOLS else ""


def _may_take_long(facts: LineFacts) -> bool:
    """Return whether folders may have to be looked through to tell what a line reaches."""
    acting = [effect.command for effect in facts.effects if not effect.is_read_only]
    if any(effect.asks_git_in for effect in facts.effects):  # the git folder is looked through
        return True
    has_pattern = any(word.is_glob for acts in acting for word in all_words(acts))
    return has_pattern or reaches_unnamed(facts) or any(next(takings(acts), None) for acts in acting)


def _facts_of(command: str, start: Path | None = None) -> LineFacts:
    """Return what a line would do, with folders in its words where it is given in which folder it starts."""
    from panpan.tools.shell.analysis.analyse import analyse  # no session needs it before its first command

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
        with suppress(ToolError):  # a link that leads nowhere, which opens for no program either
            located.append(locator.located(use, is_shallow=is_shallow, command=command))
    return located, files


def _text(call: ToolCall, name: str) -> str | None:
    value = getattr(call.args, name, None)
    return value if isinstance(value, str) else None
