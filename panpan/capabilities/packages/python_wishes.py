"""What pip and uv are asked to install, checked, and with all that a question has to name of it."""

from collections.abc import Sequence
from dataclasses import replace

from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.requirement_file import RequirementFile, read_requirement_file
from panpan.capabilities.packages.sources import hosts_of
from panpan.capabilities.packages.target import Target
from panpan.capabilities.packages.wanted import environment_name, python_package
from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PythonWishes:
    """What is to be installed."""

    arguments: tuple[str, ...]
    """Requirements, as they are passed on."""
    file: str | None
    """A file of requirements; absolute."""
    editable: tuple[str, ...]
    """Folders that are installed as they lie there; absolute, maybe with extras."""
    named: tuple[str, ...]
    hosts: tuple[str, ...]
    """Hosts beside those of an index."""
    uses: tuple[PathUse, ...]
    digests: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """What pip and uv are told before the operands."""
        file = ["--requirement", self.file] if self.file else []
        return [*file, *(word for folder in self.editable for word in ("--editable", folder))]

    @property
    def operands(self) -> list[str]:
        """The requirements, behind what ends the options."""
        return ["--", *self.arguments] if self.arguments else []

    def added_to(self, plan: Plan) -> Plan:
        """Return a plan with what is known of these."""
        return replace(
            plan,
            hosts=tuple(dict.fromkeys((*plan.hosts, *self.hosts))),
            named=(*plan.named, *self.named),
            uses=(*plan.uses, *self.uses, *([PathUse(plan.wheels, "read")] if plan.wheels else [])),
            digests=self.digests,
        )


def python_wishes(packages: Sequence[str], file: str | None, paths: PathResolver) -> PythonWishes:
    """Return what is to be installed.

    Args:
        packages: Requirements, as the model wrote them.
        file: A file of requirements.
        paths: Knows the workspace.

    Raises:
        ToolError: Something of it cannot be installed so.
    """
    wanted = [python_package(text, paths.absolute) for text in packages]
    said = RequirementFile() if file is None else read_requirement_file(file, paths)
    reads = [*([paths.absolute(file)] if file else []), *(one.path for one in wanted if one.path), *said.reads]
    uses = [PathUse(path, "read") for path in reads]
    uses += [PathUse(one.path, "write") for one in wanted if one.is_editable]  # a build leaves its metadata there
    return PythonWishes(
        arguments=tuple(one.argument for one in wanted if not one.is_editable),
        file=None if file is None else str(paths.locate(file).path),
        editable=tuple(one.argument for one in wanted if one.is_editable),
        named=(*(one.named for one in wanted if one.named), *said.named),
        hosts=(*hosts_of([one.address for one in wanted]), *said.hosts),
        uses=tuple(uses),
        digests=said.digests,
    )


def wheels_folder(text: str | None, paths: PathResolver) -> str | None:
    """Return the folder of wheels that is named, absolute.

    Raises:
        ToolError: It is no folder.
    """
    if text is None:
        return None
    place = paths.locate(text).path
    if not place.is_dir():
        raise ToolError(f"{text} is no folder; name one with wheels")
    return str(place)


def new_environment(text: str | None, paths: PathResolver) -> Target:
    """Return the environment that is to be made: `.venv` where none is named.

    Raises:
        ToolError: Its name is none, or there is something already.
    """
    text = text or ".venv"
    prefix = paths.locate(text).path
    environment_name(prefix.name)
    if prefix.exists() and (not prefix.is_dir() or any(prefix.iterdir())):
        raise ToolError(f"{prefix} exists already; use it as it is, or choose another name")
    return Target(prefix, "venv", why="it is to be made")
