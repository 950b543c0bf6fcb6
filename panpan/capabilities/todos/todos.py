"""The todo list of a session: in memory, in its file, and in the conversation, which agree.

The rule: the file says what the list is, whoever wrote it; where there is none, what the model wrote last does. The
model never replaces a list that it does not know.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.capabilities.todos.todo_file import DamagedTodosError, TodoFile
from panpan.capabilities.todos.todo_ids import with_ids
from panpan.capabilities.todos.told_todos import ToldTodos, digest_of
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.core.our_tags import untagged
from panpan.errors import ToolError
from panpan.types.display import ChecklistItem
from panpan.types.messages import Message, SystemReminder

CACHE_S = 5.0
"""How long what was read of the file counts before it is read again."""

MOST_CHARS = 60_000
"""Of a list that the model is shown; the longest that it can write has room."""

CHANGED_MEANWHILE = (
    "the list was changed since you last saw it, by the user or another process, and is left as it is; what it is now "
    "comes with a reminder: call TodoWrite again with what it shall be"
)


PINNED = "compact:todos"
"""Cause of the reminder that holds the list where the conversation became shorter."""
_MOST_PINNED_CHARS = 10_000


class Todos(Hook):
    """The list of one session; implements `TodoStore`.

    Args:
        file: Where the list is kept, a file a session.
        history: Returns all that was said in the session.
        warn: Told what the user should know, one sentence each.
        clock: Returns seconds that only ever grow.
        copied_from: The file of the session that this one is a copy of, whose list it takes over where it has none of
            its own yet; None: it is no copy.
    """

    def __init__(
        self,
        file: Path,
        history: Callable[[], Sequence[Message]],
        warn: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        *,
        copied_from: Path | None = None,
    ) -> None:
        self._history = history
        self._warn = warn
        self._clock = clock
        self._file = TodoFile(file)
        self._read_at_s = float("-inf")
        self._has_warned = False
        self._told = ToldTodos()
        self._written = digest_of(self.told.written)
        """What the model wrote last, so that it is known when that was taken back."""
        self._lock = anyio.Lock()
        self.todos: Sequence[ChecklistItem] = self.told.todos
        """The list, as it was read or written last."""
        if copied_from is not None:
            self._take(*_read(TodoFile(copied_from)))
        self._take(*_read(self._file))

    @property
    def told(self) -> ToldTodos:
        """What the model knows of it."""
        self._told.follow(self._history())
        return self._told

    async def current(self) -> Sequence[ChecklistItem]:
        """Return the list; what another process made of it is seen after `CACHE_S`."""
        if self._clock() - self._read_at_s >= CACHE_S:
            async with self._lock:
                self._take(*await to_thread.run_sync(_read, self._file))
        return self.todos

    async def replace(self, wanted: Sequence[ChecklistItem]) -> Sequence[ChecklistItem]:
        todos = await self._write(lambda before: with_ids(wanted, before), self.told.digest)
        self._written = digest_of(todos)
        return todos

    async def clear(self) -> None:
        """Empty the list, as the user wants; the model is told.

        Raises:
            ToolError: It could not be kept; the list is as it was.
        """
        await self._write(lambda _: ())

    async def pinned(self) -> Sequence[SystemReminder]:
        """Return the list as it is now; nothing where nothing of it is open."""
        now = await self.current()
        if all(todo.status == "completed" for todo in now):
            return ()
        text = f"The todo list of this session:\n\n{listed(now, _MOST_PINNED_CHARS)}"
        return (SystemReminder(text=text, cause=PINNED),)

    async def history_replaced(self, conversation: Conversation) -> None:
        """Let the list be what it was, where the user went back to before the model changed it."""
        self._told.forget()
        told = self.told
        if (digest := digest_of(told.written)) == self._written:
            return
        self._written = digest
        try:
            await self._write(lambda _: told.todos)
        except ToolError as error:
            self._warn(f"the todo list is not what it was at that point: {error}")

    async def _write(
        self, change: Callable[[Sequence[ChecklistItem]], Sequence[ChecklistItem]], expected: str | None = None
    ) -> Sequence[ChecklistItem]:
        """Change the list, and return it.

        Args:
            change: Returns what it shall be, given what it is.
            expected: Digest of what it must be now; None: whatever it is.

        Raises:
            ToolError: It is something else, or could not be kept.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):  # what is in the file is in memory, too
                notices: list[str] = []
                try:
                    self.todos = await to_thread.run_sync(self._changed, self._file, change, expected, notices)
                    self._read_at_s = self._clock()
                finally:
                    for notice in notices:  # not in the other thread: whoever is told may own a terminal
                        self._warn(notice)
        return self.todos

    def _changed(
        self,
        file: TodoFile,
        change: Callable[[Sequence[ChecklistItem]], Sequence[ChecklistItem]],
        expected: str | None,
        notices: list[str],
    ) -> Sequence[ChecklistItem]:
        with file.locked():
            try:
                present = file.read()
            except DamagedTodosError as error:
                notices.append(f"{error}; it is kept as {file.put_aside()}")
                present = None
            if present is not None and expected not in (None, digest_of(present)):
                self._read_at_s = float("-inf")  # so that the reminder does not wait
                raise ToolError(CHANGED_MEANWHILE)
            todos = change(self.todos if present is None else present)
            file.write(todos)
        return todos

    def _take(self, found: Sequence[ChecklistItem] | None, trouble: str) -> None:
        """Let the list be what was read, if anything was, and tell the user once what is wrong with the file."""
        self._read_at_s = self._clock()
        if found is not None:
            self.todos = found
        if trouble and not self._has_warned:
            self._warn(f"{trouble}; the list goes on as it was, and the file is kept")
        self._has_warned = bool(trouble)


def _read(file: TodoFile) -> tuple[Sequence[ChecklistItem] | None, str]:
    """Return what the file holds, None where that is nothing that can be read, and what is wrong with it."""
    try:
        return file.read(), ""
    except ToolError as error:
        return None, str(error)


def listed(todos: Sequence[ChecklistItem], most_chars: int = MOST_CHARS) -> str:
    """Return the list for the model, a line each; of one that is too long, as many as have room and the number left."""
    lines = [f"- [{todo.status}] {' '.join(todo.content.split())}" for todo in todos]
    ends = list(accumulate(len(line) + 1 for line in lines))
    shown = bisect_right(ends, most_chars)
    more = f"\n- … and {len(lines) - shown} more, which are not shown" if shown < len(lines) else ""
    return untagged("\n".join(lines[:shown])) + more
