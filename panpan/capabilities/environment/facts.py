"""All that was found out of one environment and the machine it is on, before it is judged."""

from collections.abc import Mapping

from panpan.capabilities.environment.binary_layer import BinaryLayer, binary_findings, look_at_binaries
from panpan.capabilities.environment.driver_layer import (
    DriverLayer,
    HardwareLayer,
    driver_findings,
    hardware_findings,
    look_at_driver,
    look_at_hardware,
)
from panpan.capabilities.environment.layers import Finding
from panpan.capabilities.environment.python_layer import PythonLayer, look_at_python, python_findings
from panpan.capabilities.environment.toolkit_layer import ToolkitLayer, look_at_toolkit, toolkit_findings
from panpan.python_environments.find_environment import Environment
from panpan.python_environments.machine_root import MachineRoot
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """The five layers, from the top to the bottom."""

    root: MachineRoot
    environment: Environment
    python: PythonLayer
    binaries: BinaryLayer
    toolkit: ToolkitLayer
    driver: DriverLayer
    hardware: HardwareLayer

    def findings(self) -> tuple[Finding, ...]:
        """Return what each layer has, for the report."""
        return (
            *python_findings(self.python),
            *binary_findings(self.binaries),
            *toolkit_findings(self.toolkit, self.binaries),
            *driver_findings(self.driver),
            *hardware_findings(self.hardware),
        )


def look(root: MachineRoot, environment: Environment, variables: Mapping[str, str]) -> Facts:
    """Look at all layers; nothing of the environment or the machine is run.

    Args:
        root: The machine.
        environment: What is looked at.
        variables: Environment variables; LD_LIBRARY_PATH counts.
    """
    python = look_at_python(root, environment)
    prefix, library_path = environment.path.rstrip("/"), variables.get("LD_LIBRARY_PATH", "")
    binaries = look_at_binaries(root, prefix, python, library_path)
    toolkit = look_at_toolkit(root, python, binaries)
    driver = look_at_driver(root, binaries.search)
    return Facts(root, environment, python, binaries, toolkit, driver, look_at_hardware(root, environment.path))
