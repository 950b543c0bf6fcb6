"""What a call is, as rules see it: the tool, what it would touch, and the words that matter.

Everything is taken from the validated arguments, and each path is located once.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from panpan.core.hooks import ToolCall
from panpan.system.paths import Location, PathResolver
from panpan.tools.tool import PathUse, ToolClass


@dataclass(frozen=True, slots=True)
class LocatedUse:
    """A path that the call would touch, and where it really is."""

    use: PathUse
    location: Location
    spellings: tuple[Path, ...]
    """The canonical path, and the absolute path as written where that differs."""

    @property
    def path(self) -> Path:
        """The canonical path."""
        return self.location.path

    @property
    def is_write(self) -> bool:
        """Whether the call would change it."""
        return self.use.access == "write"

    @property
    def is_open(self) -> bool:
        """Whether the path may be touched without a question about where it lies."""
        return self.location.is_inside if self.is_write else self.location.is_readable


@dataclass(frozen=True, slots=True)
class Subject:
    """One call, as far as permissions are concerned."""

    tool: str
    tool_class: ToolClass
    is_read_only: bool
    uses: tuple[LocatedUse, ...]
    root: Path
    """Canonical root of the project; patterns start from it."""
    cwd: Path
    """Where relative paths start."""
    command: str | None
    """The command line, for Bash."""
    url: str | None
    """The address, for WebFetch."""
    names: tuple[str, ...]
    """What an agent or skill is called."""


def subject_of(call: ToolCall) -> Subject:
    """Return what permissions have to know about `call`.

    Raises:
        ToolError: A path of the call cannot be used.
    """
    paths = call.context.paths
    return Subject(
        tool=call.tool.name,
        tool_class=call.tool.tool_class,
        is_read_only=call.tool.is_read_only(call.args),
        uses=tuple(_located(use, paths) for use in call.tool.path_uses(call.args)),
        root=paths.root,
        cwd=paths.cwd,
        command=_text(call, "command") if call.tool.name == "Bash" else None,
        url=_text(call, "url") if call.tool.name == "WebFetch" else None,
        names=tuple(name for key in ("subagent_type", "agent", "skill", "name") if (name := _text(call, key))),
    )


def _located(use: PathUse, paths: PathResolver) -> LocatedUse:
    location = paths.locate(use.path)
    written = Path(os.path.normpath(paths.absolute(use.path)))
    spellings = (location.path,) if written == location.path else (location.path, written)
    return LocatedUse(use, location, spellings)


def _text(call: ToolCall, name: str) -> str | None:
    value = getattr(call.args, name, None)
    return value if isinstance(value, str) else None
