"""Pixi: the environments of a project whose pixi.toml or pyproject.toml, and pixi.lock, name their packages."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from panpan.capabilities.packages.package_tool import LOCK_S, QUERIES, REMOVE_S, PackageInput, PackageTool
from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.requirements import (
    channel,
    conda_package,
    feature_name,
    named_packages,
    platform,
    program,
    python_package,
    require_some,
)
from panpan.capabilities.packages.target import PROGRAMS, Target, find_program, target_at
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.python_environments.sources import (
    CONDA_HOST,
    PYPI_HOSTS,
    UNKNOWN_HOST,
    addresses_in,
    hosts_of,
    pixi_source,
    text_of,
)
from panpan.python_environments.uv_sources import find_manifest, table_in
from panpan.system.files.paths import PathResolver

if TYPE_CHECKING:
    from panpan.capabilities.packages.undo_log import Undo

_MANIFESTS = ("pixi.toml", "pyproject.toml")
_OWN_SETTINGS = ".pixi/config.toml"
"""A project's own configuration of pixi, such as mirrors."""
_MAX_BYTES = 20_000_000
_MOST_NAMED = 20
_KEPT = frozenset({"PIXI_HOME"})


class PixiInput(PackageInput):
    """Arguments of pixi."""

    operation: Literal[
        "init", "add", "remove", "install", "lock", "list", "show", "freeze", "channel", "platform", "environment",
        "run", "rollback",
    ]  # fmt: skip
    feature: str | None = None
    pypi: bool = False
    command: tuple[str, ...] = ()


class PixiTool(PackageTool[PixiInput]):
    """Works with the user's pixi."""

    name = "pixi"
    question_template = "Change the environment with pixi?"
    input_model = PixiInput
    own_variables = ("PIXI_", "CONDA_", "RATTLER_", "UV_", "PIP_")
    kept_variables = _KEPT

    @property
    def max_timeout_s(self) -> float:
        return self.settings.pixi_timeout_s

    def plan(self, args: PixiInput, ctx: ToolContext) -> Plan:
        if args.operation == "init":
            return self._made(args, ctx)
        project = find_manifest("pixi.toml, and no pyproject.toml with a table tool.pixi,", _is_project, ctx.paths)
        name = feature_name(args.environment) if args.environment else "default"
        prefix = ctx.paths.locate(str(project / ".pixi" / "envs" / name)).path
        target = target_at(prefix, "conda", f"the environment {name} of {project}")
        if args.operation in QUERIES:
            return Plan(target)
        pixi = _pixi(ctx)
        if args.operation == "run":
            command = (pixi, "run", "--frozen", "--no-install", "--environment", name, *program(args.command))
            return Plan(target, (command,), cwd=project, timeout_s=self.max_timeout_s, runs_code=True)
        if args.operation == "rollback":
            return replace(self.rollback_plan(target, pixi, ctx.environment), cwd=project)
        words = _words(args, ctx.paths)
        hosts, named = _sources_of(project, args)
        limit = {"remove": REMOVE_S, "lock": LOCK_S}.get(args.operation, self.max_timeout_s)
        return Plan(
            target,
            ((pixi, *words),),
            cwd=project,
            timeout_s=limit,
            hosts=tuple(dict.fromkeys((*hosts, *pixi_source(self.settings).hosts))),
            named=named,
            files=_files(project, ctx.paths),
        )

    def undo_commands(self, program: str, plan: Plan, undo: "Undo", variables: Mapping[str, str]) -> Plan:
        name = plan.target.prefix.name
        command = (program, "install", "--frozen", "--environment", name)
        hosts, named = _sources_of(plan.target.prefix.parents[2], None)
        return replace(
            plan, commands=(command,), hosts=hosts, named=(*plan.named, *named), timeout_s=self.max_timeout_s
        )

    def environment(self, ctx: ToolContext) -> dict[str, str]:
        return super().environment(ctx) | {"PIXI_NO_PROGRESS": "true", "PIXI_COLOR": "never"}

    def own_caches(self, folder: Path) -> Mapping[str, str]:
        return {"PIXI_CACHE_DIR": str(folder / "pixi"), "RATTLER_CACHE_DIR": str(folder / "pixi")}

    def _made(self, args: PixiInput, ctx: ToolContext) -> Plan:
        """Return the plan of making a manifest where there is none."""
        project = ctx.paths.cwd
        if (project / "pixi.toml").exists():
            raise ToolError(f"{project / 'pixi.toml'} exists already; add to it")
        source = pixi_source(self.settings)
        target = Target(project / ".pixi" / "envs" / "default", "conda")
        command = (_pixi(ctx), "init", *source.arguments)
        files = _files(project, ctx.paths)
        return Plan(target, (command,), cwd=project, timeout_s=self.max_timeout_s, files=files)


