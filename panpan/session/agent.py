"""An agent: the main one of a session, or a subagent. What it has is alike, so that one turn and one hook list do."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from anyio import CancelScope

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.core.tool import ToolContext
from panpan.permissions.gate import Gate
from panpan.session.budget.budget import Budget
from panpan.session.log import SessionLog
from panpan.session.parts import ModelParts
from panpan.session.recorder import Recorder
from panpan.session.unfinished import UnfinishedCalls
from panpan.types.dataclass import dataclass
from panpan.types.permission import Asker


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an agent is, and where it works."""

    id: str
    """Id of the session, or of the subagent."""
    label: str = ""
    """Name for people, such as "explore: find the loss"; empty for the main agent."""
    depth: int = 0
    """0 for the main agent, 1 for a subagent that it started."""
    worktree: Path | None = None
    """Copy of the project that a subagent works in; None: it works in the project."""
    has_new_worktree: bool = False
    """True if the copy was made for the turn that begins."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation and its log, which the recorder keeps together."""

    conversation: Conversation
    log: SessionLog
    recorder: Recorder


@dataclass(frozen=True, slots=True)
class Rights:
    """What one agent may do, and what it may spend."""

    gate: Gate
    ask: Asker
    """Answers the gate's questions."""
    budget: Budget
    max_rounds: int
    """Most rounds of one turn."""


class Agent:
    """One agent of a session.

    Args:
        identity: Who it is.
        transcript: Its conversation and log.
        rights: What it may do and spend.
        context: What its tools are given.
        unfinished: Calls that an earlier run left open.
        warn: Told what the user should know, one sentence each.
    """

    def __init__(
        self,
        identity: Identity,
        transcript: Transcript,
        rights: Rights,
        context: ToolContext,
        unfinished: UnfinishedCalls,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.identity = identity
        self.transcript = transcript
        self.rights = rights
        self.context = context
        self.unfinished = unfinished
        self.warn = warn
        self._model: ModelParts | None = None
        self._work: CancelScope | None = None
        """Ends the turn that runs, or what else is done with the conversation; None: nothing is."""

    @property
    def is_main(self) -> bool:
        """True for the agent that the user talks to."""
        return self.identity.depth == 0

    @property
    def id(self) -> str:
        """Id of the session, or of the subagent."""
        return self.identity.id

    @property
    def conversation(self) -> Conversation:
        """What was said so far."""
        return self.transcript.conversation

    @property
    def gate(self) -> Gate:
        """Decides about its calls."""
        return self.rights.gate

    @property
    def budget(self) -> Budget:
        """What it may spend, and what it has spent."""
        return self.rights.budget

    @property
    def model(self) -> ModelParts:
        """The model that it asks, with its tools and hooks. A hook may read it as soon as a turn has begun."""
        assert self._model is not None, "an agent has its model before its first turn"
        return self._model

    def use(self, model: ModelParts) -> None:
        """Ask another model from the next turn on."""
        self._model = model

    @property
    def hooks(self) -> Sequence[Hook]:
        """Its hooks, in the order in which they are asked."""
        return self.model.hooks

    @property
    def is_busy(self) -> bool:
        """True while a turn runs, or other work that nothing may come between."""
        return self._work is not None

    @contextmanager
    def alone(self) -> Iterator[CancelScope]:
        """Keep turns and other work on the conversation away until the block ends.

        Enter the scope around the work, so that `interrupt` ends it.

        Raises:
            RuntimeError: A turn is running already.
        """
        self.require_idle()
        self._work = CancelScope()
        try:
            yield self._work
        finally:
            self._work = None

    def require_idle(self) -> None:
        """Check that no turn runs.

        Raises:
            RuntimeError: A turn is running already.
        """
        if self.is_busy:
            raise RuntimeError("a turn is running already")

    def interrupt(self) -> bool:
        """End the turn that runs, or other work; safe to call from a key binding.

        Returns:
            True if there was one that had not been told to end before.
        """
        if self._work is None or self._work.cancel_called:
            return False
        self._work.cancel("the user interrupted the turn")
        return True
