"""EnvDoctor: in which layer a Python environment is broken, and what to do.

The rule: nothing of the environment is run, since it may belong to a project that nobody trusts; all is read.
"""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.text.terminal_text import printable
from panpan.types.display import SummaryDisplay
from panpan.types.events import Output, ToolYield

if TYPE_CHECKING:
    from panpan.capabilities.environment.layers import EnvReport


class EnvDoctorInput(BaseModel):
    """What the model may ask of EnvDoctor."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: str = Field(default=".", min_length=1, description="Environment, or project folder")
    layer: Literal["python", "binary", "toolkit", "driver", "hardware"] | None = None


class EnvDoctorTool(Tool[EnvDoctorInput]):
    """Look at the layers of an environment."""

    name = "EnvDoctor"
    input_model = EnvDoctorInput
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
            raise ToolError(f"{args.environment} is no folder; name an environment or the folder of a project")
        report = await to_thread.run_sync(partial(_look, str(place), ctx, self._withholds), abandon_on_cancel=True)
        from panpan.capabilities.environment.layers import LAYERS  # a start needs none of it

        broken = report.first_broken
        summary = f"broken: {LAYERS[broken.layer]}" if broken else "no layer is broken"
        yield Output("\n".join(_text(report, args)), SummaryDisplay(text=summary))


def _look(place: str, ctx: ToolContext, withholds: Callable[[Path, Path], bool]) -> "EnvReport":
    from panpan.capabilities.environment.examine import examine
    from panpan.python_environments.find_environment import find_environment, project_of
    from panpan.python_environments.machine_root import machine_for, readable_folder

    root = machine_for(ctx.paths, withholds)
    environment = find_environment(root, place, ctx.own_environment)
    if environment is not None:
        _require_readable(environment.path, environment.why, ctx)
    project = readable_folder(project_of(place, environment, str(ctx.paths.cwd)), ctx.paths)
    return examine(root, environment, ctx.own_environment, project)


def _require_readable(path: str, why: str, ctx: ToolContext) -> None:
    """Refuse an environment that another one than the path of the call led to, outside of what may be read.

    Raises:
        ToolError: It has to be named, so that the user is asked.
    """
    try:
        ctx.paths.resolve(path, access="read")
    except ToolError as exc:
        raise ToolError(f"{printable(path)} lies outside ({why}); name it as environment to have it looked at") from exc


def _text(report: "EnvReport", args: EnvDoctorInput) -> list[str]:
    from panpan.capabilities.environment.layers import (
        constraint_rows,
        detail_lines,
        heading,
        layer_rows,
        unread_lines,
        verdict_lines,
    )

    lines = [heading(report), *verdict_lines(report)]
    if args.layer:
        return [*lines, "", *(detail_lines(report, args.layer) or ["nothing was found in this layer"])]
    layers = [f"{row.state}: {row.text}" for row in layer_rows(report)]
    constraints = [f"{row.state}: {row.text}" for row in constraint_rows(report)]
    return [*lines, "", *layers, "", *constraints, *unread_lines(report)]
