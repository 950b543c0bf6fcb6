"""Host of a session's subagents: their task group, their models, and the place of their logs."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import anyio
from anyio.abc import TaskGroup

from panpan.capabilities.subagents.definitions.load import AgentDefinitions, shipped_definitions
from panpan.capabilities.subagents.settings import AgentSettings
from panpan.capabilities.subagents.task import SubagentTask
from panpan.capabilities.subagents.worktrees.session_worktrees import Place, SessionWorktrees
from panpan.core.background import Background
from panpan.core.tool import Tool
from panpan.errors import ConfigError, PanpanError
from panpan.session.agent import SubagentModel
from panpan.session.context import SessionContext
from panpan.session.models import SessionModels
from panpan.types.agent import AgentDefinition
from panpan.version import __version__

MAX_DEPTH = 3
"""Upper limit of `[agents] max_depth`."""

DEFAULT_ROUNDS = 100


class SubagentHost:
    """Runs the subagents of one session; `serve` has to run beside it."""

    def __init__(self, session: SessionContext, definitions: AgentDefinitions) -> None:
        self.session = session
        self.definitions = definitions
        opened = session.opened
        self.place = Place(session.id, opened.log.path.parent, session.setup.cwd, opened.git_branch, __version__)
        self.worktrees = SessionWorktrees(session, self.place)
        self.max_depth = min(session.settings[AgentSettings].max_depth, MAX_DEPTH)
        self.running: set[str] = set()
        self.opening = anyio.Lock()
        """Held while a subagent is opened."""
        self._tasks: TaskGroup | None = None

    @property
    def background(self) -> Background:
        return self.session.capabilities[Background]

    @property
    def _models(self) -> SessionModels:
        return self.session.capabilities[SessionModels]

    @property
    def tools(self) -> Sequence[Tool[Any]]:
        return self._models.every_tool

    @property
    def advertised(self) -> Collection[str]:
        return self._models.advertised

    async def serve(self) -> None:
        """Hold the task group of subagents."""
        async with anyio.create_task_group() as self._tasks:
            await anyio.sleep_forever()

    async def aclose(self) -> None:
        await self._models.close_subagents()

    def claim(self, agent_id: str) -> None:
        """Mark a subagent as running, before it is opened, so that nobody else goes on with it."""
        if agent_id in self.running:
            raise ConfigError(f"the subagent {agent_id} still runs; wait for it, or end it with TaskStop")
        self.running.add(agent_id)

    def start(self, run: Callable[[], Awaitable[None]]) -> anyio.Event:
        """Run a subagent's work independently of its starter; return the event of its end."""
        assert self._tasks is not None, "the session is open"
        is_over = anyio.Event()
        self._tasks.start_soon(_run, run, is_over)
        return is_over

    def definition_of(self, task: SubagentTask) -> AgentDefinition:
        if task.is_panpans_own:
            return next(one for one in shipped_definitions() if one.name == task.agent)
        definition = self.definitions.get(task.agent)
        if definition is None:
            names = ", ".join(self.definitions.names)
            raise ConfigError(f"there is no kind of subagent {task.agent!r}; there are {names}")
        return definition

    def model_for(self, task: SubagentTask, definition: AgentDefinition) -> tuple[SubagentModel, str]:
        """Return the model that a subagent asks, and what its parent should know of that; mostly nothing.

        A definition made for another agent may name a model that is not to be had here; the session's own is asked
        then.
        """
        models, is_bound, sampling = self._models, self.definitions.is_bound(definition.name), definition.model.sampling
        if task.model not in (None, "inherit"):
            return models.for_subagents(task.model, sampling=sampling), ""
        if definition.model.name == "inherit":
            return models.for_subagents(sampling=sampling), ""
        try:
            return models.for_subagents(definition.model.name, only_here=is_bound, sampling=sampling), ""
        except PanpanError as error:
            model = models.for_subagents(sampling=sampling)
            named = f"the model {definition.model.name} of the subagent {definition.name}"
            note = f"{named} is not used but {model.name}: {error}"
            self.session.warn(note)
            return model, note


async def _run(run: Callable[[], Awaitable[None]], is_over: anyio.Event) -> None:
    try:
        await run()
    finally:
        is_over.set()
