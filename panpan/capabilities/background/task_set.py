"""The tasks of one session, by id, and what they printed: the end of it, or the lines that match a pattern."""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio import to_thread

from panpan.capabilities.background.task import MAX_ENDED, Registry, Task, TaskRecord
from panpan.core.background import TaskOutput
from panpan.errors import ConfigError, ToolError
from panpan.system.files.folder_tree import open_private_file
from panpan.system.processes.process import LineFolder
from panpan.system.processes.process_table import ProcessTree
from panpan.system.text.redact import KnownKeys
from panpan.system.text.terminal_text import clean_line
from panpan.text_search.engine import MAX_COLUMNS, Query, SearchRequest, numbered_line, parse_records, search
from panpan.types.dataclass import dataclass
from panpan.types.events import TaskKind
from panpan.types.pattern import compile_late

MAX_TITLE_CHARS = 200
_MAX_NAMED = 20


class TaskSet:
    """All tasks of a session."""

    def __init__(self, registry: Registry, warn: Callable[[str], None]) -> None:
        self.registry = registry
        self._warn = warn
        self._by_id: dict[str, Task] = {}
        self._changed = anyio.Event()

    def load(self) -> None:
        """Read the records, forget the oldest past the limit, and name those that cannot be read."""
        records, damaged = self.registry.load()
        for path in damaged[:_MAX_NAMED]:
            self._warn(f"the background task in {path} cannot be read, so it is left out")
        if len(damaged) > _MAX_NAMED:
            self._warn(f"{len(damaged) - _MAX_NAMED:,} more there cannot be read, and are left out, too")
        for record in [record for record in records if record.state != "running"][:-MAX_ENDED]:
            self.registry.remove(record.id)
            records.remove(record)
        self._by_id = {record.id: self._task(record) for record in records}

    def __iter__(self) -> Iterator[Task]:
        return iter(self._by_id.values())

    @property
    def running(self) -> Sequence[Task]:
        return [task for task in self if task.is_running]

    def known(self, task_id: str) -> Task:
        task = self._by_id.get(task_id.strip())
        if task is None:
            ids = ", ".join(task.id for task in self.running[:_MAX_NAMED])
            raise ToolError(f"there is no background task {task_id!r}; running are: {ids or 'none'}")
        return task

    def new(
        self,
        kind: TaskKind,
        *,
        title: str,
        output: Callable[[str], Path],
        tool_use_id: str,
        command: str = "",
        agent_id: str = "",
        started_at: float | None = None,
        tree: ProcessTree | None = None,
    ) -> Task:
        """Return a new task, not yet in the set nor kept. `output` gives the place of its output by its id."""
        task_id = secrets.token_hex(4)
        while task_id in self._by_id:
            task_id = secrets.token_hex(4)
        return self._task(
            TaskRecord(
                id=task_id,
                kind=kind,
                title=clean_line(title)[:MAX_TITLE_CHARS],
                command=command,
                started_at=time.time() if started_at is None else started_at,
                output=output(task_id),
                tool_use_id=tool_use_id,
                agent_id=agent_id,
            ),
            tree,
        )

    def add(self, task: Task) -> None:
        self._by_id[task.id] = task
        for ended in [one for one in self if not one.is_running][:-MAX_ENDED]:
            self.registry.remove(ended.id)
            del self._by_id[ended.id]
        self._tell_change()

    async def wait_changed(self) -> None:
        await self._changed.wait()

    def _task(self, record: TaskRecord, tree: ProcessTree | None = None) -> Task:
        return Task(record, self.registry, self._tell_change, self._warn, tree)

    def _tell_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


Ripgrep: TypeAlias = Callable[[], str | None]
"""Returns the path of ripgrep; None if there is none."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of an output."""

    text: str
    is_cut: bool
    """True if something before it was left out."""
    end: int
    """Byte behind its last whole line, where the next window begins."""


