"""The environment: in which layer a Python environment is broken."""

from collections.abc import Iterable
from typing import Any

from panpan.core.late_tool import late_tool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability


class Environment(Capability):
    """Examines Python environments."""

    name = "environment"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (late_tool(__package__, "EnvDoctor", "env_doctor:EnvDoctorTool", self.session.gate.withholds),)
