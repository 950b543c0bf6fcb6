"""A subagent that has begun: its events go to the call that waits for it, or into the output of a background task."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack

import anyio
from anyio import CancelScope, move_on_after

from panpan.capabilities.subagents.child import Child
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.subagents.report import Report, told
from panpan.capabilities.subagents.worktrees.worktree_use import WorktreeEnd, end_worktree
from panpan.core.background import JobEnd
from panpan.core.tool_executor import CLEANUP_S
from panpan.errors import PanpanError, ToolError, TurnLimitError
from panpan.session.agent_log import AgentEnd, end_record
from panpan.session.event_hop import EventHop
from panpan.session.turn_run import TurnRun
from panpan.types.display import SummaryDisplay
from panpan.types.events import Event, SubagentEvent
from panpan.types.messages import UserMessage
from panpan.types.tool import Output, ToolYield

_EVENTS_AHEAD = 64
"""How far a subagent may be ahead of whoever receives its events."""


class RunningSubagent:
    """A subagent that has begun.

    Args:
        host: Where it runs.
        child: The subagent.
        prompt: What it is to do.
        can_be_moved: Whether the user may move it to the background.
    """

    def __init__(self, host: SubagentHost, child: Child, prompt: str, *, can_be_moved: bool = True) -> None:
        self.child = child
        self._can_be_moved = can_be_moved
        self._host = host
        self._report = Report(child.record.id, child.record.name)
        self._hop = EventHop[Event](_EVENTS_AHEAD)
        self._scope = CancelScope()
        self._run = TurnRun(child.agent, self._hop, self._scope)
        self._prompt = UserMessage.of(prompt)
        host.running.add(child.record.id)
        self._is_over = host.start(self._to_its_end)

    async def events(self, tool_use_id: str) -> AsyncGenerator[ToolYield, None]:
        """Yield what it does, then its result; leaving early ends it, unless the user wants it in the background."""
        left: Output | None = None
        try:
            with ExitStack() as stack:
                asked = anyio.Event()
                if self._can_be_moved:
                    asked = stack.enter_context(self._host.background.foreground(tool_use_id))
                while left is None:
                    if asked.is_set() and not self._is_over.is_set():
                        left, asked = self._moved(tool_use_id), anyio.Event()
                        continue
                    events = await self._next(asked)
                    for event in events:
                        self._report.follow(event)
                        yield SubagentEvent(tool_use_id, self.child.record.id, event)
                    if not events and (self._is_over.is_set() or not asked.is_set()):
                        break
            yield await self._result() if left is None else left
        finally:
            if left is None:
                await self._end()

    async def begun_in_background(self, tool_use_id: str) -> Output:
        """Let it go on by itself from its beginning, and return what its parent is told.

        Raises:
            ToolError: Too many tasks run; it is ended.
        """
        try:
            return self._left_in_background(tool_use_id)
        except BaseException:
            await self._end()
            await self._end_worktree()
            raise

    def _moved(self, tool_use_id: str) -> Output | None:
        """Let it go on by itself, and return what its parent is told; None where there is no room for it."""
        try:
            return self._left_in_background(tool_use_id)
        except ToolError as error:
            self.child.notes.append(f"The user wanted it in the background, and it stayed in the foreground: {error}.")
            return None

    def _left_in_background(self, tool_use_id: str) -> Output:
        record = self.child.record
        info = self._host.background.start_job(
            kind="subagent",
            title=self.child.label,
            tool_use_id=tool_use_id,
            agent_id=record.id,
            job=self._in_background,
        )
        notes = " ".join(self.child.notes)
        text = (
            f"The subagent works in the background as task {info.id}. You are told when it ends; go on meanwhile. "
            f"What it does is written to {info.output}."
        )
        shown = SummaryDisplay(text=f"works in the background as task {info.id}")
        return Output(f"{text} {notes}".rstrip(), shown)

    async def _in_background(self, write: Callable[[str], None]) -> JobEnd:
        """Follow it to its end; whoever cancels this ends it."""
        try:
            while events := await self._hop.take():
                for event in events:
                    self._report.follow(event)
                    if line := told(event):
                        write(f"{line}\n")
            output = await self._result()
            return JobEnd(output.text, output.is_error)
        finally:
            await self._end()

    async def _next(self, asked: anyio.Event) -> Sequence[Event]:
        """Return what has come since the last time; nothing at the end, and where it is to go on in the background."""
        taken: Sequence[Event] = ()
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await asked.wait()
                tasks.cancel_scope.cancel("it goes on in the background")

            tasks.start_soon(watch)
            taken = await self._hop.take()
            tasks.cancel_scope.cancel("something has come")
        return taken

    async def _result(self) -> Output:
        """Wait for its end, and return what its parent is told."""
        await self._is_over.wait()
        worktree = await self._end_worktree()
        notes = [*self.child.notes, *worktree.notes]
        return self._report.output(self._run.failure, notes=notes, waiting=worktree.summary)

    async def _end_worktree(self) -> WorktreeEnd:
        """Remove its worktree if it has one and changed nothing there, and return what became of it."""
        record = self.child.record
        return await end_worktree(self._host.worktrees.worktrees, record) if record.worktree else WorktreeEnd()

    async def _end(self) -> None:
        self._scope.cancel("nobody waits for it any more")
        self._hop.leave()
        with move_on_after(2 * CLEANUP_S, shield=True):
            await self._is_over.wait()

    async def _to_its_end(self) -> None:
        """Run its turn, and give back what it holds."""
        try:
            await self._run.run(self._prompt)
            self.child.agent.transcript.recorder.note(end_record(self._end_of_turn()))
        except PanpanError as error:
            self._run.failure.append(error)
        finally:
            self._host.running.discard(self.child.record.id)
            try:
                self.child.close()
            except PanpanError as error:
                self._run.failure.append(error)

    def _end_of_turn(self) -> AgentEnd:
        """Return how the turn ended; one that has had all rounds that it may take is done."""
        failures = self._run.failure
        if failures and not isinstance(failures[0], TurnLimitError):
            return "failed"
        return "stopped" if self._scope.cancelled_caught else "done"
