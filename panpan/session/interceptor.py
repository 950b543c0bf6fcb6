"""An interceptor: sees what a session's model, tools and user are asked and answer, and may stand in for them.

The base class changes nothing; a session that nobody listens to has this one. Whatever else goes with it is a
capability, which sees the log and the hooks.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.session.setup import SessionSetup
from panpan.types.dataclass import dataclass
from panpan.types.llm import Provider
from panpan.types.permission import Asker, PlanAsker, UserAsker

if TYPE_CHECKING:
    from panpan.session.capability import Capability
    from panpan.session.context import SessionContext


@dataclass(frozen=True, slots=True)
class Askers:
    """Who answers what the user is asked; None: nobody."""

    permission: Asker | None = None
    user: UserAsker | None = None
    plan: PlanAsker | None = None


class SessionInterceptor:
    """Sees all of a session and changes nothing; a subclass overrides what it needs."""

    def askers(self, askers: Askers) -> Askers:
        """Return who answers in the place of `askers`; called first."""
        return askers

    def provider(self, provider: Provider) -> Provider:
        """Return what is asked in the place of a provider; called for each model of the session."""
        return provider

    def tools(self, tools: Mapping[str, Tool[Any]]) -> Mapping[str, Tool[Any]]:
        """Return what is called in the place of the tools, by the same names."""
        return tools

    def setup(self, setup: SessionSetup) -> SessionSetup:
        """Return what is settled before the session is opened, and again for each model that the user chooses in it."""
        return setup

    def hooks(self, hooks: Sequence[Hook]) -> Sequence[Hook]:
        """Return what the loop asks in the place of the session's hooks."""
        return hooks

    def capability(self, session: "SessionContext") -> "Capability | None":
        """Return the capability that goes with it, which is the first of the session; None: there is none."""
        return None
