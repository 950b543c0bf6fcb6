"""EnvDoctor: in which layer a Python environment is broken, and what to do.

The rule: nothing of the environment is run, since it may belong to a project that nobody trusts; all is read.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.environment.binary_layer import BinaryLayer, binary_findings, inspect_binaries
from panpan.capabilities.environment.binary_rules import binary_constraints
from panpan.capabilities.environment.driver_layer import (
    DriverLayer,
    HardwareLayer,
    driver_findings,
    hardware_findings,
    inspect_driver,
    inspect_hardware,
)
from panpan.capabilities.environment.elf_file import LibrarySearch
from panpan.capabilities.environment.layers import Constraint, EnvReport, Finding, State, in_order, make_constraint
from panpan.capabilities.environment.project_rules import (
    create_command,
    missing_step,
    project_constraints,
    project_findings,
)
from panpan.capabilities.environment.python_layer import (
    PythonLayer,
    inspect_python,
    interpreter_constraints,
    python_constraints,
    python_findings,
)
from panpan.capabilities.environment.toolkit_layer import (
    ToolkitLayer,
    gpu_constraints,
    inspect_toolkit,
    toolkit_findings,
)
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.python_environments.find_environment import Environment
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.project_requirements import ProjectRequirements, project_requirements
from panpan.system.files.paths import PathResolver
from panpan.system.text.terminal_text import printable
from panpan.types.content import SummaryDisplay
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, ToolYield

if TYPE_CHECKING:
    from panpan.capabilities.environment.layers import EnvReport, Layer


class EnvDoctorInput(BaseModel):
    """Arguments of EnvDoctor."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: str = Field(default=".", min_length=1, description="Environment, or project folder")
    layer: Literal["python", "binary", "toolkit", "driver", "hardware"] | None = None


