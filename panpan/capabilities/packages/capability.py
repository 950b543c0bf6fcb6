"""Packages: pip, uv, conda and pixi."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from panpan.capabilities.packages.target import PROGRAMS, PackageConfig, find_program
from panpan.core.late_tool import late_tool
from panpan.core.recorded_commands import CommandRecords, RunnerRecords
from panpan.core.tool import Tool
from panpan.python_environments.find_environment import find_environment
from panpan.python_environments.machine_root import MachineRoot
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.context import SessionContext
from panpan.system.files.paths import PathResolver

_OF_PYTHON = ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "environment.yml")
_MAKERS = {"pip": "pip:PipTool", "uv": "uv:UvTool", "conda": "conda:CondaTool", "pixi": "pixi:PixiTool"}


def unavailable_tools(paths: PathResolver, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield those without their program; pip where there is neither an environment nor a Python project."""
    is_of_python = any((paths.root / name).is_file() for name in _OF_PYTHON)
    if not is_of_python and find_environment(MachineRoot(), str(paths.root), variables) is None:
        yield "pip"
    for tool, programs in PROGRAMS.items():
        if find_program(programs, variables, paths) is None:
            yield tool


class Packages(Capability):
    """Installs and removes packages."""

    name = "packages"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._setup = PackageConfig(
            session.settings.packages, session.setup.locations.packages_folder, session.gate.withholds
        )

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        records = RunnerRecords(self.session.find(CommandRecords), agent.runner)
        setup = replace(self._setup, records=records)
        for name, maker in _MAKERS.items():
            yield late_tool(__package__, name, maker, setup)

    def unavailable(self) -> Iterable[str]:
        return unavailable_tools(self.session.paths, self.session.setup.env)
