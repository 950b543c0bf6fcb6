"""Effects of a call, told by its tool before it runs. Permissions, plan mode and hooks go by them and by no name.

The rule: what is left out is not done. A tool that cannot say all of it says so with `is_complete=False`; then the user
is asked about the call, and plan mode denies it.
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
    """As a shell reads it, for rules such as `Bash(make *)`; empty where no line says what runs."""
    sandbox: SandboxUse = "on"
    hosts: Sequence[str] = ()
    """Hosts that it needs the network for, as the setting `sandbox.domains` names them; empty: not known."""
    only_looks: bool = False
    """True if it is known to change nothing."""
    is_elsewhere: bool = False
    """True if it runs in an environment of its own, where the words of `line` may mean something else."""
    narrowest_box: Box = "usual"
    """The narrowest box in which its tool can run it."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A subagent that a call would start. Each of its calls is decided about by itself."""

    name: str
    only_looks: bool = False
    """True if it is known to change nothing."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything that a call would do, as far as its tool knows.

    Paths are as the model wrote them, and count from the working directory.
    """

    reads: Sequence[str] = ()
    """Files whose content it takes, and folders whose names it takes."""
    searches: Sequence[str] = ()
    """Folders in which it may show what is in any file, at any depth."""
    searched_names: str | None = None
    """A glob of the only files that it shows of `searches`; None: all."""
    writes: Sequence[str] = ()
    """Files and folders that it makes or changes. What it reads of them to do so is in `reads`, too."""
    deletes: Sequence[str] = ()
    """Files and folders that it removes."""
    commands: Sequence[Command] = ()
    urls: Sequence[str] = ()
    """Web addresses that it asks for."""
    asks_web: bool = False
    """True if it asks for addresses that are not known before, such as those of a search engine."""
    agents: Sequence[Agent] = ()
    names: Sequence[str] = ()
    """Names that rules for the tool may have in brackets, such as an operation or a skill."""
    is_for_once: bool = False
    """True if a yes can only be for this very call, so that no rule is offered to save."""
    is_complete: bool = True
    """False if it may do more than all of this."""

    def __post_init__(self) -> None:
        """Refuse a text in place of a list, whose letters would be judged instead of it.

        Raises:
            TypeError: A field is no list of what it has to hold.
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
        """True if it asks for web addresses, known or not."""
        return bool(self.urls) or self.asks_web

    @property
    def is_read_only(self) -> bool:
        """True if it is known to change nothing of the user's."""
        only_look = all(command.only_looks for command in self.commands) and all(one.only_looks for one in self.agents)
        return self.is_complete and not self.changes_files and only_look

    @property
    def only_changes_files(self) -> bool:
        """True if it writes or deletes, and does nothing else but read."""
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
        """True if whatever it changes is changed by agents that it starts."""
        return bool(self.agents) and replace(self, agents=()).is_read_only and not self.uses_web

    @property
    def sandbox(self) -> SandboxUse | None:
        """The most that one of its commands gets; None: it runs none."""
        wanted = {command.sandbox for command in self.commands}
        return next((use for use in _WIDEST_FIRST if use in wanted), None)

    @property
    def narrowest_box(self) -> Box:
        """The narrowest box in which all its commands can run."""
        return widest(command.narrowest_box for command in self.commands)

    @property
    def path_uses(self) -> Iterator[PathUse]:
        """Each path with what is done to it at most: what is changed is named once, although it is read, too."""
        changed = (*self.writes, *self.deletes)
        reads = [path for path in (*self.reads, *self.searches) if path not in changed]
        yield from dict.fromkeys(PathUse(path, "read") for path in reads)
        yield from dict.fromkeys(PathUse(path, "write") for path in changed)


_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("reads", "searches", "writes", "deletes", "urls", "names"), str),
    "commands": Command,
    "agents": Agent,
}
"""What each list of effects holds."""

UNKNOWN = Effects(is_complete=False)
"""Effects of a call about which nothing is known."""
