"""EnvDoctor for clients of `panpan mcp serve`."""

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.environment.env_doctor import look, report_lines
from panpan.capabilities.environment.layers import Layer
from panpan.cli_kit.serving import ServedPlace, ServedTool
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.errors import ToolError
from panpan.permissions.folder_gate import gate_of, workspace_paths


class ServedDoctorInput(BaseModel):
    """Arguments of `env_doctor`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str = Field(default=".", description="Environment or project, absolute or relative to the first folder")
    layer: Layer | None = Field(default=None, description="The only layer to tell all about")


def _doctor(args: ServedDoctorInput, place: ServedPlace) -> str:
    folder = place.folder(args.folder)
    locations = Locations.find(folder, place.env)
    loaded = load_settings(folder, place.env, place.overrides, locations)
    paths = workspace_paths(folder, loaded, locations)
    variables = {name: value for name, value in place.env.items() if name == "LD_LIBRARY_PATH"}
    try:
        report = look(str(folder), paths, gate_of(loaded, paths).withholds, variables)
    except ToolError as error:  # its advice is about another tool
        raise ToolError(error.problem) from error
    return "\n".join(report_lines(report, args.layer))


TOOLS = (
    ServedTool(
        "env_doctor",
        "Check a Python environment",
        "Say in which layer the Python environment of a folder is broken, and what to do: packages, binaries, CUDA, "
        "driver, hardware. Only reads files.",
        ServedDoctorInput,
        _doctor,
    ),
)
