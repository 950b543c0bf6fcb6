"""What the tasks of one session printed, for those who ask."""

from functools import partial

from anyio import to_thread

from panpan.capabilities.background.output_window import Ripgrep, Window, matching_lines, window_of
from panpan.capabilities.background.task import Task
from panpan.capabilities.background.tasks_background import TaskOutput
from panpan.system.text.known_keys import KnownKeys


class TaskOutputs:
    """Reads outputs, and knows how far the model has read each.

    Args:
        keys: What nobody is shown.
        ripgrep: Finds the program that searches them.
    """

    def __init__(self, keys: KnownKeys, ripgrep: Ripgrep) -> None:
        self._keys = keys
        self._ripgrep = ripgrep
        self._read_up_to: dict[str, int] = {}
        """By the id of the task, in bytes."""
        self._arrived_up_to: dict[str, int] = {}
        """The same, of what was read since it was last known that all of it had arrived."""

    async def new(self, task: Task, *, max_bytes: int) -> TaskOutput:
        """Return what came since this was last called, or the end of that."""
        start = self._read_up_to.get(task.id, 0)
        window = await self._window(task, start, max_bytes)
        self._arrived_up_to.setdefault(task.id, start)
        self._read_up_to[task.id] = window.end
        return TaskOutput(window.text, window.is_cut, task.record.output)

    async def all(self, task: Task, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        """Return all of it, or the lines that match a pattern; the end of that, where it is longer.

        Raises:
            ToolError: The output cannot be read, or the pattern is no regular expression.
        """
        path = task.record.output
        if pattern is None:
            window = await self._window(task, 0, max_bytes)
        else:
            ripgrep = self._ripgrep()
            window = await matching_lines(path, pattern, max_bytes=max_bytes, keys=self._keys, ripgrep=ripgrep)
        return TaskOutput(window.text, window.is_cut, path)

    def has_arrived(self) -> None:
        """Note that what was read has come to the model."""
        self._arrived_up_to.clear()

    def may_not_have_arrived(self) -> None:
        """Let what was read since the last `has_arrived` count as new again: twice is better than never."""
        self._read_up_to |= self._arrived_up_to
        self._arrived_up_to.clear()

    def forget_what_was_read(self) -> None:
        """Begin anew with each output, as after a rewind."""
        self._read_up_to.clear()
        self._arrived_up_to.clear()

    async def _window(self, task: Task, start: int, max_bytes: int) -> Window:
        grows = task.is_running
        read = partial(window_of, task.record.output, start, max_bytes=max_bytes, keys=self._keys, grows=grows)
        return await to_thread.run_sync(read)
