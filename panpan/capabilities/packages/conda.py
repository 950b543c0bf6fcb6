"""Conda, mamba or micromamba, whichever is installed: environments of packages of all languages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from panpan.capabilities.packages.package_tool import QUERIES, REMOVE_S, PackageInput, PackageTool
from panpan.capabilities.packages.pip import undo_with_pip
from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.python_requirements import new_environment, read_requirement_file
from panpan.capabilities.packages.requirements import (
    channel,
    channels_named,
    conda_package,
    is_channel,
    named_packages,
    program,
    python_version,
    require_some,
)
from panpan.capabilities.packages.target import PROGRAMS, Target, find_program
from panpan.core.effects import PathUse
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.python_environments.requirement_files import without_logins
from panpan.python_environments.sources import (
    UNKNOWN_HOST,
    addresses_in,
    conda_source,
    hosts_of,
    hosts_of_channels,
    pip_source,
    text_of,
    usual_conda_hosts,
)
from panpan.system.files.canonical import user_home
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import escape_invisible

if TYPE_CHECKING:
    from panpan.capabilities.packages.target import Installed
    from panpan.capabilities.packages.undo_log import Undo

_KEPT = frozenset({"CONDARC", "CONDA_SSL_VERIFY", "MAMBA_ROOT_PREFIX", "CONDA_OVERRIDE_CUDA", "CONDA_SUBDIR"})
_QUIET = {
    "CONDA_ALWAYS_YES": "true",
    "CONDA_NOTIFY_OUTDATED_CONDA": "false",
    "CONDA_REPORT_ERRORS": "false",
    "CONDA_JSON": "false",
}
_OWN_SETTINGS = (".condarc", "condarc", ".mambarc", "mambarc")
"""Configuration files inside an environment, for it alone ("Configuration" in conda's and mamba's documentation)."""
_MAX_TOLD_CHARS = 500
_KNOWN_ENVIRONMENTS = ".conda/environments.txt"
"""File below the home in which conda lists the environments that it made."""


class CondaInput(PackageInput):
    """Arguments of conda."""

    operation: Literal["create", "install", "uninstall", "list", "show", "freeze", "environments", "run", "rollback"]
    file: str | None = None
    channels: tuple[str, ...] = ()
    python: str | None = None
    command: tuple[str, ...] = ()


class CondaTool(PackageTool[CondaInput]):
    """Works with the user's conda."""

    name = "conda"
    question_template = "Change the environment with conda?"
    input_model = CondaInput
    own_variables = ("CONDA_", "_CONDA_", "_CE_", "MAMBA_", "PIP_")
    kept_variables = _KEPT

    @property
    def max_timeout_s(self) -> float:
        return self.settings.conda_timeout_s

    def plan(self, args: CondaInput, ctx: ToolContext) -> Plan:
        if args.operation == "environments":
            home = str(user_home() / _KNOWN_ENVIRONMENTS)
            return Plan(Target(ctx.paths.root, "conda"), uses=(PathUse(home, "read"),))
        if args.operation in QUERIES:
            return self.query_plan(args, ctx)
        conda = find_program(PROGRAMS["conda"], ctx.environment, ctx.paths)
        if conda is None:
            raise ToolError(
                "neither conda nor mamba nor micromamba is installed here",
                advice="use pip or uv, or ask the user to install one",
            )
        if args.operation == "create":
            return self._created(str(conda), args, ctx)
        target = self.writable_target(args, ctx)
        if target.kind != "conda":
            raise ToolError(f"{target.prefix} is not a conda environment; name one, or use pip or uv for it")
        place = ("--prefix", str(target.prefix))
        match args.operation:
            case "rollback":
                return self.rollback_plan(target, str(conda), ctx.environment)
            case "run":
                live = ("--no-capture-output",) if conda.name == "conda" else ()
                command = (str(conda), "run", *live, *place, *program(args.command))
                return Plan(target, (command,), timeout_s=self.max_timeout_s, runs_code=True)
            case "uninstall":
                command = (str(conda), "remove", "--yes", *place, *named_packages(args.packages))
                return Plan(target, (command,), timeout_s=REMOVE_S)
            case _:
                require_some(args.packages)
                source = conda_source(self.settings, [channel(name) for name in args.channels])
                command = (
                    str(conda),
                    "install",
                    "--yes",
                    *place,
                    *source.arguments,
                    *map(conda_package, args.packages),
                )
                named, own_hosts = _own_settings(target.prefix)
                hosts = tuple(
                    dict.fromkeys((*source.hosts, *hosts_of_channels(channels_named(args.packages)), *own_hosts))
                )
                return Plan(target, (command,), timeout_s=self.max_timeout_s, hosts=hosts, named=named)

    def undo_commands(self, program: str, plan: Plan, undo: "Undo", variables: Mapping[str, str]) -> Plan:
        place = ("--prefix", str(plan.target.prefix))
        commands: list[tuple[str, ...]] = []
        hosts: tuple[str, ...] = ()
        if removed := _of_conda(undo.remove):
            commands.append((program, "remove", "--yes", "--force", *place, *(package.name for package in removed)))
        if restored := _of_conda(undo.restore):
            source = conda_source(self.settings, [one.channel for one in restored if is_channel(one.channel)])
            pins = [package.pin for package in restored]
            commands.append((program, "install", "--yes", "--no-deps", *place, *source.arguments, *pins))
            named, own_hosts = _own_settings(plan.target.prefix)
            hosts = (*source.hosts, *own_hosts)
            plan = replace(plan, named=(*plan.named, *named))
        pip = (str(plan.target.interpreter), "-I", "-m", "pip")
        rest = replace(undo, remove=_of_pip(undo.remove), restore=_of_pip(undo.restore))
        source = pip_source(self.settings, variables, plan.target.prefix)
        of_pip = undo_with_pip((*pip, "uninstall", "--yes"), (*pip, "install"), source, plan, rest)
        limit = self.max_timeout_s if undo.restore else REMOVE_S
        return replace(
            of_pip,
            commands=(*of_pip.commands, *commands),
            hosts=tuple(dict.fromkeys((*hosts, *of_pip.hosts))),
            timeout_s=limit,
        )

    def environment(self, ctx: ToolContext) -> dict[str, str]:
        return super().environment(ctx) | _QUIET

    def own_caches(self, folder: Path) -> Mapping[str, str]:
        return {"CONDA_PKGS_DIRS": str(folder / "conda"), "PIP_CACHE_DIR": str(folder / "pip")}

    def query(self, args: CondaInput, target: Target) -> str:
        return _environments() if args.operation == "environments" else super().query(args, target)

    def _created(self, conda: str, args: CondaInput, ctx: ToolContext) -> Plan:
        if args.environment is None:
            raise ToolError("name the folder of the new environment in `environment`, such as env")
        target = replace(new_environment(args.environment, ctx.paths), kind="conda")
        place = ("--prefix", str(target.prefix))
        source = conda_source(self.settings, [channel(name) for name in args.channels])
        limit = self.max_timeout_s
        if args.file is None:
            python = [f"python={python_version(args.python)}"] if args.python else []
            require_some(args.packages, python)
            wanted = (*python, *map(conda_package, args.packages))
            command = (conda, "create", "--yes", *place, *source.arguments, *wanted)
            hosts = tuple(dict.fromkeys((*source.hosts, *hosts_of_channels(channels_named(args.packages)))))
            return Plan(target, (command,), timeout_s=limit, hosts=hosts)
        if args.packages or args.python or args.channels:
            raise ToolError("a file says what is in the environment; install other packages in a call of their own")
        said = read_requirement_file(args.file, ctx.paths)
        file = str(ctx.paths.locate(args.file).path)
        verb = ("create", "--yes") if conda.endswith("micromamba") else ("env", "create")
        python_hosts = pip_source(self.settings, ctx.environment, target.prefix).hosts if said.has_pip else ()
        return Plan(
            target,
            ((conda, *verb, *place, "--file", file),),
            timeout_s=limit,
            hosts=tuple(dict.fromkeys((*usual_conda_hosts(), *python_hosts, *said.hosts))),
            named=said.named,
            uses=(PathUse(args.file, "read"),),
            digests=said.digests,
        )


