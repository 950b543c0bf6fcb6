"""Keys that take away all that is typed, and the one that brings it back."""

from collections.abc import Callable

from panpan.faces.terminal.input.draft import Draft
from panpan.faces.terminal.input.second_press import SecondPress


class DraftKeys:
    """Does what these keys ask for.

    Args:
        draft: What is typed.
        second: Tells Esc Esc from Esc.
        say: Shows a hint below the input for a moment; an empty one takes away what was said.
    """

    def __init__(self, draft: Draft, second: SecondPress, say: Callable[[str], None]) -> None:
        self._draft = draft
        self._second = second
        self._say = say

    def escape(self) -> None:
        """Clear the input the second time."""
        if self._second.is_second("escape"):
            self._draft.clear()
            self._say("")
        else:
            self._say("Esc again clears the input; Ctrl+S then brings it back")

    def clear(self) -> None:
        """Clear the input."""
        self._say("Ctrl+S brings back what was cleared" if self._draft.clear() else "")

    def stash(self) -> None:
        """Put aside what is typed; where nothing is, bring back what was put aside or cleared last."""
        if self._draft.clear():
            self._say("put aside; Ctrl+S in the empty input brings it back")
        else:
            self._say("" if self._draft.bring_back() else "nothing was put aside; Ctrl+S does so with what is typed")
