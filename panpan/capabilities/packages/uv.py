"""Uv: environments and packages, and the project whose pyproject.toml and uv.lock name them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from panpan.capabilities.packages.package_tool import LOCK_S, QUERIES, REMOVE_S, PackageInput, PackageTool
from panpan.capabilities.packages.pip import undo_with_pip
from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.python_requirements import new_environment, python_requirements, wheels_folder
from panpan.capabilities.packages.requirements import named_packages, program, python_version, require_some
from panpan.capabilities.packages.target import PROGRAMS, Target, find_program, require_own, target_at
from panpan.core.effects import PathUse
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.python_environments.sources import wheels_source
from panpan.python_environments.uv_sources import find_manifest, locked_hosts, own_uv_sources, table_in, uv_source
from panpan.system.files.paths import PathResolver

if TYPE_CHECKING:
    from panpan.capabilities.packages.undo_log import Undo

_KEPT = frozenset(
    {
        "UV_DEFAULT_INDEX",
        "UV_INDEX_URL",
        "UV_INDEX",
        "UV_EXTRA_INDEX_URL",
        "UV_INDEX_STRATEGY",
        "UV_FIND_LINKS",
        "UV_NATIVE_TLS",
        "UV_SYSTEM_CERTS",
        "UV_HTTP_TIMEOUT",
        "UV_INSECURE_HOST",
        "UV_CONSTRAINT",
        "UV_OVERRIDE",
        "UV_CONCURRENT_DOWNLOADS",
        "UV_CONCURRENT_BUILDS",
        "UV_CONCURRENT_INSTALLS",
        "UV_PYTHON_INSTALL_DIR",
        "UV_OFFLINE",
    }
)


class UvInput(PackageInput):
    """Arguments of uv."""

    operation: Literal[
        "install", "uninstall", "list", "show", "freeze", "create", "sync", "lock", "add", "remove", "run", "rollback"
    ]
    file: str | None = None
    wheels: str | None = None
    upgrade: bool = False
    dev: bool = False
    python: str | None = None
    command: tuple[str, ...] = ()


class UvTool(PackageTool[UvInput]):
    """Works with the user's uv."""

    name = "uv"
    question_template = "Change the environment with uv?"
    input_model = UvInput
    own_variables = ("UV_", "VIRTUAL_ENV", "CONDA_PREFIX")
    kept_variables = _KEPT

    @property
    def max_timeout_s(self) -> float:
        return self.settings.uv_timeout_s

    def plan(self, args: UvInput, ctx: ToolContext) -> Plan:
        if args.operation in QUERIES:
            return self.query_plan(args, ctx)
        uv = find_program(PROGRAMS["uv"], ctx.environment, ctx.paths)
        if uv is None:
            raise ToolError("uv is not installed here; use the pip tool")
        match args.operation:
            case "create":
                version = ("--python", python_version(args.python)) if args.python else ()
                target = new_environment(args.environment, ctx.paths)
                command = (str(uv), "venv", *version, "--", str(target.prefix))
                named, _ = own_uv_sources(ctx.paths.cwd)
                return Plan(target, (command,), timeout_s=self.max_timeout_s, named=named)
            case "rollback":
                wheels = wheels_folder(args.wheels, ctx.paths)
                plan = self.rollback_plan(self._changed_last(args, ctx), str(uv), ctx.environment, wheels)
                return replace(plan, cwd=plan.target.prefix.parent)  # in the folder whose settings were checked
            case "uninstall":
                target = self.writable_target(args, ctx)
                command = (str(uv), "pip", "uninstall", "--python", str(target.interpreter), "--")
                return Plan(target, ((*command, *named_packages(args.packages)),), timeout_s=REMOVE_S)
            case "install":
                return self._installed(str(uv), "install", args, ctx)
            case "sync" if args.file is not None:
                return self._installed(str(uv), "sync", args, ctx)
            case _:
                return self._of_project(str(uv), args, ctx)

    def undo_commands(self, program: str, plan: Plan, undo: "Undo", variables: Mapping[str, str]) -> Plan:
        place = ("--python", str(plan.target.interpreter))
        uninstall, install = (program, "pip", "uninstall", *place), (program, "pip", "install", *place)
        source = uv_source(self.settings, variables, plan.target.prefix.parent)
        plan = undo_with_pip(uninstall, install, source, plan, undo)
        return replace(plan, timeout_s=self.max_timeout_s if undo.restore else REMOVE_S)

    def environment(self, ctx: ToolContext) -> dict[str, str]:
        return super().environment(ctx) | {"UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}

    def own_caches(self, folder: Path) -> Mapping[str, str]:
        return {"UV_CACHE_DIR": str(folder / "uv"), "UV_LINK_MODE": "copy"}

    def _changed_last(self, args: UvInput, ctx: ToolContext) -> Target:
        """Return the environment whose last step is taken back; of a project that only locked, there is none."""
        if args.environment is None and (ctx.paths.cwd / "pyproject.toml").is_file():
            target = target_at(ctx.paths.locate(".venv").path, "venv", "the project's")
            if not target.prefix.exists() and self._setup.steps.knows(target.prefix):
                return target
        return self.writable_target(args, ctx)

    def _installed(self, uv: str, how: Literal["install", "sync"], args: UvInput, ctx: ToolContext) -> Plan:
        """Return the plan of installing what is named, or of making the environment what a file says."""
        target = self.writable_target(args, ctx)
        require_some(args.packages, args.file)
        if how == "sync" and args.packages:
            raise ToolError("sync makes the environment what the file says; install packages in a call of their own")
        requirements = python_requirements(args.packages, args.file, ctx.paths)
        wheels = wheels_folder(args.wheels, ctx.paths)
        source = wheels_source(wheels) if wheels else uv_source(self.settings, ctx.environment, ctx.paths.cwd)
        operands = ["--", str(requirements.file)] if how == "sync" else [*requirements.options, *requirements.operands]
        options = [*(["--upgrade"] if args.upgrade else []), *source.arguments, *operands]
        command = (uv, "pip", how, "--python", str(target.interpreter), *options)
        limit = self.max_timeout_s
        plan = Plan(target, (command,), timeout_s=limit, hosts=source.hosts, named=source.named, wheels=wheels)
        return requirements.added_to(plan)

    def _of_project(self, uv: str, args: UvInput, ctx: ToolContext) -> Plan:
        """Return the plan of what works with pyproject.toml: sync, lock, add, remove and run."""
        project = find_manifest("pyproject.toml", lambda folder: (folder / "pyproject.toml").is_file(), ctx.paths)
        top = _workspace_of(project, ctx.paths)
        target = target_at(ctx.paths.locate(str(top / (args.environment or ".venv"))).path, "venv", "the project's")
        env = (("UV_PROJECT_ENVIRONMENT", str(target.prefix)),)
        if args.operation == "run":
            command = (uv, "run", "--no-sync", "--project", str(project), "--", *program(args.command))
            return Plan(target, (command,), env=env, timeout_s=self.max_timeout_s, runs_code=True)
        if args.operation != "lock":
            require_own(target, is_system_wanted=False)
        wheels = wheels_folder(args.wheels, ctx.paths)
        source = wheels_source(wheels) if wheels else uv_source(self.settings, ctx.environment, top)
        options = [*(["--dev"] if args.dev and args.operation in ("add", "remove") else []), *source.arguments]
        hosts = tuple(dict.fromkeys((*source.hosts, *locked_hosts(top))))
        named = tuple(dict.fromkeys((*source.named, *(own_uv_sources(project)[0]))))
        base = Plan(target, env=env, hosts=hosts, named=named, wheels=wheels)
        if args.operation in ("lock", "sync"):
            options += ["--upgrade"] if args.upgrade else []
            return replace(
                base,
                commands=((uv, args.operation, "--project", str(project), *options),),
                timeout_s=LOCK_S if args.operation == "lock" else self.max_timeout_s,
                files=_located(ctx.paths, top / "uv.lock"),
                uses=(PathUse(wheels, "read"),) if wheels else (),
            )
        require_some(args.packages)
        limit = REMOVE_S if args.operation == "remove" else self.max_timeout_s
        requirements = python_requirements(args.packages if args.operation == "add" else (), None, ctx.paths)
        if requirements.editable and (len(args.packages) > 1 or requirements.arguments):
            raise ToolError("add an editable project in a call of its own")
        options += requirements.options
        names = requirements.arguments if args.operation == "add" else named_packages(args.packages)
        plan = replace(
            base,
            commands=((uv, args.operation, "--project", str(project), *options, "--", *names),),
            timeout_s=limit,
            files=_located(ctx.paths, project / "pyproject.toml", top / "uv.lock"),
        )
        return requirements.added_to(plan)


def _located(paths: PathResolver, *files: Path) -> tuple[Path, ...]:
    return tuple(paths.locate(str(file)).path for file in files)


def _workspace_of(project: Path, paths: PathResolver) -> Path:
    """Return the folder with a project's lock file and environment: the top of its workspace, if it is in one."""
    for folder in (project, *project.parents):
        if "workspace" in table_in(folder / "pyproject.toml", "tool", "uv"):
            return folder
        if folder == paths.root:
            break
    return project
