"""EnvDoctor for clients of `panpan mcp serve`."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.environment.env_doctor import look, report_lines
from panpan.capabilities.environment.layers import Layer
from panpan.cli_kit.serving import ServedPlace, ServedTool
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.errors import ToolError
from panpan.permissions.folder_gate import gate_of, workspace_paths
from panpan.python_environments.find_environment import ENVIRONMENT_FOLDERS
from panpan.system.files.canonical import canonical_path
from panpan.system.text.terminal_text import printable


class ServedDoctorInput(BaseModel):
    """Arguments of `env_doctor`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str = Field(default=".", description="Environment or project, absolute or relative to the first folder")
    layer: Layer | None = Field(default=None, description="The only layer to tell all about")


def _doctor(args: ServedDoctorInput, place: ServedPlace, keep_going: Callable[[], bool]) -> str:
    folder = place.folder(args.folder)
    for part in _parts_of(folder):
        if not place.holds(canonical_path(part)):
            raise ToolError(f"{printable(str(part))} leads out of the folders that are served")
    locations = Locations.find(folder, place.env)
    loaded = load_settings(folder, place.env, place.overrides, locations)
    paths = workspace_paths(folder, loaded, locations)
    variables = {name: value for name, value in place.env.items() if name == "LD_LIBRARY_PATH"}
    try:
        report = look(str(folder), paths, gate_of(loaded, paths).withholds, variables)
    except ToolError as error:  # its advice is about another tool
        raise ToolError(error.problem) from error
    return "\n".join(report_lines(report, args.layer))


def _parts_of(folder: Path) -> Iterator[Path]:
    """Yield what an environment in a folder, or that is the folder, is read from, as far as it may be a link."""
    for root in (folder, *(folder / name for name in ENVIRONMENT_FOLDERS)):
        yield from (root, root / "conda-meta", *root.glob("lib*"), *root.glob("lib*/python*"))
        for packages in root.glob("lib*/python*/site-packages"):
            yield packages
            yield from _links_in(packages)
            for facts in packages.glob("*.*-info"):
                yield from _links_in(facts)
        yield from _links_in(root / "conda-meta")


def _links_in(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_symlink())


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
