"""The todo list of a session: in memory, in its file, and in the conversation, which agree.

The rule: the file says what the list is, whoever wrote it; where there is none, what the model wrote last does. The
model never replaces a list that it does not know.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.errors import ToolError
from panpan.services.todos.todo_file import DamagedTodosError, TodoFile
from panpan.services.todos.todo_ids import with_ids
from panpan.services.todos.told_todos import ToldTodos, digest_of
from panpan.types.messages import Message
from panpan.types.todo import Todo, TodoDraft

CACHE_S = 5.0
"""How long what was read of the file counts before it is read again."""

CHANGED_MEANWHILE = (
    "the list was changed since you last saw it, by the user or another process, and is left as it is; what it is now "
    "comes with a reminder: call TodoWrite again with what it shall be"
)


class Todos(Hook):
    """The list of one session; implements `TodoStore`.

    Args:
        folder: Where lists are kept, a file a session.
        history: Returns all that was said in the session.
        warn: Told what the user should know, one sentence each.
        clock: Returns seconds that only ever grow.
    """

    def __init__(
        self,
        folder: Path,
        history: Callable[[], Sequence[Message]],
        warn: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.todos: Sequence[Todo] = ()
        """The list, as it was read or written last."""
        self._folder = folder
        self._history = history
        self._warn = warn
        self._clock = clock
        self._file: TodoFile | None = None
        self._read_at_s = float("-inf")
        self._has_warned = False
        self._told = ToldTodos()
        self._written = digest_of(())
        """What the model wrote last, so that it is known when that was taken back."""
        self._lock = anyio.Lock()

    def open(self, session_id: str) -> None:
        """Let the list be that of a session, as it was left; one that is copied from another takes the other's over."""
        self._file = TodoFile(self._folder / f"{session_id}.json")
        self.todos = self.told.todos
        self._written = digest_of(self.todos)
        self._take(self._read(self._file))

    @property
    def told(self) -> ToldTodos:
        """What the model knows of it."""
        self._told.follow(self._history())
        return self._told

    async def current(self) -> Sequence[Todo]:
        """Return the list; what another process made of it is seen after `CACHE_S`."""
        file = self._file
        if file is not None and self._clock() - self._read_at_s >= CACHE_S:
            async with self._lock:
                self._take(await to_thread.run_sync(self._read, file))
        return self.todos

    async def replace(self, wanted: Sequence[TodoDraft]) -> Sequence[Todo]:
        todos = await self._write(lambda before: with_ids(wanted, before), self.told.digest)
        self._written = digest_of(todos)
        return todos

    async def clear(self) -> None:
        """Empty the list, as the user wants; the model is told.

        Raises:
            ToolError: It could not be kept; the list is as it was.
        """
        await self._write(lambda _: ())

    async def history_replaced(self, conversation: Conversation) -> None:
        """Let the list be what it was, where the user went back to before the model changed it."""
        self._told.forget()
        todos = self.told.todos
        if (digest := digest_of(todos)) == self._written:
            return
        self._written = digest
        try:
            await self._write(lambda _: todos)
        except ToolError as error:
            self._warn(f"the todo list is not what it was at that point: {error}")

    async def _write(
        self, change: Callable[[Sequence[Todo]], Sequence[Todo]], expected: str | None = None
    ) -> Sequence[Todo]:
        """Change the list, and return it.

        Args:
            change: Returns what it shall be, given what it is.
            expected: Digest of what it must be now; None: whatever it is.

        Raises:
            ToolError: It is something else, or could not be kept.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):  # what is in the file is in memory, too
                if self._file is None:
                    self.todos = change(self.todos)
                else:
                    self.todos = await to_thread.run_sync(self._changed, self._file, change, expected)
                    self._read_at_s = self._clock()
        return self.todos

    def _changed(
        self, file: TodoFile, change: Callable[[Sequence[Todo]], Sequence[Todo]], expected: str | None
    ) -> Sequence[Todo]:
        with file.locked():
            try:
                present = file.read()
            except DamagedTodosError as error:
                self._warn(f"{error}; it is kept as {file.put_aside()}")
                present = None
            if present is not None and expected not in (None, digest_of(present)):
                self._read_at_s = float("-inf")  # so that the reminder does not wait
                raise ToolError(CHANGED_MEANWHILE)
            todos = change(self.todos if present is None else present)
            file.write(todos)
        return todos

    def _take(self, found: Sequence[Todo] | None) -> None:
        self._read_at_s = self._clock()
        if found is not None:
            self.todos = found

    def _read(self, file: TodoFile) -> Sequence[Todo] | None:
        """Return what the file holds; None where it holds nothing that can be read, which the user is told once."""
        try:
            found = file.read()
        except ToolError as error:
            if not self._has_warned:
                self._has_warned = True
                self._warn(f"{error}; the list goes on as it was, and the file is kept")
            return None
        self._has_warned = False
        return found


def todo_text(todos: Sequence[Todo]) -> str:
    """Return the list for the model."""
    return "\n".join(f"- [{todo.status}] {todo.content}" for todo in todos)
