"""Runs subagents for one agent: begins or goes on with one, passes its events on, and says what came of it.

A subagent runs where the session owns its task, and the call that started it only receives. So it can be left to run
in the background at any moment, and ends with the call that waits for it otherwise.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace

import anyio
from anyio import CancelScope, move_on_after

from panpan.capabilities.subagents.child_agents import (
    Child,
    OpenedSubagent,
    Parent,
    find,
    is_read_only_agent,
    open_child,
)
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.subagents.report import Report, event_line
from panpan.capabilities.subagents.task import SubagentTask
from panpan.capabilities.subagents.worktrees.session_worktrees import WorktreeEnd, end_worktree, worktree_for
from panpan.core.background import JobEnd
from panpan.core.event_channel import EventChannel
from panpan.core.tool import ToolContext
from panpan.core.tool_executor import CLEANUP_S
from panpan.errors import PanpanError, ToolError, TurnLimitError
from panpan.session.agent import Agent
from panpan.session.log.agent_log import AgentEnd, SubagentEndRecord
from panpan.session.turn import TurnRun
from panpan.session.user_hooks import ReadingSubagent
from panpan.types.agent import AgentDefinition
from panpan.types.content import SummaryDisplay
from panpan.types.events import Event, Output, SubagentEvent, ToolYield
from panpan.types.messages import UserMessage, new_id

_READER = "explore"
_EVENTS_AHEAD = 64
"""Buffer between a subagent and the receiver of its events."""


class RunningSubagent:
    """A subagent that has begun."""

    def __init__(self, host: SubagentHost, child: Child, prompt: str, *, can_be_moved: bool = True) -> None:
        self.child = child
        self._can_be_moved = can_be_moved
        self._host = host
        self._report = Report(child.record.id, child.record.name)
        self._channel = EventChannel[Event](_EVENTS_AHEAD)
        self._scope = CancelScope()
        self._run = TurnRun(child.agent, self._channel, self._scope)
        self._prompt = UserMessage.of(prompt)
        host.running.add(child.record.id)
        self._is_over = host.start(self._to_its_end)

    async def events(self, tool_use_id: str) -> AsyncGenerator[ToolYield, None]:
        """Yield its events, then its result; leaving early ends it, unless the user moves it to the background."""
        left: Output | None = None
        try:
            with ExitStack() as stack:
                asked = anyio.Event()
                if self._can_be_moved:
                    foreground = self._host.background.foreground(tool_use_id, self._channel.nudge)
                    asked = stack.enter_context(foreground)
                while left is None and not self._channel.is_over:
                    if asked.is_set() and not self._is_over.is_set():
                        left, asked = self._moved(tool_use_id), anyio.Event()
                        continue
                    for event in await self._channel.take():
                        self._report.follow(event)
                        yield SubagentEvent(tool_use_id, self.child.record.id, event)
            yield await self._result() if left is None else left
        finally:
            if left is None:
                await self._end()

    async def begun_in_background(self, tool_use_id: str) -> Output:
        """Let it go on by itself from its beginning, and return what its parent is told."""
        try:
            return self._left_in_background(tool_use_id)
        except BaseException:
            await self._end()
            await self._end_worktree()
            raise

    def _moved(self, tool_use_id: str) -> Output | None:
        """Move it to the background; None: there is no room."""
        try:
            return self._left_in_background(tool_use_id)
        except ToolError as error:
            self.child.notes.append(f"The user wanted it in the background, and it stayed in the foreground: {error}.")
            return None

    def _left_in_background(self, tool_use_id: str) -> Output:
        record = self.child.record
        info = self._host.background.start_job(
            kind="subagent",
            title=record.label,
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
        try:
            while not self._channel.is_over:
                for event in await self._channel.take():
                    self._report.follow(event)
                    if line := event_line(event):
                        write(f"{line}\n")
            output = await self._result()
            return JobEnd(output.text, output.is_error)
        finally:
            await self._end()

    async def _result(self) -> Output:
        await self._is_over.wait()
        worktree = await self._end_worktree()
        notes = [*self.child.notes, *worktree.notes]
        return self._report.output(self._run.failure, notes=notes, waiting=worktree.summary)

    async def _end_worktree(self) -> WorktreeEnd:
        record = self.child.record
        return await end_worktree(self._host.worktrees.worktrees, record) if record.worktree else WorktreeEnd()

    async def _end(self) -> None:
        self._scope.cancel("nobody waits for it any more")
        self._channel.leave()
        with move_on_after(2 * CLEANUP_S, shield=True):
            await self._is_over.wait()

    async def _to_its_end(self) -> None:
        try:
            await self._run.run(self._prompt)
            self.child.agent.transcript.recorder.note(SubagentEndRecord(outcome=self._end_of_turn()).as_json())
        except PanpanError as error:
            self._run.failure.append(error)
        finally:
            self._host.running.discard(self.child.record.id)
            try:
                self.child.agent.transcript.log.close()
            except PanpanError as error:
                self._run.failure.append(error)

    def _end_of_turn(self) -> AgentEnd:
        """Return the kind of end of the turn; one that used up its rounds is done."""
        failures = self._run.failure
        if failures and not isinstance(failures[0], TurnLimitError):
            return "failed"
        return "stopped" if self._scope.cancelled_caught else "done"


class SubagentRunner:
    """Starts the subagents of one agent, or resumes them."""

    def __init__(self, host: SubagentHost, agent: Agent) -> None:
        self._host = host
        self._agent = agent

    @property
    def definitions(self) -> Sequence[AgentDefinition]:
        return self._host.definitions.all

    def may_run_in_parallel(self, task: SubagentTask) -> bool:
        definition = self._host.definitions.get(task.agent)
        if definition is None:
            return True  # nothing will run
        if (
            self._is_for_background(task, definition)
            or definition.run.isolation
            or (task.isolation and not task.resume)
        ):
            return True
        return is_read_only_agent(definition, self._host.tools) or self._agent.gate.mode == "plan"

    async def run(self, task: SubagentTask, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        try:
            running = await self._started(task, ctx)
        except ToolError:
            raise
        except PanpanError as error:
            raise ToolError(str(error)) from error
        if running.child.in_background:
            yield await running.begun_in_background(ctx.tool_use_id)
            return
        async with aclosing(running.events(ctx.tool_use_id)) as yields:
            async for item in yields:
                yield item

    async def _started(self, task: SubagentTask, ctx: ToolContext) -> RunningSubagent:
        host, parent = self._host, Parent(self._agent, ctx)
        if self._agent.identity.depth >= host.max_depth:
            raise ToolError("this subagent may not start others", advice="do the task yourself")
        if task.resume:
            host.claim(task.resume)
        try:
            if task.resume:
                opened = await anyio.to_thread.run_sync(find, host, parent, task)
            else:
                opened = find(host, parent, task)
            task = replace(task, in_background=self._is_for_background(task, opened.definition))
            if opened.is_isolated(task):
                child = await self._in_worktree(parent, task, opened)
            else:
                child = await self._child(parent, task, opened)
        except BaseException:
            host.running.discard(task.resume)
            raise
        return RunningSubagent(host, child, task.prompt, can_be_moved=self._agent.is_main)

    async def _in_worktree(self, parent: Parent, task: SubagentTask, opened: OpenedSubagent) -> Child:
        """Open the subagent in its worktree, which is removed again where that fails."""
        if parent.context.paths.root != self._host.place.root:  # the copy would be made of the project
            raise ToolError(
                "you work in a worktree yourself, and what you start works in the same one, not in a further copy: "
                "leave isolation out, or take a kind of subagent without it"
            )
        worktrees = self._host.worktrees.worktrees
        worktree, is_made = await worktree_for(worktrees, opened.record)
        opened = replace(opened, record=replace(opened.record, worktree=str(worktree)), has_new_worktree=is_made)
        try:
            return await self._child(parent, task, opened)
        except BaseException:
            with CancelScope(shield=True):
                await end_worktree(worktrees, opened.record)
            raise

    async def _child(self, parent: Parent, task: SubagentTask, opened: OpenedSubagent) -> Child:
        is_quick = opened.is_new and not opened.record.worktree and task.model is None
        async with self._host.opening:  # of many, one at a time, so that keys and replies are seen to between them
            if is_quick and opened.definition.model.name == "inherit":  # it makes a file and reads none
                return open_child(self._host, parent, task, opened)
            return await anyio.to_thread.run_sync(open_child, self._host, parent, task, opened)

    def _is_for_background(self, task: SubagentTask, definition: AgentDefinition) -> bool:
        """True if nobody waits for it; a subagent always waits, since the session alone hears of ends."""
        is_wanted = definition.run.background if task.in_background is None else task.in_background
        return is_wanted and self._agent.is_main


class OwnReader(ReadingSubagent):
    """The subagent of panpan's own that explores, in the name of the session's main agent."""

    def __init__(self, host: SubagentHost) -> None:
        self._host = host

    async def look_into(self, question: str) -> str:
        main = self._host.session.main
        task = SubagentTask("judge for a hook", question, _READER, in_background=False, is_panpans_own=True)
        output: Output | None = None
        runner, context = SubagentRunner(self._host, main), replace(main.context, tool_use_id=f"hook_{new_id()}")
        async with aclosing(runner.run(task, context)) as yields:
            async for item in yields:
                output = item if isinstance(item, Output) else output
        if output is None or output.is_error:
            raise ToolError("the subagent said nothing" if output is None else output.text[:500])
        return output.text
