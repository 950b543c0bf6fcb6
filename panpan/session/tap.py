"""A tap: sees what a session is asked, sent and answered, and may stand in for it. Cassettes work by one.

The base class changes nothing; a session without a tap has this one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.session.log import SessionLog
from panpan.session.setup import Setup
from panpan.types.asking import UserAsker
from panpan.types.compaction import Compaction
from panpan.types.dataclass import dataclass
from panpan.types.llm import Provider
from panpan.types.messages import Message
from panpan.types.permission import Asker
from panpan.types.plan import PlanAsker


@dataclass(frozen=True, slots=True)
class Askers:
    """Who answers what the user is asked; None: nobody."""

    permission: Asker | None = None
    user: UserAsker | None = None
    plan: PlanAsker | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """A session as it begins."""

    setup: Setup
    log: SessionLog
    messages: Sequence[Message] = ()
    """What was said before, where it goes on with an earlier one."""
    compactions: Sequence[Compaction] = ()
    system_prompt: str | None = None
    """The user's, in the place of panpan's own."""
    append_system_prompt: str | None = None
    is_attended: bool = False
    max_rounds: int | None = None
    panpan_version: str = ""
    without_use: Sequence[str] = ()
    """Names of tools that the model is not told of, since they cannot work here."""


class Tap:
    """Sees all of a session and changes nothing; a subclass overrides what it needs."""

    def askers(self, askers: Askers) -> Askers:
        """Return who answers in the place of `askers`; called first."""
        return askers

    def setup(self, setup: Setup) -> Setup:
        """Return what is settled before the session is opened, and again for each model that the user chooses in it."""
        return setup

    def provider(self, provider: Provider) -> Provider:
        """Return what is asked in the place of a provider; called for each model of the session."""
        return provider

    def tools(self, tools: Mapping[str, Tool[Any]]) -> Mapping[str, Tool[Any]]:
        """Return what is called in the place of the tools, by the same names."""
        return tools

    def without_use(self, names: Sequence[str]) -> Sequence[str]:
        """Return which tools the model is not told of in the place of those that cannot work here."""
        return names

    def hooks(self, hooks: Sequence[Hook]) -> Sequence[Hook]:
        """Return the hooks of the session."""
        return hooks

    def opened(self, opening: Opening) -> None:
        """See what the session begins with; called once, before anything is said.

        Raises:
            ConfigError: The session cannot go on with this tap.
        """

    def close(self) -> None:
        """The session is over."""
