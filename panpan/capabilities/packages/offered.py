"""Which of the tools for packages are of use in a project; a tool that cannot work costs tokens in every request."""

from collections.abc import Iterator, Mapping

from panpan.capabilities.environment.find_environment import find_environment
from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.capabilities.packages import conda, pixi, uv
from panpan.capabilities.packages.pip import PipTool
from panpan.capabilities.packages.target import find_program
from panpan.system.files.paths import PathResolver

_OF_PYTHON = ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "environment.yml")


def tools_without_use(paths: PathResolver, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of those without their program; pip where there is neither an environment nor a Python project.

    Args:
        paths: Knows the workspace.
        variables: Environment variables.
    """
    is_of_python = any((paths.root / name).is_file() for name in _OF_PYTHON)
    if not is_of_python and find_environment(MachineRoot(), str(paths.root), variables) is None:
        yield PipTool.name
    for tool, programs in (
        (uv.UvTool, uv.PROGRAMS),
        (conda.CondaTool, conda.PROGRAMS),
        (pixi.PixiTool, pixi.PROGRAMS),
    ):
        if find_program(programs, variables, paths) is None:
            yield tool.name
