"""Projects as folders of manifests, and what is said of an environment in the light of them."""

from collections.abc import Mapping
from pathlib import Path

from panpan.capabilities.environment.env_doctor import diagnose
from panpan.capabilities.environment.layers import Constraint, EnvReport
from panpan.python_environments.find_environment import find_environment, project_of
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.project_files import ProjectFiles
from panpan.python_environments.project_requirements import ProjectRequirements, project_requirements
from tests.fakes.machines import PROJECT


def written(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Put files into the project on a machine."""
    for name, content in files.items():
        place = root / PROJECT[1:] / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def files_of(root: Path, files: Mapping[str, str | bytes]) -> ProjectFiles:
    return ProjectFiles(MachineRoot(written(root, files)), PROJECT)


def requirements_of(root: Path, files: Mapping[str, str | bytes]) -> ProjectRequirements:
    return project_requirements(MachineRoot(written(root, files)), PROJECT)


def report_of(root: Path, files: Mapping[str, str | bytes], place: str = PROJECT, here: str = PROJECT) -> EnvReport:
    machine = MachineRoot(written(root, files))
    found = find_environment(machine, place, {})
    return diagnose(machine, found, {}, project_of(place, found, here))


def of_project(report: EnvReport) -> list[Constraint]:
    """Return the notes on the project's requirements, the gravest first."""
    return [one for one in report.constraints if one.rule.startswith("project-")]


def told(report: EnvReport) -> list[tuple[str, str, str]]:
    return [(one.state, one.needs, one.has) for one in of_project(report)]