def _pixi(ctx: ToolContext) -> str:
    found = find_program(PROGRAMS["pixi"], ctx.environment, ctx.paths)
    if found is None:
        raise ToolError("pixi is not installed here", advice="use uv or pip, or ask the user to install it")
    return str(found)


def _words(args: PixiInput, paths: PathResolver) -> list[str]:
    """Return the arguments of an operation that works on the manifest.

    Raises:
        ToolError: They are not what the operation needs.
    """
    feature = ["--feature", feature_name(args.feature)] if args.feature else []
    match args.operation:
        case "add":
            require_some(args.packages)
            if args.pypi:
                wanted = [python_package(text, paths.absolute) for text in args.packages]
                if any(one.path or one.address for one in wanted):
                    raise ToolError("with pypi, name packages of an index; write others into the manifest")
                return ["add", "--pypi", *feature, "--", *(one.argument for one in wanted)]
            named = [conda_package(text, may_name_channel=False) for text in args.packages]
            return ["add", *feature, "--", *named]
        case "remove":
            return ["remove", *(["--pypi"] if args.pypi else []), *feature, "--", *named_packages(args.packages)]
        case "install" | "lock":
            return [args.operation, *(["--environment", args.environment] if args.environment else [])][: _most(args)]
        case "channel":
            require_some(args.packages)
            return ["workspace", "channel", "add", *feature, "--", *map(channel, args.packages)]
        case "platform":
            require_some(args.packages)
            return ["workspace", "platform", "add", *feature, "--", *map(platform, args.packages)]
        case "environment":
            if not args.environment or not args.feature:
                raise ToolError("name the new environment in `environment`, and the feature that it has in `feature`")
            return ["workspace", "environment", "add", *feature, "--", args.environment]
        case _:
            raise ToolError(f"{args.operation} does not work on a manifest")


def _most(args: PixiInput) -> int:
    return 1 if args.operation == "lock" else 3  # one lock file covers all environments


def _files(project: Path, paths: PathResolver) -> tuple[Path, ...]:
    manifest = (
        "pixi.toml" if (project / "pixi.toml").exists() or not (project / "pyproject.toml").exists() else _MANIFESTS[1]
    )
    return tuple(paths.locate(str(project / name)).path for name in (manifest, "pixi.lock"))


def _sources_of(project: Path, args: PixiInput | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the hosts that the manifest names or implies, and its addresses as they have to be told."""
    found = {name: text_of(project / name, _MAX_BYTES) for name in (*_MANIFESTS, _OWN_SETTINGS, "pixi.lock")}
    unseen = [f"what {project / name} says could not be looked at" for name, text in found.items() if text is None]
    locked = hosts_of(addresses_in(found.pop("pixi.lock") or ""))
    texts = [text or "" for text in found.values()]
    addresses = list(dict.fromkeys(address for text in texts for address in addresses_in(text)))
    uses_pypi = (args is not None and args.pypi) or any("pypi-dependencies" in text for text in texts)
    hosts = (CONDA_HOST, *(PYPI_HOSTS if uses_pypi else ()), *hosts_of(addresses), *locked)
    more = [f"and {len(addresses) - _MOST_NAMED} more addresses"] if len(addresses) > _MOST_NAMED else []
    named = (*unseen, *addresses[:_MOST_NAMED], *more)
    return tuple(dict.fromkeys((*hosts, *([UNKNOWN_HOST] if unseen else [])))), named


def _is_project(folder: Path) -> bool:
    return (folder / "pixi.toml").is_file() or bool(table_in(folder / "pyproject.toml", "tool", "pixi"))
