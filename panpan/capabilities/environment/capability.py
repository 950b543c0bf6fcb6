"""The environment: in which layer a Python environment is broken."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.environment.env_doctor import EnvDoctorTool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability


class Environment(Capability):
    """Examines Python environments."""

    name = "environment"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (EnvDoctorTool(self.session.gate.withholds),)
