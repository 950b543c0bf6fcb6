"""Base of the four tools for packages: plan, ask, freeze, run, freeze again, tell the difference.

The rule: what is looked at is read from the disk and runs nothing. What changes an environment is planned whole first,
the plan is what the user is asked about, and what runs is that plan.
"""

import shlex
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from anyio import fail_after, to_thread
from pydantic import BaseModel, ConfigDict

from panpan.capabilities.packages.plan import Plan, drop_variables
from panpan.capabilities.packages.requirements import names_asked, package_name, require_some
from panpan.capabilities.packages.target import (
    PackageConfig,
    Target,
    find_target,
    read_installed,
    require_own,
    shown_package,
)
from panpan.config.settings import PackageSettings
from panpan.core.effects import Command, Effects, PathUse
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.types.events import Output, ToolYield
from panpan.types.permission import Box

if TYPE_CHECKING:
    from panpan.capabilities.packages.undo_log import Undo


REMOVE_S = 120.0
LOCK_S = 300.0
LIST_S = 30.0
QUERIES = frozenset({"list", "show", "freeze", "environments"})
_MOST_PLANS = 100


class PackageInput(BaseModel):
    """Arguments that all of them share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation: str
    packages: tuple[str, ...] = ()
    environment: str | None = None


PackageInputT = TypeVar("PackageInputT", bound=PackageInput)


class PackageTool(Tool[PackageInputT]):
    """Works on one environment."""

    timeout_s: ClassVar[float | None] = None
    own_variables: ClassVar[tuple[str, ...]]
    """Prefixes of the package manager's environment variables, which could lead it to another place."""
    kept_variables: ClassVar[frozenset[str]] = frozenset()
    """Variables with such a prefix that it gets nevertheless."""

    def __init__(self, setup: PackageConfig | None = None) -> None:
        self._setup = setup or PackageConfig()
        self._plans: dict[tuple[str, PackageInputT], Plan] = {}
        """Plans that were shown in questions, by the id and arguments of the call."""

    @property
    @abstractmethod
    def max_timeout_s(self) -> float:
        """Seconds that a call may take at most."""

    @property
    def settings(self) -> PackageSettings:
        """The user's, for packages."""
        return self._setup.settings

    def may_run_in_parallel(self, args: PackageInputT) -> bool:
        return args.operation in QUERIES

    def title(self, args: PackageInputT) -> str:
        command: Sequence[str] = getattr(args, "command", ())
        words = [args.operation, *(command or args.packages), getattr(args, "file", None) or ""]
        where = f" (in {args.environment})" if args.environment else ""
        return " ".join(filter(None, words)) + where

    def time_limit_s(self, args: PackageInputT) -> float | None:
        if args.operation in QUERIES:
            return LIST_S
        return {"uninstall": REMOVE_S, "remove": REMOVE_S, "lock": LOCK_S}.get(args.operation, self.max_timeout_s)

    async def effects(self, args: PackageInputT, ctx: ToolContext) -> Effects:
        plan = await self._told_plan(args, ctx)
        places = [str(place) for place in (plan.target.prefix, *plan.target.elsewhere)]
        changed = [] if args.operation in QUERIES or plan.runs_code else [*places, *map(str, plan.files)]
        found = Effects(
            reads=[*places, *(use.path for use in plan.uses if use.access == "read")],
            writes=[*changed, *(use.path for use in plan.uses if use.access == "write")],
            urls=[f"https://{host}/" for host in (*plan.hosts, *plan.mirror_hosts)],
            names=(args.operation,),
        )
        if args.operation in QUERIES:
            return found
        line, sandbox_use = shlex.join(getattr(args, "command", ())), await plan.sandbox_use(ctx.sandbox)
        hosts = self._hosts_to_allow(plan, ctx) if sandbox_use == "network" else ()
        # A source other than an index builds code that runs beside the user's credentials, so ask.
        box: Box = "usual" if plan.named and plan.own_settings else "unasked"
        command = Command(line, sandbox_use, hosts, is_elsewhere=True, narrowest_box=box)
        return replace(found, commands=(command,), is_complete=False)  # packages bring code that runs

    async def describe(self, args: PackageInputT, ctx: ToolContext) -> str:
        return "" if args.operation in QUERIES else (await self._told_plan(args, ctx)).explanation

    def _hosts_to_allow(self, plan: Plan, ctx: ToolContext) -> Sequence[str]:
        """Return the hosts that `sandbox.domains` has to name for the call; none where they are not known."""
        from panpan.python_environments.uv_sources import hosts_to_allow  # not needed at the start

        return hosts_to_allow((*plan.hosts, *plan.mirror_hosts), self.settings, ctx.own_environment or {})

    async def run(self, args: PackageInputT, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        told = self._plans.pop((ctx.tool_use_id, args), None)
        plan = await to_thread.run_sync(self._whole_plan, args, ctx)
        if told is not None and told != plan:
            raise ToolError(
                "the effect of this call has changed since it was allowed",
                advice="call again, so that it is judged again",
            )
        for place in (plan.target.prefix, *plan.target.elsewhere):
            ctx.paths.resolve(str(place), access="read" if args.operation in QUERIES or plan.runs_code else "write")
        if args.operation in QUERIES:
            yield Output(await self._seen(args, plan.target))
            return
        from panpan.capabilities.packages.apply import apply_plan  # not needed at the start

        work = apply_plan(plan, ctx, self.environment(ctx), self._setup, manager=self.name, what=self.title(args))
        async with aclosing(work) as items:
            async for item in items:
                yield item

    @abstractmethod
    def plan(self, args: PackageInputT, ctx: ToolContext) -> Plan:
        """Return the plan of the call. Called in a worker thread; runs nothing and changes nothing.

        Raises:
            ToolError: It cannot be done; says what to do instead.
        """

    @abstractmethod
    def undo_commands(self, program: str, plan: Plan, undo: "Undo", variables: Mapping[str, str]) -> Plan:
        """Return the plan of taking a step back with its commands, and where they fetch from.

        `program`: the package manager, or the interpreter that has it.
        """

    def environment(self, ctx: ToolContext) -> dict[str, str]:
        """Return the variables that the package manager gets, where it may not use the user's caches with its own."""
        environment = drop_variables(ctx.environment, self.own_variables, self.kept_variables)
        if ctx.sandbox.is_on:
            environment |= self.own_caches(ctx.sandbox.temporary / "packages")
        return environment

    def own_caches(self, folder: Path) -> Mapping[str, str]:
        """Return variables that move its caches into a folder of the session's: the user's are closed to commands."""
        return {}

    def query_plan(self, args: PackageInputT, ctx: ToolContext) -> Plan:
        """Return the plan of an operation that only reads."""
        return Plan(find_target(ctx.paths, args.environment, ctx.own_environment or ctx.environment))

    def query(self, args: PackageInputT, target: Target) -> str:
        """Return the result of an operation that only reads. Called in a worker thread.

        Raises:
            ToolError: It is about nothing, or about what is no package.
        """
        return query(args.operation, args.packages, target)

    def writable_target(self, args: PackageInputT, ctx: ToolContext) -> Target:
        """Return the environment that packages are changed in.

        Raises:
            ToolError: There is none, or it is the system's.
        """
        target = find_target(ctx.paths, args.environment, ctx.own_environment or ctx.environment)
        require_own(target, is_system_wanted=getattr(args, "system", False))
        return target

    def rollback_plan(
        self, target: Target, program: str, variables: Mapping[str, str], wheels: str | None = None
    ) -> Plan:
        """Return the plan of taking the last step back.

        `program`: the package manager, or the interpreter that has it. `wheels`: the folder of wheels to install from;
        None: the one of the step, if it had one.

        Raises:
            ToolError: There is none, another tool made it, it made the environment, or nothing of it is left.
        """
        from panpan.capabilities.packages.target import read_installed
        from panpan.capabilities.packages.undo_log import undo

        step = self._setup.steps.last(target.prefix)
        if step.manager != self.name:
            raise ToolError(
                f"the last change of {target.prefix} was made with {step.manager}", advice="call that for its rollback"
            )
        found = undo(step, read_installed(target.prefix))
        if step.made_environment and not found.files:
            raise ToolError(f"the last step made {target.prefix} itself; delete that folder to be without it")
        if step.made_environment:
            stays = f"{target.prefix}, which that step made, stays; delete the folder to be without it"
            found = replace(found, notes=(*found.notes, stays))
        if not (found.remove or found.restore or found.files):
            raise ToolError("; ".join(("nothing of the last change is left to take back", *found.notes)))
        plan = Plan(
            target,
            files=tuple(Path(file.path) for file in found.files),
            named=tuple(f"{package}" for package in found.restore if package.path or package.address),
            uses=tuple(PathUse(package.path, "read") for package in found.restore if package.path),
            wheels=wheels or step.wheels,
            step=step,
            undo=found,
        )
        return self.undo_commands(program, plan, found, variables)

    async def _seen(self, args: PackageInputT, target: Target) -> str:
        try:
            with fail_after(LIST_S):
                return await to_thread.run_sync(self.query, args, target, abandon_on_cancel=True)
        except TimeoutError as exc:
            raise ToolError(f"{target.prefix} could not be read within {LIST_S:g} s; is its disk gone?") from exc

    def _whole_plan(self, args: PackageInputT, ctx: ToolContext) -> Plan:
        """Return the plan of a call with the mirrors that it may ask, where it locks nothing to the index."""
        plan = replace(self.plan(args, ctx), asked=names_asked(args.packages))
        if not plan.hosts or plan.wheels or plan.files or plan.runs_code:
            return plan
        from panpan.capabilities.packages.apply import mirror_lines, with_mirrors

        others = mirror_lines(self.settings)
        return with_mirrors(plan, [type(self)(replace(self._setup, settings=one)).plan(args, ctx) for one in others])

    async def _told_plan(self, args: PackageInputT, ctx: ToolContext) -> Plan:
        """Return the plan of a call that is decided about; the first one counts for all questions and for the run."""
        key = (ctx.tool_use_id, args)
        if key not in self._plans:
            plan = await to_thread.run_sync(self._whole_plan, args, ctx)
            while len(self._plans) >= _MOST_PLANS:  # left over from refused calls
                del self._plans[next(iter(self._plans))]
            self._plans[key] = plan
        return self._plans[key]


def query(operation: str, packages: Sequence[str], target: Target) -> str:
    """Return the result of `show`, `freeze` or `list` in an environment. Synchronous.

    `packages`: what is to be shown, or parts of the names to be listed; none: all of them.

    Raises:
        ToolError: Nothing is named that could be shown, or what is named is no name.
    """
    prefix = target.prefix
    if operation == "show":
        require_some(packages)
        names = [package_name(text) for text in packages]
        return "\n\n".join(shown_package(prefix, name) or f"{name} is not installed in {prefix}" for name in names)
    found = read_installed(prefix)
    if operation == "freeze":
        return "\n".join(package.pin for package in found) or f"# nothing is installed in {prefix}"
    wanted = {text.lower() for text in packages}
    listed = [one for one in found if not wanted or any(word in one.name.lower() for word in wanted)]
    lines = [f"{package}{f' {package.build}' if package.build else ''}" for package in listed]
    return "\n".join([f"{len(listed)} packages in {target}", *lines])
