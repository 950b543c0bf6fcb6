"""What all subagents of a session share: their tasks, their models, where their logs lie."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.subagents.agent_log import agents_folder
from panpan.capabilities.subagents.child import HooksOf
from panpan.capabilities.subagents.definitions.load import AgentDefinitions
from panpan.capabilities.subagents.subagents import SubagentTask
from panpan.core.tool import Tool
from panpan.errors import ConfigError, PanpanError
from panpan.permissions.gate import PermissionGate
from panpan.session.models import SessionModels
from panpan.session.parts import SubagentModel
from panpan.tool_registry import all_tools
from panpan.types.agent import AgentDefinition
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.capabilities.subagents.worktrees.worktrees import Worktrees

MAX_DEPTH = 3
"""How deep subagents may be nested at most, whatever the settings say."""

DEFAULT_ROUNDS = 100
"""Rounds of a subagent's turn, where its definition does not say."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the session is."""

    session_id: str
    sessions_folder: Path
    """That of the project."""
    root: Path
    """The workspace, canonical."""
    git_branch: str
    panpan_version: str

    @property
    def logs(self) -> Path:
        """Where the logs of its subagents lie."""
        return agents_folder(self.sessions_folder, self.session_id)


class SubagentHost:
    """Runs what subagents of one session do; `serve` has to run beside it.

    Args:
        definitions: The kinds of subagents that there are.
        models: Where their models come from.
        rules: The session's gate.
        hooks_of: Makes their hooks.
        background: Runs those that nobody waits for.
        place: Where the session is.
        offered: Returns the names of the tools that the session's model may call.
        worktrees: Returns what makes copies of the project.
        tools: Makes the tools of which each agent gets some.
        max_depth: How deep they may be nested.
        warn: Told what the user should know, one sentence each.
    """

    def __init__(
        self,
        definitions: AgentDefinitions,
        models: Callable[[], SessionModels],
        rules: PermissionGate,
        hooks_of: HooksOf,
        background: BackgroundTasks,
        *,
        place: Place,
        offered: Callable[[], Collection[str]],
        worktrees: "Callable[[], Worktrees]",
        tools: Callable[[], Sequence[Tool[Any]]] = all_tools,
        max_depth: int = 1,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.definitions = definitions
        self.rules = rules
        self.hooks_of = hooks_of
        self.background = background
        self._worktrees = worktrees
        self._make_tools = tools
        self.max_depth = min(max_depth, MAX_DEPTH)
        self.running: set[str] = set()
        """Ids of those that run."""
        self.place = place
        self.offered = offered
        self._models = models
        self._warn = warn
        self._tasks: TaskGroup | None = None

    @cached_property
    def worktrees(self) -> "Worktrees":
        """Makes copies of the project."""
        return self._worktrees()

    async def serve(self) -> None:
        """Be where subagents run; to be run beside the session."""
        async with anyio.create_task_group() as self._tasks:
            await anyio.sleep_forever()

    async def aclose(self) -> None:
        """Close their models."""
        await self._models().close_subagents()

    @cached_property
    def shared_tools(self) -> Sequence[Tool[Any]]:
        """Tools that all subagents can share, since each call brings what is its agent's own."""
        return self._make_tools()

    def claim(self, agent_id: str) -> None:
        """Count a subagent as one that runs, before it is opened, so that nobody else goes on with it.

        Raises:
            ConfigError: It runs.
        """
        if agent_id in self.running:
            raise ConfigError(f"the subagent {agent_id} still runs; wait for it, or end it with TaskStop")
        self.running.add(agent_id)

    def start(self, run: Callable[[], Awaitable[None]]) -> anyio.Event:
        """Run something of a subagent, whatever becomes of whoever started it; return what is set when it is over."""
        assert self._tasks is not None, "the session is open"
        is_over = anyio.Event()
        self._tasks.start_soon(_run, run, is_over)
        return is_over

    def definition_of(self, task: SubagentTask) -> AgentDefinition:
        """Return the kind that a task names.

        Raises:
            ConfigError: There is none of that name.
        """
        definition = self.definitions.get(task.agent)
        if definition is None:
            names = ", ".join(self.definitions.names)
            raise ConfigError(f"there is no kind of subagent {task.agent!r}; there are {names}")
        return definition

    def model_for(self, task: SubagentTask, definition: AgentDefinition) -> tuple[SubagentModel, str]:
        """Return the model that a subagent asks, and what its parent should know of that; mostly nothing.

        A definition made for another agent may name a model that is not to be had here; the session's own is asked
        then.

        Raises:
            ConfigError: The call itself names one that is not to be had.
            BudgetError: There is a budget and the price of the model is not known.
        """
        models, is_bound, sampling = self._models(), self.definitions.is_bound(definition.name), definition.sampling
        if task.model not in (None, "inherit"):
            return models.for_subagents(task.model, sampling=sampling), ""
        if definition.model == "inherit":
            return models.for_subagents(sampling=sampling), ""
        try:
            return models.for_subagents(definition.model, only_here=is_bound, sampling=sampling), ""
        except PanpanError as error:
            model = models.for_subagents(sampling=sampling)
            named = f"the model {definition.model} of the subagent {definition.name}"
            note = f"{named} is not used but {model.name}: {error}"
            self._warn(note)
            return model, note


async def _run(run: Callable[[], Awaitable[None]], is_over: anyio.Event) -> None:
    try:
        await run()
    finally:
        is_over.set()