class EnvDoctorTool(Tool[EnvDoctorInput]):
    """Look at the layers of an environment."""

    name = "EnvDoctor"
    input_model = EnvDoctorInput
    question_template = "Check the environment {title}?"
    only_reads: ClassVar[bool] = True

    def __init__(self, withholds: Callable[[Path, Path], bool] = lambda *_: False) -> None:
        self._withholds = withholds

    def title(self, args: EnvDoctorInput) -> str:
        return printable(args.environment)

    async def effects(self, args: EnvDoctorInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.environment,))

    async def run(self, args: EnvDoctorInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        place = ctx.paths.resolve(args.environment, access="read")
        if not place.is_dir():
            raise ToolError(f"{args.environment} is not a folder; name an environment or a project folder")
        look_at = partial(look, str(place), ctx.paths, self._withholds, ctx.own_environment)
        report = await to_thread.run_sync(look_at, abandon_on_cancel=True)
        from panpan.capabilities.environment.layers import LAYERS  # not needed at the start

        broken = report.first_broken
        summary = f"broken: {LAYERS[broken.layer]}" if broken else "no layer is broken"
        yield Output("\n".join(report_lines(report, args.layer)), SummaryDisplay(text=summary))


def look(
    place: str, paths: PathResolver, withholds: Callable[[Path, Path], bool], variables: Mapping[str, str]
) -> "EnvReport":
    """Return the report on a folder, as far as it may be read; blocks.

    Args:
        place: The environment, or the folder of a project.
        paths: Says what may be read without asking the user.
        withholds: Says of a canonical path whether a rule withholds it.
        variables: Environment variables, which may name the active environment.

    Raises:
        ToolError: The environment has to be named, so that the user is asked.
    """
    from panpan.python_environments.find_environment import find_environment, project_of
    from panpan.python_environments.machine_root import machine_for, readable_folder

    root = machine_for(paths, withholds)
    environment = find_environment(root, place, variables)
    if environment is not None:
        _require_readable(environment.path, environment.why, paths)
    project = readable_folder(project_of(place, environment, str(paths.cwd)), paths)
    return diagnose(root, environment, variables, project)


def _require_readable(path: str, why: str, paths: PathResolver) -> None:
    """Refuse an environment that another one than the path of the call led to, outside of what may be read.

    Raises:
        ToolError: It has to be named, so that the user is asked.
    """
    try:
        paths.resolve(path, access="read")
    except ToolError as exc:
        raise ToolError(f"{printable(path)} is outside ({why})", advice="to check it, name it as environment") from exc


def report_lines(report: "EnvReport", layer: "Layer | None" = None) -> list[str]:
    """Return a report as text, or its part about one layer."""
    from panpan.capabilities.environment.layers import (
        constraint_rows,
        detail_lines,
        heading,
        layer_rows,
        unread_lines,
        verdict_lines,
    )

    lines = [heading(report), *verdict_lines(report)]
    if layer:
        return [*lines, "", *(detail_lines(report, layer) or ["nothing was found in this layer"])]
    layers = [f"{row.state}: {row.text}" for row in layer_rows(report)]
    constraints = [f"{row.state}: {row.text}" for row in constraint_rows(report)]
    return [*lines, "", *layers, "", *constraints, *unread_lines(report)]


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
        """Return the findings of all layers, for the report."""
        return (
            *python_findings(self.python),
            *binary_findings(self.binaries),
            *toolkit_findings(self.toolkit, self.binaries),
            *driver_findings(self.driver),
            *hardware_findings(self.hardware),
        )


def inspect_layers(root: MachineRoot, environment: Environment, variables: Mapping[str, str]) -> Facts:
    """Look at all layers; nothing of the environment or the machine is run.

    `variables`: environment variables; LD_LIBRARY_PATH counts.
    """
    python = inspect_python(root, environment)
    prefix, library_path = environment.path.rstrip("/"), variables.get("LD_LIBRARY_PATH", "")
    binaries = inspect_binaries(root, prefix, python, library_path)
    toolkit = inspect_toolkit(root, python, binaries)
    driver = inspect_driver(root, binaries.search)
    return Facts(root, environment, python, binaries, toolkit, driver, inspect_hardware(root, environment.path))


MAX_UNREAD = 20
MAX_OF_A_KIND = 20


def diagnose(
    root: MachineRoot, environment: Environment | None, variables: Mapping[str, str], project: str = ""
) -> EnvReport:
    """Return the report on an environment on a machine; nothing of either is run.

    `environment`: as `find_environment` finds it; None: there is none, and the report is about the machine.
    `variables`: environment variables; LD_LIBRARY_PATH counts. `project`: the folder whose manifests say what the
    environment is for; empty: that is not looked at.
    """
    requirements = project_requirements(root, project) if project else ProjectRequirements("")
    if environment is None:
        return _without_environment(root, requirements)
    facts = inspect_layers(root, environment, variables)
    constraints = chain(
        interpreter_constraints(facts),
        project_constraints(facts, requirements),
        python_constraints(facts),
        binary_constraints(facts),
        gpu_constraints(facts),
    )
    return EnvReport(
        environment=environment.path,
        project=project if requirements.says_something else "",
        chosen=environment.why,
        findings=(*project_findings(requirements), *facts.findings()),
        constraints=in_order(_first_of_each_kind(constraints)),
        unread=_unread(root),
    )


def _first_of_each_kind(constraints: Iterable[Constraint]) -> list[Constraint]:
    """Return the first constraints of each kind, and the number of the others."""
    counts: Counter[tuple[str, State]] = Counter()
    kept = []
    for one in constraints:
        counts[one.rule, one.state] += 1
        if counts[one.rule, one.state] <= MAX_OF_A_KIND:
            kept.append(one)
    more = ((kind, count - MAX_OF_A_KIND) for kind, count in counts.items() if count > MAX_OF_A_KIND)
    return [
        *kept,
        *(make_constraint(rule, state, f"{count:,} more of this kind", "likewise") for (rule, state), count in more),
    ]


def _without_environment(root: MachineRoot, requirements: ProjectRequirements) -> EnvReport:
    driver, hardware = inspect_driver(root, LibrarySearch(root, {})), inspect_hardware(root)
    needs, has = "an environment to look at", f"there is none in {requirements.folder or 'this folder'}"
    command = create_command(root, requirements)
    none = make_constraint("environment", "broken", needs, has, command=command, first=missing_step(root, command))
    return EnvReport(
        environment="",
        project=requirements.folder,
        chosen="",
        findings=(*project_findings(requirements), *driver_findings(driver), *hardware_findings(hardware)),
        constraints=(none,),
        unread=_unread(root),
    )


def _unread(root: MachineRoot) -> tuple[str, ...]:
    return tuple(f"{path}: {reason}" for path, reason in list(root.unread.items())[:MAX_UNREAD])