def _own_settings(prefix: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return an environment's own settings of conda or mamba, as text for the user, and the hosts in them."""
    named: list[str] = []
    hosts: list[str] = []
    for name in _OWN_SETTINGS:
        text = text_of(prefix / name)
        if text is None:
            named.append(f"what {prefix / name} sets could not be looked at")
            hosts.append(UNKNOWN_HOST)
        elif lines := [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]:
            said = " ".join(lines)
            hosts += hosts_of(addresses_in(said))
            named.append(f"{prefix / name} sets {escape_invisible(without_logins(said))[:_MAX_TOLD_CHARS]}")
    return tuple(named), tuple(hosts)


def _of_conda(packages: Sequence["Installed"]) -> tuple["Installed", ...]:
    return tuple(package for package in packages if package.by == "conda")


def _of_pip(packages: Sequence["Installed"]) -> tuple["Installed", ...]:
    return tuple(package for package in packages if package.by == "pip")


def _environments() -> str:
    """Return the environments that conda has noted and that are still there."""
    try:
        text = read_regular_file(user_home() / _KNOWN_ENVIRONMENTS, max_bytes=1_000_000, follow_symlinks=True).decode(
            errors="replace"
        )
    except ToolError:
        return "conda has noted no environments"
    places = [line.strip() for line in text.splitlines() if line.strip()]
    there = [place for place in dict.fromkeys(places) if (Path(place) / "conda-meta").is_dir()]
    return "\n".join(there) or "conda has noted no environments that are still there"
