"""Pip: install, take away and look at packages of one environment."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from panpan.capabilities.packages.package_tool import QUERIES, REMOVE_S, PackageInput, PackageTool
from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.python_requirements import new_environment, python_requirements, wheels_folder
from panpan.capabilities.packages.requirements import named_packages, python_version, require_some
from panpan.capabilities.packages.target import Target, find_program
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.python_environments.sources import Source, hosts_of, pip_source, wheels_source

if TYPE_CHECKING:
    from panpan.capabilities.packages.undo_log import Undo

_ISOLATED = "-I"
"""Python's isolated mode keeps the working directory off the path, so that a project's own pip.py does not run."""
_KEPT = frozenset(
    {
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_TRUSTED_HOST",
        "PIP_CERT",
        "PIP_CONFIG_FILE",
        "PIP_CLIENT_CERT",
        "PIP_PROXY",
        "PIP_RETRIES",
        "PIP_TIMEOUT",
        "PIP_DEFAULT_TIMEOUT",
        "PIP_FIND_LINKS",
        "PIP_NO_INDEX",
        "PIP_CONSTRAINT",
        "PIP_PREFER_BINARY",
        "PIP_NO_BINARY",
        "PIP_ONLY_BINARY",
        "PIP_NO_INPUT",
    }
)


class PipInput(PackageInput):
    """Arguments of pip."""

    operation: Literal["install", "uninstall", "list", "show", "freeze", "create", "rollback"]
    file: str | None = None
    wheels: str | None = None
    upgrade: bool = False
    python: str | None = None
    system: bool = False


class PipTool(PackageTool[PipInput]):
    """Works with the pip of an environment."""

    name = "pip"
    question_template = "Change the environment with pip?"
    input_model = PipInput
    own_variables = ("PIP_",)
    kept_variables = _KEPT

    @property
    def max_timeout_s(self) -> float:
        return self.settings.pip_timeout_s

    def plan(self, args: PipInput, ctx: ToolContext) -> Plan:
        if args.operation in QUERIES:
            return self.query_plan(args, ctx)
        if args.operation == "create":
            return self._created(args, ctx)
        target = self.writable_target(args, ctx)
        if args.operation == "install":
            return self._installed(target, args, ctx)
        pip = _pip(target)
        if args.operation == "rollback":
            wheels = wheels_folder(args.wheels, ctx.paths)
            return self.rollback_plan(target, str(target.interpreter), ctx.environment, wheels)
        command = (*pip, "uninstall", "--yes", "--", *named_packages(args.packages))
        return Plan(target, (command,), timeout_s=REMOVE_S)

    def undo_commands(self, program: str, plan: Plan, undo: "Undo", variables: Mapping[str, str]) -> Plan:
        pip = (program, _ISOLATED, "-m", "pip")
        source = pip_source(self.settings, variables, plan.target.prefix)
        plan = undo_with_pip((*pip, "uninstall", "--yes"), (*pip, "install"), source, plan, undo)
        return replace(plan, timeout_s=self.max_timeout_s if undo.restore else REMOVE_S)

    def environment(self, ctx: ToolContext) -> dict[str, str]:
        quiet = {"PIP_PROGRESS_BAR": "off", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
        return super().environment(ctx) | quiet

    def own_caches(self, folder: Path) -> Mapping[str, str]:
        return {"PIP_CACHE_DIR": str(folder / "pip")}

    def _created(self, args: PipInput, ctx: ToolContext) -> Plan:
        names = (f"python{python_version(args.python)}",) if args.python else ("python3", "python")
        target = new_environment(args.environment, ctx.paths)
        python = find_program(names, ctx.environment, ctx.paths)
        if python is None:
            raise ToolError(f"{names[0]} is not installed here; name another version, or create it with uv or conda")
        command = (str(python), _ISOLATED, "-m", "venv", str(target.prefix))
        return Plan(target, (command,), timeout_s=self.max_timeout_s)

    def _installed(self, target: Target, args: PipInput, ctx: ToolContext) -> Plan:
        require_some(args.packages, args.file)
        requirements = python_requirements(args.packages, args.file, ctx.paths)
        wheels = wheels_folder(args.wheels, ctx.paths)
        source = wheels_source(wheels) if wheels else pip_source(self.settings, ctx.environment, target.prefix)
        options = [*(["--upgrade"] if args.upgrade else []), *source.arguments, *requirements.options]
        install = (*_called(target), "install", *options, *requirements.operands)
        commands = (install,) if _has_pip(target) else (_bringing_pip(target), install)
        limit = self.max_timeout_s
        plan = Plan(target, commands, timeout_s=limit, hosts=source.hosts, named=source.named, wheels=wheels)
        return requirements.added_to(plan)


def undo_with_pip(uninstall: Sequence[str], install: Sequence[str], source: Source, plan: Plan, undo: "Undo") -> Plan:
    """Return the plan with the commands that take a step back: what was added goes, the rest comes again.

    `source`: where the rest comes from where there is no folder of wheels.
    """
    commands: list[tuple[str, ...]] = []
    if undo.remove:
        commands.append((*uninstall, "--", *(package.name for package in undo.remove)))
    if undo.restore:
        source = wheels_source(plan.wheels) if plan.wheels else source
        editable = [word for one in undo.restore if one.is_editable for word in ("--editable", one.path)]
        pins = [one.pin for one in undo.restore if not one.is_editable]
        commands.append((*install, "--no-deps", *source.arguments, *editable, *(["--", *pins] if pins else [])))
        hosts = (*source.hosts, *hosts_of([one.address for one in undo.restore]))
        plan = replace(plan, hosts=tuple(dict.fromkeys(hosts)), named=(*plan.named, *source.named))
    return replace(plan, commands=tuple(commands))


def _pip(target: Target) -> tuple[str, ...]:
    """Return the command of an environment's pip. Raise ToolError if it has none."""
    if not _has_pip(target):
        raise ToolError(f"{target.prefix} has no pip; use the uv tool for it, or create an environment that has one")
    return _called(target)


def _called(target: Target) -> tuple[str, ...]:
    return (str(target.interpreter), _ISOLATED, "-m", "pip")


def _has_pip(target: Target) -> bool:
    libraries = list((target.prefix / "lib").glob("python3*/*-packages/pip/__init__.py"))
    return bool(libraries) and os.access(target.interpreter, os.X_OK)


def _bringing_pip(target: Target) -> tuple[str, ...]:
    """Return the command that installs Python's bundled pip into an environment; uv makes them without pip.

    Raises:
        ToolError: The environment has no Python, either.
    """
    if not os.access(target.interpreter, os.X_OK):
        raise ToolError(f"{target.prefix} has no Python to install with; create the environment again")
    return (str(target.interpreter), _ISOLATED, "-m", "ensurepip", "--default-pip")
