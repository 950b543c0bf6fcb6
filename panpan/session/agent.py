"""An agent: the main one of a session, or a subagent, and what it has because of its model."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from anyio import CancelScope

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.core.recorded_commands import Runner
from panpan.core.tool import Tool, ToolContext
from panpan.models.client import LLMClient
from panpan.models.provider_kind import FULL, ModelProfile
from panpan.permissions.gate import Gate
from panpan.session.budget.budget import Budget
from panpan.session.log.record_kinds import NO_PREFIX, SessionPrefix
from panpan.session.log.recorder import Recorder
from panpan.session.log.session_log import SessionLog
from panpan.session.unfinished import UnfinishedCalls
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort, ModelClient
from panpan.types.permission import Asker


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class ModelParts:
    """Parts of an agent that depend on its model; another model replaces all of them."""

    name: str
    """Name by which the provider knows the model."""
    llm: ModelClient
    tools: Mapping[str, Tool[Any]] = field(default_factory=dict)
    hooks: Sequence[Hook] = ()
    """Hooks in the order in which they are asked."""
    profile: ModelProfile = FULL
    prefix: SessionPrefix = NO_PREFIX
    choice: str = ""
    """The chosen model and the reason for the choice, on one line."""
    key_source: str = "none"
    """Source of the key, such as the name of a variable; never the key."""
    effort: Effort | None = None
    """Effort that goes into an answer; None leaves it to the model."""
    thinks: bool = False
    context_window: int | None = None
    """Tokens of a request and its reply together; None if it is not known."""
    warnings: Sequence[str] = ()
    """Warnings about the model for the user, one sentence each."""
    retry_now: Callable[[], bool] = lambda: False
    """Function that ends the pause before the next try; returns True if there was one."""
    prepare: Callable[[], Awaitable[None]] = _nothing
    aclose: Callable[[], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True)
class SubagentModel:
    """A model that subagents ask, over a connection of their own."""

    name: str
    """Name by which the provider knows the model."""
    llm: LLMClient
    profile: ModelProfile = FULL
    context_window: int | None = None
    """Tokens of a request and its reply together; None if it is not known."""


class ModelSource(Protocol):
    """Makes the parts of another model. Nothing of the old one is closed, and an error leaves everything as it is."""

    def keep(self) -> Callable[[], None]:
        """Return a function that goes back to the present model, which has to be open still."""
        ...

    def other(self, name: str, *, only_here: bool = False) -> ModelParts:
        """Return the parts of the model that `--model NAME` would choose.

        Args:
            name: As with `--model`.
            only_here: True if it must be at the same place as the present one.

        Raises:
            ConfigError: The name leads to no model, or elsewhere.
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
class Identity:
    """Name of an agent and the place where it works."""

    id: str
    label: str = ""
    """Name for people, such as "explore: find the loss"; empty for the main agent."""
    depth: int = 0
    """0 for the main agent, 1 for a subagent that it started."""
    worktree: Path | None = None
    """Copy of the project that a subagent works in; None if it works in the project."""
    has_new_worktree: bool = False
    """True if the copy was made for the turn that begins."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation and its log, which the recorder keeps together."""

    conversation: Conversation
    log: SessionLog
    recorder: Recorder


@dataclass(frozen=True, slots=True)
class AgentPermissions:
    """Permissions and spending limits of one agent."""

    gate: Gate
    ask: Asker
    budget: Budget
    max_rounds: int


class Agent:
    """One agent of a session: its identity, conversation, log, permissions, and the context of its tools.

    `unfinished` are calls that an earlier run left open.
    """

    def __init__(
        self,
        identity: Identity,
        transcript: Transcript,
        permissions: AgentPermissions,
        context: ToolContext,
        unfinished: UnfinishedCalls,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.identity = identity
        self.transcript = transcript
        self.permissions = permissions
        self.context = context
        self.unfinished = unfinished
        self.warn = warn
        self._model: ModelParts | None = None
        self._work: CancelScope | None = None
        """Scope of the turn that runs, or of other work on the conversation; None while there is none."""

    @property
    def is_main(self) -> bool:
        """True for the agent that the user talks to."""
        return self.identity.depth == 0

    @property
    def id(self) -> str:
        return self.identity.id

    @property
    def runner(self) -> Runner:
        """Name for the records of its commands."""
        return Runner("" if self.is_main else self.id)

    @property
    def conversation(self) -> Conversation:
        return self.transcript.conversation

    @property
    def gate(self) -> Gate:
        return self.permissions.gate

    @property
    def budget(self) -> Budget:
        return self.permissions.budget

    @property
    def model(self) -> ModelParts:
        """The model that it asks, with its tools and hooks. A hook may read it as soon as a turn has begun."""
        assert self._model is not None, "an agent has its model before its first turn"
        return self._model

    def use(self, model: ModelParts) -> None:
        self._model = model

    @property
    def hooks(self) -> Sequence[Hook]:
        return self.model.hooks

    @property
    def is_busy(self) -> bool:
        return self._work is not None

    @contextmanager
    def exclusive(self) -> Iterator[CancelScope]:
        """Keep turns and other work on the conversation away until the block ends.

        Enter the scope around the work, so that `interrupt` ends it. Raises RuntimeError if a turn is running already.
        """
        self.require_idle()
        self._work = CancelScope()
        try:
            yield self._work
        finally:
            self._work = None

    def require_idle(self) -> None:
        """Raise RuntimeError if a turn is running."""
        if self.is_busy:
            raise RuntimeError("a turn is running already")

    def interrupt(self) -> bool:
        """End the turn that runs, or other work; safe to call from a key binding. True if there was one to end."""
        if self._work is None or self._work.cancel_called:
            return False
        self._work.cancel("the user interrupted the turn")
        return True
