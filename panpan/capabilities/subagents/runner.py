"""Runs subagents for one agent: begins or goes on with one, passes its events on, and says what came of it.

A subagent runs where the session owns its task, and the call that started it only receives. So it can be left to run
in the background at any moment, and ends with the call that waits for it otherwise.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

import anyio
from anyio import CancelScope

from panpan.capabilities.subagents.child import Child, Parent
from panpan.capabilities.subagents.child_tools import only_looks
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.subagents.opening import Opened, find, open_child
from panpan.capabilities.subagents.running import RunningSubagent
from panpan.capabilities.subagents.subagents import SubagentTask
from panpan.capabilities.subagents.worktrees.worktree_use import end_worktree, worktree_for
from panpan.core.tool import ToolContext
from panpan.errors import PanpanError, ToolError
from panpan.session.agent import Agent
from panpan.types.agent import AgentDefinition
from panpan.types.tool import ToolYield


class SubagentRunner:
    """Implements `Subagents` for one agent.

    Args:
        host: What all subagents of the session share.
        agent: The agent.
    """

    def __init__(self, host: SubagentHost, agent: Agent) -> None:
        self._host = host
        self._agent = agent

    @property
    def definitions(self) -> Sequence[AgentDefinition]:
        return self._host.definitions.all

    def runs_beside_others(self, task: SubagentTask) -> bool:
        definition = self._host.definitions.get(task.agent)
        if definition is None:
            return True  # nothing will run
        if self._is_for_background(task, definition) or definition.isolation or (task.isolation and not task.resume):
            return True
        return only_looks(definition, self._host.tools) or self._agent.gate.mode == "plan"

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
        """Open the subagent and let it begin."""
        host, parent = self._host, Parent(self._agent, ctx)
        if self._agent.identity.depth >= host.max_depth:
            raise ToolError("this subagent may not start others; do the task yourself")
        if not ctx.runs_alone and not self.runs_beside_others(task):  # it was to wait for the others, in plan mode
            raise ToolError("plan mode ended before this began, and now it has to run alone; make the call again")
        if task.resume:
            host.claim(task.resume)
        try:
            opened = await anyio.to_thread.run_sync(find, host, parent, task)
            task = replace(task, in_background=self._is_for_background(task, opened.definition))
            if opened.is_isolated(task):
                child = await self._in_worktree(parent, task, opened)
            else:
                child = await self._child(parent, task, opened)
        except BaseException:
            host.running.discard(task.resume)
            raise
        return RunningSubagent(host, child, task.prompt, can_be_moved=self._agent.is_main)

    async def _in_worktree(self, parent: Parent, task: SubagentTask, opened: Opened) -> Child:
        """Open the subagent in its worktree, which is removed again where that fails.

        Raises:
            ToolError: Its parent works in one itself.
        """
        if parent.context.paths.root != self._host.place.root:  # its copy would be one of the project
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

    async def _child(self, parent: Parent, task: SubagentTask, opened: Opened) -> Child:
        return await anyio.to_thread.run_sync(open_child, self._host, parent, task, opened)

    def _is_for_background(self, task: SubagentTask, definition: AgentDefinition) -> bool:
        """Return whether nobody waits for it: a subagent always waits, since the session alone hears of ends."""
        is_wanted = definition.background if task.in_background is None else task.in_background
        return is_wanted and self._agent.is_main
