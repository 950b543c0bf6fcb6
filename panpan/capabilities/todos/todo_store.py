"""What TodoWrite needs of the session; it implements this, and the tool knows no more of it."""

from collections.abc import Sequence
from typing import Protocol

from panpan.types.display import ChecklistItem


class TodoStore(Protocol):
    """Keeps the todo list of one session."""

    async def replace(self, wanted: Sequence[ChecklistItem]) -> Sequence[ChecklistItem]:
        """Let the list be what the model wants, and return it; what is in it already keeps its id.

        Raises:
            ToolError: It could not be kept, or somebody else changed the list and the model does not know it yet;
                the list is as it was.
        """
        ...
