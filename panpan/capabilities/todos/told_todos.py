"""What the model was told of the todo list: what it wrote itself, or a reminder that somebody else changed the list.

Both stand in the conversation, which is why a resumed session knows, and one that went back.
"""

import json
from collections.abc import Sequence
from hashlib import blake2b

from panpan.types.display import ChecklistDisplay, ChecklistItem
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage

CHANGED = "todo:changed:"
"""What the cause of a reminder begins with that tells a list; its digest and a number follow."""


def digest_of(todos: Sequence[ChecklistItem]) -> str:
    """Return what tells lists apart: not the ids, which nobody is told."""
    said = [(todo.content, todo.active_form, todo.status) for todo in todos]
    return blake2b(json.dumps(said).encode(), digest_size=8).hexdigest()


class ToldTodos:
    """Follows one conversation; looks only at what is new in it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Let all of the conversation be looked at again."""
        self.written: Sequence[ChecklistItem] = ()
        """The list as the model wrote it last."""
        self.todos: Sequence[ChecklistItem] = ()
        """The same, or nothing where it was told since that the list was cleared."""
        self.written_in = ""
        """`uuid` of the result that says so; empty where it never wrote one."""
        self.digest = digest_of(())
        """Of the list that the model knows."""
        self.reminders = 0
        """How often it was told that somebody else changed the list."""
        self.replies_since = 0
        """Rounds since it wrote the list, or since the beginning."""
        self._seen = 0

    def follow(self, messages: Sequence[Message]) -> None:
        """Look at what was said since the last time."""
        for message in messages[self._seen :]:
            match message:
                case ToolResultMessage(display=ChecklistDisplay(todos=todos)) if all(todo.id for todo in todos):
                    self.written = self.todos = todos
                    self.written_in, self.digest = message.uuid, digest_of(todos)
                    self.replies_since = 0
                case SystemReminder(cause=cause) if cause.startswith(CHANGED):
                    self.digest = cause.removeprefix(CHANGED).partition(":")[0]
                    self.reminders += 1
                    if self.digest == digest_of(()):
                        self.todos = ()
                case AssistantMessage():
                    self.replies_since += 1
                case _:
                    pass
        self._seen = len(messages)
