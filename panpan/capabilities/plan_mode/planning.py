"""What the tools of plan mode need of the session; it implements this, and the tools know no more of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from panpan.types.permission import PermissionMode


class Planning(Protocol):
    """The plan mode of one session, and the file of its plan."""

    @property
    def is_on(self) -> bool:
        """Whether the session is in plan mode."""
        ...

    @property
    def next_modes(self) -> Sequence[PermissionMode]:
        """The permission modes in which the user may let the work go on."""
        ...

    async def begin(self) -> Path:
        """Switch plan mode on, and return the file of the plan, which is made where there is none.

        Raises:
            ToolError: The file could not be made; plan mode is on.
        """
        ...

    async def read(self) -> str:
        """Return what stands in the file of the plan.

        Raises:
            ToolError: It cannot be read.
        """
        ...

    async def write(self, text: str, *, is_users: bool = False) -> Path:
        """Put the plan into its file, and return that.

        Args:
            text: The plan.
            is_users: Whether the user has written it, so that the model does not know it yet.

        Raises:
            ToolError: It could not be written; or it is the model's, and the file holds what the model has not read.
        """
        ...

    def approve(self, mode: PermissionMode) -> None:
        """End plan mode, as the user said.

        Args:
            mode: One of `next_modes`.

        Raises:
            ToolError: It is another one, or plan mode is off; nothing has changed.
        """
        ...

    def deliver(self) -> None:
        """Let the turn end after this round, with the plan as its result; plan mode stays on."""
        ...
