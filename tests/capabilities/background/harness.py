"""Background tasks in a folder of the test's own, as a session has them."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.config.settings import BackgroundSettings
from panpan.core.background import BackgroundCommand
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round
from panpan.system.files.output_store import OutputStore
from panpan.system.text.redact import KnownKeys
from panpan.types.events import TaskInfo
from panpan.types.messages import Message, SystemReminder

ENV = {"PATH": os.environ["PATH"]}


@dataclass
class Home:
    """Folder for the tasks of one session, however often it is opened."""

    folder: Path
    warnings: list[str] = field(default_factory=list)

    def opened(
        self,
        messages: Sequence[Message] = (),
        *,
        settings: BackgroundSettings | None = None,
        key: str = "",
        is_locked: bool = False,
    ) -> BackgroundTasks:
        """Open the tasks, as with the session."""
        return BackgroundTasks(
            settings,
            KnownKeys([key]),
            self.warnings.append,
            folder=self.folder / "tasks",
            store=OutputStore(self.folder / "outputs", keys=KnownKeys([key])),
            messages=messages,
            is_locked=is_locked,
        )

    @asynccontextmanager
    async def serving(
        self,
        messages: Sequence[Message] = (),
        *,
        settings: BackgroundSettings | None = None,
        key: str = "",
        keep: bool = False,
        is_locked: bool = False,
    ) -> AsyncGenerator[BackgroundTasks, None]:
        """Open the tasks, follow them, and close them as a session does."""
        tasks = self.opened(messages, settings=settings, key=key)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(tasks.serve)
                await anyio.wait_all_tasks_blocked()
                yield tasks
                group.cancel_scope.cancel()
        finally:
            await tasks.close(keep=keep, is_locked=is_locked)


async def start(tasks: BackgroundTasks, script: str, *, title: str = "a test", cwd: Path = Path("/")) -> TaskInfo:
    """Start a shell script in the background."""
    async with AsyncExitStack() as resources:
        command = BackgroundCommand(["sh", "-c", script], cwd, ENV, (), text=script, title=title, tool_use_id="toolu_1")
        return await tasks.start_command(command, resources)


async def news(tasks: BackgroundTasks, conversation: Conversation) -> list[SystemReminder]:
    """Let the next request begin, and return what the model is told."""
    told = await tasks.before_request(Round(1, 10, conversation))
    reminders = [one for one in told if isinstance(one, SystemReminder)]
    for reminder in reminders:
        conversation.append(reminder)
    return reminders
