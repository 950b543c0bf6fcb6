"""The todo list of a session: in memory, in its file, and in the conversation, which agree.

The rule: the file says what the list is, whoever wrote it; where there is none, what the model wrote last does. The
model never replaces a list that it does not know.
"""

import json
import stat
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from itertools import accumulate, count
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread
from pydantic import ValidationError

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.errors import ConfigError, HookRefusedError, ToolError
from panpan.session.user_hooks import HooksOfUser
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_regular_file
from panpan.types.content import ChecklistDisplay, ChecklistItem, Frozen
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, strip_tags


class KnownTodos:
    """The list as the model knows it from one conversation."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.written: Sequence[ChecklistItem] = ()
        """The list as the model wrote it last."""
        self.todos: Sequence[ChecklistItem] = ()
        """The same, or empty if the model was told since that it was cleared."""
        self.written_in = ""
        """Message id of that result; empty: it never wrote one."""
        self.digest = digest_of(())
        """Digest of the list that the model knows."""
        self.reminders = 0
        """Number of reminders of changes by others."""
        self.replies_since = 0
        """Rounds since it wrote the list, or since the beginning."""
        self._seen = 0

    def follow(self, messages: Sequence[Message]) -> None:
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


class HookedTodos:
    """Lets hooks of the user look at what the model wants in its list, before it is kept."""

    def __init__(self, todos: "Todos", hooks: Callable[[], HooksOfUser | None]) -> None:
        self._todos = todos
        self._hooks = hooks

    async def replace(self, wanted: Sequence[ChecklistItem]) -> Sequence[ChecklistItem]:
        """Let the list be what the model wants, and return it.

        Raises:
            ToolError: A hook says no, or the list cannot be kept; it is as it was.
        """
        if (hooks := self._hooks()) is not None:
            known = {todo.content: todo for todo in await self._todos.current()}
            for todo in wanted:
                before = known.get(todo.content)
                told = {"task_id": before.id if before is not None else "", "task_subject": todo.content}
                try:
                    if before is None:
                        await hooks.tell("TaskCreated", "", told)
                    if todo.status == "completed" and (before is None or before.status != "completed"):
                        await hooks.tell("TaskCompleted", "", told)
                except HookRefusedError as error:
                    raise ToolError(f"{todo.content}: {error}; the list is as it was") from error
        return await self._todos.replace(wanted)


MAX_BYTES = 1_000_000
LOCK_WAIT_S = 2.0
_MOST_ASIDE = 1_000


class DamagedTodosError(ToolError):
    """The file of a todo list holds something else."""


class TodoFile:
    """The file of one session's list."""

    def __init__(self, path: Path, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self.path = path
        self._lock_wait_s = lock_wait_s

    def read(self) -> tuple[ChecklistItem, ...] | None:
        """Return the list; None where there is no file."""
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolError(f"the todo list {self.path} cannot be read: {error.strerror}") from error
        if stat.S_ISLNK(status.st_mode):
            raise DamagedTodosError(f"the todo list {self.path} is a link, which panpan never makes")
        if status.st_size > MAX_BYTES:
            raise DamagedTodosError(f"the todo list in {self.path} is larger than any that panpan writes")
        data = read_regular_file(self.path, max_bytes=MAX_BYTES, follow_symlinks=True)
        try:
            todos = _Kept.model_validate_json(data).todos
        except ValidationError as error:
            raise DamagedTodosError(f"the todo list in {self.path} cannot be read") from error
        if not all(todo.id for todo in todos):
            raise DamagedTodosError(f"the todo list in {self.path} cannot be read")
        return todos

    def write(self, todos: Sequence[ChecklistItem]) -> None:
        """Write the list; call it under `locked`."""
        data = _Kept(todos=tuple(todos)).model_dump_json(indent=1)
        write_atomic(self.path, f"{data}\n".encode("utf-8", "backslashreplace"), mode=0o600, follow_symlinks=True)

    def put_aside(self) -> Path:
        """Rename a damaged file, so that nothing overwrites it; return its new path."""
        try:
            for number in range(1, _MOST_ASIDE):
                aside = self.path.with_name(f"{self.path.stem}.damaged-{number}.json")
                try:
                    aside.hardlink_to(self.path)
                except FileExistsError:
                    continue
                self.path.unlink()
                return aside
        except OSError as error:
            raise ToolError(f"the damaged todo list {self.path} cannot be kept aside: {error.strerror}") from error
        raise ToolError(f"{self.path.parent} is full of damaged todo lists; move them away")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the list during the block."""
        with ExitStack() as held:
            try:
                make_private_folder(self.path.parent)
                held.enter_context(hold_lock(self.path.with_suffix(".lock"), wait_s=self._lock_wait_s))
            except LockUnsupportedError:  # the rename is still atomic, and the last writer wins
                pass
            except (ConfigError, LockHeldError) as error:
                raise ToolError(f"the todo list cannot be changed now: {error}") from error
            yield


CACHE_S = 5.0
"""Age at which the file is read again."""

MOST_CHARS = 60_000
"""Most characters of a list shown to the model; the longest list that it can write fits."""

CHANGED_MEANWHILE = (
    "the list was changed since you last saw it, by the user or another process, and is left as it is; what it is now "
    "comes with a reminder: call TodoWrite again with the whole new list"
)

PINNED = "compact:todos"
"""Cause of the reminder that holds the list after a compaction."""
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
        self._told = KnownTodos()
        self._written = digest_of(self.told.written)
        """Digest of what the model wrote last, so that a rewind is noticed."""
        self._lock = anyio.Lock()
        self.todos: Sequence[ChecklistItem] = self.told.todos
        """The list as it was last read or written."""
        if copied_from is not None:
            self._take(*_read(TodoFile(copied_from)))
        self._take(*_read(self._file))

    @property
    def told(self) -> KnownTodos:
        """The list as the model knows it."""
        self._told.follow(self._history())
        return self._told

    async def current(self) -> Sequence[ChecklistItem]:
        """Return the list; changes of other processes are seen after `CACHE_S`."""
        if self._clock() - self._read_at_s >= CACHE_S:
            async with self._lock:
                self._take(*await to_thread.run_sync(_read, self._file))
        return self.todos

    async def replace(self, wanted: Sequence[ChecklistItem]) -> Sequence[ChecklistItem]:
        todos = await self._write(lambda before: with_ids(wanted, before), self.told.digest)
        self._written = digest_of(todos)
        return todos

    async def clear(self) -> None:
        """Empty the list for the user; the model is told."""
        await self._write(lambda _: ())

    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        """Return the list as it is now, if something of it is open."""
        now = await self.current()
        if all(todo.status == "completed" for todo in now):
            return ()
        text = f"The todo list of this session:\n\n{format_todos(now, _MOST_PINNED_CHARS)}"
        return (SystemReminder(text=text, cause=PINNED),)

    async def history_replaced(self, conversation: Conversation) -> None:
        """Restore the list of the point that the user went back to."""
        self._told.forget()
        told = self.told
        if (digest := digest_of(told.written)) == self._written:
            return
        self._written = digest
        try:
            await self._write(lambda _: told.todos)
        except ToolError as error:
            self._warn(f"the todo list could not be restored: {error}")

    async def _write(
        self, change: Callable[[Sequence[ChecklistItem]], Sequence[ChecklistItem]], expected: str | None = None
    ) -> Sequence[ChecklistItem]:
        """Change the list, and return it. `expected` is the digest that it must have now."""
        async with self._lock:
            with anyio.CancelScope(shield=True):  # file and memory change together
                notices: list[str] = []
                try:
                    self.todos = await to_thread.run_sync(self._changed, self._file, change, expected, notices)
                    self._read_at_s = self._clock()
                finally:
                    for notice in notices:  # not in the worker thread: the receiver may own a terminal
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
                self._read_at_s = float("-inf")  # so that the reminder reads the file at once
                raise ToolError(CHANGED_MEANWHILE)
            todos = change(self.todos if present is None else present)
            file.write(todos)
        return todos

    def _take(self, found: Sequence[ChecklistItem] | None, trouble: str) -> None:
        """Use what was read, if anything, and tell the user once of trouble with the file."""
        self._read_at_s = self._clock()
        if found is not None:
            self.todos = found
        if trouble and not self._has_warned:
            self._warn(f"{trouble}; the list goes on as it was, and the file is kept")
        self._has_warned = bool(trouble)


class _Kept(Frozen):
    version: Literal[1] = 1
    todos: tuple[ChecklistItem, ...]


def with_ids(wanted: Sequence[ChecklistItem], before: Sequence[ChecklistItem]) -> tuple[ChecklistItem, ...]:
    """Give each todo a unique id: of an old one with the same content, else of the same active form, or a new one."""
    ids: dict[int, str] = {}
    _match(wanted, before, ids, lambda todo: todo.content)
    _match(wanted, before, ids, lambda todo: todo.active_form)
    known = {todo.id for todo in before}
    free = (str(number) for number in count(1) if str(number) not in known)
    return tuple(
        draft.model_copy(update={"id": ids[place] if place in ids else next(free)})
        for place, draft in enumerate(wanted)
    )


def _match(
    wanted: Sequence[ChecklistItem],
    before: Sequence[ChecklistItem],
    ids: dict[int, str],
    words: Callable[[ChecklistItem], str],
) -> None:
    by_words: dict[str, list[str]] = {}
    for todo in reversed(before):
        by_words.setdefault(words(todo), []).append(todo.id)
    given = set(ids.values())
    for place, draft in enumerate(wanted):
        same = by_words.get(words(draft), [])
        while place not in ids and same:
            if (found := same.pop()) not in given:
                ids[place] = found
                given.add(found)


CHANGED = "todo:changed:"
"""Begins the cause of a reminder that tells a list; its digest and a number follow."""


def digest_of(todos: Sequence[ChecklistItem]) -> str:
    """Return a digest of a list without its ids."""
    said = [(todo.content, todo.active_form, todo.status) for todo in todos]
    return blake2b(json.dumps(said).encode(), digest_size=8).hexdigest()


def _read(file: TodoFile) -> tuple[Sequence[ChecklistItem] | None, str]:
    try:
        return file.read(), ""
    except ToolError as error:
        return None, str(error)


def format_todos(todos: Sequence[ChecklistItem], most_chars: int = MOST_CHARS) -> str:
    """Return the list for the model, a line each, as far as there is room."""
    lines = [f"- [{todo.status}] {' '.join(todo.content.split())}" for todo in todos]
    ends = list(accumulate(len(line) + 1 for line in lines))
    shown = bisect_right(ends, most_chars)
    more = f"\n- … and {len(lines) - shown} more, which are not shown" if shown < len(lines) else ""
    return strip_tags("\n".join(lines[:shown])) + more
