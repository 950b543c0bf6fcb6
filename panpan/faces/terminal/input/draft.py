"""What the user is typing, with the pastes that are folded in it; nothing of it is lost by being cleared."""

from panpan.faces.terminal.input.command_completion import CommandCompletion
from panpan.faces.terminal.input.input_box import InputBox
from panpan.faces.terminal.input.multiline import with_line_break
from panpan.faces.terminal.input.paste import Pastes, image_mention

MAX_STASHED = 20
"""So many texts can be brought back."""


class Draft:
    """A text that is not sent yet.

    Args:
        box: Where it is typed.
        pastes: What the words stand for that long pastes are folded to.
    """

    def __init__(self, box: InputBox, pastes: Pastes) -> None:
        self._box = box
        self._pastes = pastes
        self._stashed: list[str] = []
        """What was put aside, the newest last."""

    @property
    def text(self) -> str:
        """As it stands in the input."""
        return self._box.text

    @property
    def unfolded(self) -> str:
        """With every paste whole, and without line breaks behind it."""
        return self._pastes.unfold(self._box.text.rstrip("\n"))

    def take(self) -> str:
        """Return what is to be sent, keep it in the history, and empty the input; empty where there is nothing."""
        if not self.text.strip():
            return ""
        text = self.unfolded
        self._box.keep_in_history(text)
        return text

    def put(self, text: str) -> None:
        """Put text before what is typed."""
        self._box.put(text)

    def give_back(self, text: str) -> None:
        """Put text that was sent before what is typed; what is typed next, maybe that moment, joins neither."""
        self._box.put(text if self.text else f"{text}\n")

    def replace(self, text: str) -> None:
        """Let other text be what is typed."""
        self._box.replace(text)

    def clear(self) -> bool:
        """Put what is typed aside, so that the input is empty; return whether there was anything."""
        text = self._box.text
        if text.strip():
            self._stashed = [*self._stashed[1 - MAX_STASHED :], text]
        self._box.clear()
        return bool(text.strip())

    def bring_back(self) -> bool:
        """Put what was put aside last into the input; return whether there was anything."""
        if not self._stashed:
            return False
        self._box.put(self._stashed.pop())
        return True

    def insert(self, text: str) -> None:
        """Put text where the caret is."""
        self._box.buffer.insert_text(text)

    def paste(self, text: str) -> None:
        """Put pasted text where the caret is, folded if it is long.

        Raises:
            PasteTooLargeError: It is larger than the input takes.
        """
        self.insert(image_mention(text) or self._pastes.fold(text))

    def backspace(self) -> None:
        """Delete what stands before the caret: a character, or all that stands for a paste."""
        buffer = self._box.buffer
        buffer.delete_before_cursor(self._pastes.span_before(buffer.text, buffer.cursor_position))

    def enter(self) -> str:
        """Do what Enter does: break the line, complete, or send; return what is to be sent, empty where nothing is."""
        return "" if self.break_line() or self.complete() else self.take()

    def complete(self) -> bool:
        """Take what the list of completions offers; return whether that is all, as it is but for whole commands."""
        offered = self._box.menu.offered
        if offered is None:
            return False
        self._box.buffer.apply_completion(offered)
        is_whole = self._box.buffer.document.is_cursor_at_the_end
        return not (is_whole and isinstance(offered, CommandCompletion) and offered.can_run)

    def break_line(self) -> bool:
        r"""Let a backslash before the caret become a line break; return whether there was one."""
        buffer = self._box.buffer
        if (begun := with_line_break(buffer.text, buffer.cursor_position)) is None:
            return False
        buffer.text, buffer.cursor_position = begun
        return True

    def cancel_completion(self) -> bool:
        """Close the list of completions; return whether it was open."""
        buffer = self._box.buffer
        if buffer.complete_state is None:
            return False
        buffer.cancel_completion()
        return True
