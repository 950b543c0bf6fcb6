"""What a session is made of; `app.py` puts it together."""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.compaction.compactor import Compactor
from panpan.capabilities.language_servers.language_servers import ServerState
from panpan.capabilities.plan_mode.plan_mode import PlanMode
from panpan.capabilities.snapshots.session_snapshots import Snapshots
from panpan.capabilities.todos.todos import Todos
from panpan.config.settings import Settings
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.core.tool import Tool, ToolContext
from panpan.models.client import LLMClient
from panpan.models.model_profile import FULL, ModelProfile
from panpan.permissions.gate import PermissionGate
from panpan.session.budget.budget import Budget
from panpan.session.log import SessionLog
from panpan.session.made_title import MadeTitle
from panpan.session.prefix import NO_PREFIX, SessionPrefix
from panpan.session.recorder import Recorder
from panpan.session.resuming import EarlierModel
from panpan.session.slash_commands import NoCommands, SlashCommands
from panpan.session.steering import Steering
from panpan.session.unfinished import UnfinishedCalls
from panpan.system.text.known_keys import KnownKeys
from panpan.types.agent import AgentDefinition
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort, ModelClient
from panpan.types.permission import Asker


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class ModelParts:
    """What a session has because of its model; another model replaces all of it."""

    name: str
    """As the provider knows it."""
    llm: ModelClient
    tools: Mapping[str, Tool[Any]] = field(default_factory=dict)
    """What the model may call, by name."""
    hooks: Sequence[Hook] = ()
    """In the order in which they are asked."""
    profile: ModelProfile = FULL
    prefix: SessionPrefix = NO_PREFIX
    """What the requests of a new session begin with."""
    choice: str = ""
    """Which model was chosen and why, on one line."""
    key_source: str = "none"
    """Where the key came from, such as a variable's name; never the key."""
    effort: Effort | None = None
    """How much work goes into an answer; None: the model's own."""
    thinks: bool = False
    """Whether the model is asked to think before it answers."""
    context_window: int | None = None
    """Tokens of a request and its reply together; None where it is not known."""
    warnings: Sequence[str] = ()
    """What the user should know of the model, one sentence each."""
    retry_now: Callable[[], bool] = lambda: False
    """Ends the pause before the next try; returns whether there was one."""
    prepare: Callable[[], Awaitable[None]] = _nothing
    """Does beforehand what the first request would wait for."""
    aclose: Callable[[], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True)
class SubagentModel:
    """A model that subagents ask, over a connection of their own."""

    name: str
    """As the provider knows it."""
    llm: LLMClient
    profile: ModelProfile = FULL
    context_window: int | None = None
    """Tokens of a request and its reply together; None where it is not known."""


class AgentKinds(Protocol):
    """The kinds of subagents that a session may start."""

    @property
    def all(self) -> Sequence[AgentDefinition]:
        """All of them, by name."""
        ...


class _NoAgents:
    all: Sequence[AgentDefinition] = ()


NO_AGENTS = _NoAgents()


class ModelSource(Protocol):
    """Makes the parts of another model. Nothing of the old one is closed, and an error leaves everything as it is."""

    def other(self, name: str) -> ModelParts:
        """Return the parts of the model that `--model NAME` would choose.

        Raises:
            ConfigError: The name leads to no model.
            BudgetError: There is a budget and the price of the model is not known.
        """
        ...

    def with_effort(self, effort: Effort | None) -> ModelParts:
        """Return the parts of the same model, over the same connection, that is asked for this effort."""
        ...

    def with_thinking(self, *, is_on: bool) -> ModelParts:
        """Return the parts of the same model, over the same connection, that is asked to think first, or not to."""
        ...


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What a session is made of."""

    id: str
    cwd: Path
    """The workspace, canonical."""
    conversation: Conversation
    log: SessionLog
    recorder: Recorder
    model: ModelParts
    tool_context: ToolContext
    ask: Asker
    max_rounds: int
    models: ModelSource | None = None
    """None: the session keeps the model that it has."""
    gate: PermissionGate = field(default_factory=PermissionGate)
    commands: SlashCommands = field(default_factory=NoCommands)
    keys: KnownKeys = field(default_factory=KnownKeys)
    """Taken out of files that go along with a prompt."""
    plan_mode: PlanMode | None = None
    """Must be among the hooks of the model; None: the mode plan has no file and no notice."""
    todos: Todos | None = None
    """Must be among the hooks of the model; None: nothing keeps a list."""
    compactor: Compactor = field(default_factory=Compactor)
    """Makes the conversation shorter."""
    unfinished: UnfinishedCalls = field(default_factory=UnfinishedCalls)
    """What an earlier run left open."""
    snapshots: Snapshots | None = None
    """Its rounds must be among the hooks of the model; None: nothing is kept, and nothing can be undone."""
    steering: Steering = field(default_factory=Steering)
    """Must be among the hooks of the model."""
    budget: Budget = field(default_factory=Budget)
    """What may be spent, and what is; the model is asked through it."""
    background: BackgroundTasks = field(default_factory=BackgroundTasks)
    """Must be among the hooks of the model."""
    agents: AgentKinds = NO_AGENTS
    """The kinds of subagents that there are."""
    running_agents: Callable[[], Collection[str]] = tuple
    """Returns the ids of the subagents that run at the moment."""
    language_servers: Callable[[], Sequence[ServerState]] = tuple
    """Returns the language servers that there are, and what they do at the moment; looks for programs."""
    settings: Settings = field(default_factory=Settings)
    """As they were when the session was opened."""
    earlier_model: EarlierModel | None = None
    """That a resumed session was last with; None where nobody knows."""
    title: str | None = None
    make_title: Callable[[str], Awaitable[MadeTitle | None]] | None = None
    """Makes a title of what the user says first; raises nothing. None: there is none before he gives one."""
    warn: Callable[[str], None] = lambda _: None
    """Told what the user should know, one sentence each."""
    on_close: Sequence[Callable[[], Awaitable[None]]] = ()
    """Awaited in order when the session ends, after the model was closed."""
    alongside: Sequence[Callable[[], Coroutine[None, None, None]]] = ()
    """Run while the session is open, and cancelled at its end."""
