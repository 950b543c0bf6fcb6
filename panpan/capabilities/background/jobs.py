"""Tasks that are work of panpan's own, such as that of a subagent."""

import logging
import os
from contextlib import suppress
from pathlib import Path

import anyio

from panpan.capabilities.background.task import Task
from panpan.capabilities.background.tasks_background import Job
from panpan.errors import ConfigError, PanpanError
from panpan.system.files.private import make_private_folder, open_private_file
from panpan.system.text.known_keys import KnownKeys

log = logging.getLogger(__name__)


async def run_job(task: Task, job: Job, keys: KnownKeys, *, max_output_bytes: int) -> None:
    """Run a job to its end and say how it ended; a failure of it is its own.

    Args:
        task: The task that it is.
        job: The work.
        keys: What its output file may not hold.
        max_output_bytes: What that file holds at most; the rest is dropped.
    """
    output = _JobOutput(task.record.output, keys, max_output_bytes)
    task.scope = scope = anyio.CancelScope()
    try:
        with scope:
            if task.is_stopping:
                scope.cancel()
            ended = await job(output.write)
            task.end("failed" if ended.is_error else "finished", report=keys.redact(ended.text))
    except PanpanError as error:
        task.end("failed", note=str(error))
    except Exception as error:  # a bug in a job costs that job, not the session
        log.exception("the background task %s failed unexpectedly", task.id)
        task.end("failed", note=f"it failed unexpectedly: {type(error).__name__}: {error}")
    finally:
        task.scope = None
        task.end(
            "stopped", note="" if task.is_stopping else "panpan ended before it did"
        )  # unless it has ended already


class _JobOutput:
    """The output file of a job."""

    def __init__(self, path: Path, keys: KnownKeys, max_bytes: int) -> None:
        self._path = path
        self._keys = keys
        self._room = max_bytes

    def write(self, text: str) -> None:
        """Append text; where the disk is full, it is dropped."""
        data = self._keys.redact(text).encode(errors="replace")[: max(0, self._room)]
        self._room -= len(data)
        with suppress(OSError, ConfigError):
            make_private_folder(self._path.parent)
            fd = open_private_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