class TaskOutputs:
    """Reads outputs, and knows how far the model has read each."""

    def __init__(self, keys: KnownKeys, ripgrep: Ripgrep) -> None:
        self._keys = keys
        self._ripgrep = ripgrep
        self._read_up_to: dict[str, int] = {}
        """Bytes, by task id."""
        self._arrived_up_to: dict[str, int] = {}
        """The same before reads that may not have arrived."""

    async def new(self, task: Task, *, max_bytes: int) -> TaskOutput:
        start = self._read_up_to.get(task.id, 0)
        window = await self._window(task, start, max_bytes)
        self._arrived_up_to.setdefault(task.id, start)
        self._read_up_to[task.id] = window.end
        return TaskOutput(window.text, window.is_cut, task.record.output)

    async def all(self, task: Task, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        """Return all of it, or the lines that match a pattern; at most the last `max_bytes`."""
        path = task.record.output
        if pattern is None:
            window = await self._window(task, 0, max_bytes)
        else:
            ripgrep = self._ripgrep()
            window = await matching_lines(path, pattern, max_bytes=max_bytes, keys=self._keys, ripgrep=ripgrep)
        return TaskOutput(window.text, window.is_cut, path)

    def has_arrived(self) -> None:
        self._arrived_up_to.clear()

    def may_not_have_arrived(self) -> None:
        """Let what was read since the last `has_arrived` count as new again: twice is better than never."""
        self._read_up_to |= self._arrived_up_to
        self._arrived_up_to.clear()

    def reset_read_positions(self) -> None:
        self._read_up_to.clear()
        self._arrived_up_to.clear()

    async def _window(self, task: Task, start: int, max_bytes: int) -> Window:
        grows = task.is_running
        read = partial(window_of, task.record.output, start, max_bytes=max_bytes, keys=self._keys, grows=grows)
        return await to_thread.run_sync(read)


_CUT_BY_RIPGREP = compile_late(r" \[\.\.\. [a-z0-9 ]+\]\Z")

_LEAD_BYTES = 16 * 1024
"""Bytes before a window that are searched for the beginning of a key; no key is that long."""


def window_of(path: Path, start: int, *, max_bytes: int, keys: KnownKeys, grows: bool = False) -> Window:
    """Return an output from byte `start` on, or its last `max_bytes`; a missing file is empty."""
    try:
        fd = open_private_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return Window("", is_cut=False, end=start)
    except (OSError, ConfigError) as exc:
        raise ToolError(f"the output in {path} cannot be read: {exc}") from exc
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        from_ = max(start, size - max_bytes)
        lead_bytes = min(from_, _LEAD_BYTES)
        file.seek(from_ - lead_bytes)
        data = file.read(lead_bytes + max_bytes)
    lead, data = data[:lead_bytes], data[lead_bytes:]
    is_cut = from_ > start
    if is_cut:
        first_line = data.find(b"\n") + 1
        lead, data = lead + data[:first_line], data[first_line:]
    last_line = data.rfind(b"\n") + 1
    end = size - (len(data) - last_line) if len(data) - last_line < max_bytes else size
    return Window(_text_of(lead, data, keys, grows=grows), is_cut, end)


async def matching_lines(path: Path, pattern: str, *, max_bytes: int, keys: KnownKeys, ripgrep: str | None) -> Window:
    """Return the last lines of an output that match, each with its number; without ripgrep Python searches."""
    if not await to_thread.run_sync(path.exists):
        return Window("", is_cut=False, end=0)
    request = SearchRequest(str(path.parent), "lines", Query(pattern), file=path.name)
    found = await search(request, ripgrep)
    numbered = (numbered_line(rest) for _, rest in parse_records(found.stdout, "lines"))
    lines = [f"{number}{mark}{_without_keys(text, keys)}" for number, mark, text in numbered]
    kept, room = len(lines), max_bytes
    while kept and (room := room - len(lines[kept - 1].encode(errors="replace")) - 1) >= 0:
        kept -= 1
    return Window("\n".join(lines[kept:]), is_cut=kept > 0 or found.is_partial, end=0)


def _without_keys(line: str, keys: KnownKeys) -> str:
    cut = _CUT_BY_RIPGREP.search(line)
    text, mark = (line[: cut.start()], cut[0]) if cut else (line, "")
    stream = keys.stream()
    kept = stream.feed(text.encode(errors="surrogateescape"))
    if not cut and len(text) < MAX_COLUMNS:
        kept += stream.finish()
    return kept.decode(errors="replace") + mark


def _text_of(lead: bytes, data: bytes, keys: KnownKeys, *, grows: bool) -> str:
    stream = keys.stream()  # before anything is cut, so that no part of a key remains
    stream.feed(lead)
    data = stream.feed(data) + (b"" if grows else stream.finish())
    folder = LineFolder()
    folded = folder.feed(data) + folder.finish()
    return keys.redact(folded.decode(errors="replace"))
