"""The cost of reminders: before a request in a long conversation, and for one reminder that is sent.

It is measured in this process, since it is a fraction of a millisecond. The sources are the real ones, with 200 files
that were read and a todo list on the disk.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

from benchmarks.figure import Figure
from panpan.capabilities.compaction.capability import ContextNearlyFull, LongSession
from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.capabilities.files.capability import MOST_FILES, FileChanged
from panpan.capabilities.todos.capability import TodoChanged, TodoForgotten
from panpan.capabilities.todos.todo_write import TodoWriteTool
from panpan.capabilities.todos.todos import Todos
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round
from panpan.core.tool import SeenFiles
from panpan.session.reminders import Reminders
from panpan.types.content import ChecklistItem, TextBlock
from panpan.types.messages import AssistantMessage, Usage, UserMessage

TITLE = f"Reminders, with 1,000 messages and {MOST_FILES} files that were read"

_REQUESTS = 200


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    quiet, telling = [], []
    for _ in range(runs):
        with TemporaryDirectory(prefix="panpan-bench-") as name:
            nothing_ms, one_ms = anyio.run(_milliseconds, Path(name).resolve())
        quiet.append(nothing_ms)
        telling.append(one_ms)
    yield Figure("before a request, nothing to tell", "ms", quiet, at_most=5.0)
    yield Figure("before a request, a changed file is told", "ms", telling, at_most=5.0)


async def _milliseconds(root: Path) -> tuple[float, float]:
    """Return the average milliseconds before a request, without and with a reminder."""
    conversation = _conversation()
    todos = Todos(root / "todos" / "bench.json", lambda: conversation.messages)
    await todos.replace([ChecklistItem(content="Measure", active_form="Measuring")])
    seen_files, files = SeenFiles(), [root / f"file{number}.py" for number in range(MOST_FILES)]
    for file in files:
        file.write_text("one\n" * 200)
        seen_files.add(file, file.read_bytes())
    sources = (
        TodoChanged(todos),
        ContextNearlyFull(CompactionSettings(), lambda: 200_000),
        FileChanged(seen_files, root),
        LongSession(),
        TodoForgotten(todos),
    )
    reminders = Reminders(sources, max_per_session=1000)
    await _request(reminders, conversation)  # reads the files for the first time, and sends the list
    before = len(conversation.messages)
    nothing_s = sum([await _request(reminders, conversation) for _ in range(_REQUESTS)])
    one_s = 0.0
    for file in files:
        file.write_text("two\n" * 200)
        one_s += await _request(reminders, conversation)
    told = len(conversation.messages) - before
    assert told == len(files), f"{told} reminders were told"
    return nothing_s / _REQUESTS * 1000, one_s / len(files) * 1000


async def _request(reminders: Reminders, conversation: Conversation) -> float:
    """Add the reminders before a request to the conversation, and return the seconds that it took."""
    began_s = perf_counter()
    for addition in await reminders.before_request(Round(1, 10, conversation)):
        conversation.append(addition)
    return perf_counter() - began_s


def _conversation() -> Conversation:
    conversation = Conversation(tools=[TodoWriteTool(Todos(Path("none"), list)).definition])
    for number in range(500):
        conversation.append(UserMessage.of(f"question {number}"))
        answer = TextBlock(text=f"answer {number}")
        conversation.append(AssistantMessage(content=(answer,), usage=Usage(input_tokens=20 * number)))
    return conversation
