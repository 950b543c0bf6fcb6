"""What a tool yields while it runs: any number of `Progress` and `SubagentEvent`, then one `Output`."""

from collections.abc import Collection
from pathlib import Path
from typing import TypeAlias

from panpan.types.content import ResultContent, TextBlock
from panpan.types.dataclass import dataclass
from panpan.types.display import Display
from panpan.types.events import SubagentEvent


@dataclass(frozen=True, slots=True)
class Progress:
    """Text for the screen while the tool runs, such as what a command printed."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """The tool's answer."""

    content: str | tuple[ResultContent, ...]
    """What the model reads."""
    display: Display | None = None
    """What people see in its place."""
    is_error: bool = False
    """Whether the model should take it as a failure although the tool did what it could, as with a failing command."""

    @property
    def blocks(self) -> tuple[ResultContent, ...]:
        """The content as blocks."""
        return (TextBlock(text=self.content),) if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """All its text, without pictures and documents."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True)
class IntendedChange:
    """What a call is about to make of one file."""

    path: Path
    """Canonical."""
    before: str | None
    """SHA-256 of its content, in hex; None: there is no such file."""
    after: str | None
    """The same for what it is going to be."""


ToolYield: TypeAlias = Progress | SubagentEvent | Output
"""What `Tool.run` yields."""


def known_name(name: str, known: Collection[str]) -> str:
    """Return the known name that differs from `name` in case alone; `name` itself where there is none, or several."""
    if name in known:
        return name
    lower = name.casefold()
    found = [one for one in known if one.casefold() == lower]
    return found[0] if len(found) == 1 else name
