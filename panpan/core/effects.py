"""Effects of a call, which its tool declares before it runs. Permissions, plan mode and hooks judge by them alone.

The rule: a call does nothing that its effects leave out. A tool that cannot list all of them sets `is_complete=False`;
then the user is asked about the call, and plan mode denies it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from panpan.types.dataclass import dataclass
from panpan.types.permission import Box, SandboxUse, widest

_WIDEST_FIRST: Sequence[SandboxUse] = ("off", "network", "on")


@dataclass(frozen=True, slots=True)
class PathUse:
    """A path that a call would touch, as the model wrote it."""

    path: str
    access: Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a call would run."""

    line: str
    """Command line for rules such as `Bash(make *)`; empty if no line says what runs."""
    sandbox: SandboxUse = "on"
    hosts: Sequence[str] = ()
    """Hosts that it needs the network for, as in the setting `sandbox.domains`; empty if they are not known."""
    is_read_only: bool = False
    """True if it is known to change nothing."""
    is_elsewhere: bool = False
    """True if it runs in an environment of its own, where the words of `line` may mean something else."""
    narrowest_box: Box = "usual"
    """The narrowest box in which its tool can run it."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A subagent that a call would start. Each call of the subagent needs its own decision."""

    name: str
    is_read_only: bool = False
    """True if it is known to change nothing."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything that a call would do, as far as its tool knows.

    Paths are as the model wrote them, relative to the working directory.
    """

    reads: Sequence[str] = ()
    """Files that it reads, and folders that it lists."""
    searches: Sequence[str] = ()
    """Folders in which it may show the content of any file, at any depth."""
    searched_names: str | None = None
    """Glob of the only files that it shows in `searches`; None for all."""
    writes: Sequence[str] = ()
    """Files and folders that it creates or changes. Those that it reads to do so are in `reads`, too."""
    deletes: Sequence[str] = ()
    """Files and folders that it removes."""
    commands: Sequence[Command] = ()
    urls: Sequence[str] = ()
    """Web addresses that it requests."""
    asks_web: bool = False
    """True if it requests addresses that are not known before, such as those of a search engine."""
    agents: Sequence[Agent] = ()
    names: Sequence[str] = ()
    """Names that rules for the tool may have in brackets, such as an operation or a skill."""
    is_for_once: bool = False
    """True if a yes can only apply to this call, so that no rule is offered."""
    is_complete: bool = True
    """False if it may do more than these effects say."""

    def __post_init__(self) -> None:
        """Refuse a string in place of a list, since its letters would be taken for the items.

        Raises:
            TypeError: A field is no list of the right items.
        """
        for field, kind in _KINDS.items():
            items = getattr(self, field)
            if type(items) not in (tuple, list) or not all(isinstance(item, kind) for item in items):
                raise TypeError(f"Effects.{field} has to be a list or tuple of {kind.__name__}, not {items!r:.80}")

    @property
    def changes_files(self) -> bool:
        """True if it writes or deletes."""
        return bool(self.writes or self.deletes)

    @property
    def uses_web(self) -> bool:
        """True if it requests web addresses, known or not."""
        return bool(self.urls) or self.asks_web

    @property
    def is_read_only(self) -> bool:
        """True if it is known to change nothing that belongs to the user."""
        only_look = all(command.is_read_only for command in self.commands) and all(
            one.is_read_only for one in self.agents
        )
        return self.is_complete and not self.changes_files and only_look

    @property
    def only_changes_files(self) -> bool:
        """True if it writes or deletes, and otherwise only reads."""
        return self.changes_files and self.is_complete and self._is_about_files

    @property
    def only_reads_files(self) -> bool:
        """True if it reads files or folders, and does nothing else."""
        return bool(self.reads or self.searches) and self.is_read_only and self._is_about_files

    @property
    def _is_about_files(self) -> bool:
        return not (self.commands or self.agents or self.names or self.uses_web)

    @property
    def only_starts_agents(self) -> bool:
        """True if only the agents that it starts may change anything."""
        return bool(self.agents) and replace(self, agents=()).is_read_only and not self.uses_web

    @property
    def sandbox(self) -> SandboxUse | None:
        """The widest surroundings of its commands; None if it runs none."""
        wanted = {command.sandbox for command in self.commands}
        return next((use for use in _WIDEST_FIRST if use in wanted), None)

    @property
    def narrowest_box(self) -> Box:
        """The narrowest box in which all its commands can run."""
        return widest(command.narrowest_box for command in self.commands)

    @property
    def path_uses(self) -> Iterator[PathUse]:
        """Each path with the strongest access to it: a path that is both read and written comes once, as written."""
        changed = (*self.writes, *self.deletes)
        reads = [path for path in (*self.reads, *self.searches) if path not in changed]
        yield from dict.fromkeys(PathUse(path, "read") for path in reads)
        yield from dict.fromkeys(PathUse(path, "write") for path in changed)


_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("reads", "searches", "writes", "deletes", "urls", "names"), str),
    "commands": Command,
    "agents": Agent,
}
"""Type of the items in each list of effects."""

UNKNOWN = Effects(is_complete=False)
"""Effects of a call about which nothing is known."""
