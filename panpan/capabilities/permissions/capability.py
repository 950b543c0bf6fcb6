"""Permissions: the gate of each agent, questions about the sandbox, and files that become protected."""

import secrets
from collections.abc import Iterable

from panpan.core.hooks import Hook
from panpan.permissions.new_places import NewPlaces
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command
from panpan.session.context import SessionContext


class Permissions(Capability):
    """Lets no call run that the user did not allow."""

    name = "permissions"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        gate, outside = session.gate, session.settings.sandbox.outside
        for warning in gate.warnings:
            session.warn(warning)
        self._sandbox_questions = SandboxQuestions(outside, lambda: gate.mode, session.warn)
        aside = session.setup.locations.home / "put-aside" / secrets.token_hex(8)
        self._new_places = NewPlaces(aside, session.frontend.askers.user, session.warn)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return agent.gate, self._sandbox_questions, self._new_places

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.permissions.commands import PERMISSION_COMMANDS

        return PERMISSION_COMMANDS
