"""The plan of one call, complete before anybody says yes to it.

The rule: the question is made from the plan, and exactly that runs. A call whose plan has changed since does not run.
"""

import os
import shlex
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from panpan.capabilities.packages.target import Target
from panpan.core.effects import PathUse
from panpan.core.recorded_commands import NOT_RECORDED, RunnerRecords
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.shell_analysis.working_directory import start_directory
from panpan.system.files.canonical import canonical_path, user_home
from panpan.system.processes.limits import limit_command
from panpan.system.processes.process import LineFolder, ProcessEnded, ProgressPacer, run_process
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox, Start
from panpan.system.sandbox.refusals import refusal_in
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.events import Progress
from panpan.types.permission import SandboxUse

if TYPE_CHECKING:
    from panpan.capabilities.packages.undo_log import Step, Undo


_MOST_CHARS = 1_000
"""Most characters of a command line in a question."""


_SETTINGS_OF_MANAGERS = (".config/pip", ".pip", ".netrc")


@dataclass(frozen=True, slots=True)
class Plan:
    """Commands, places and hosts of one call."""

    target: Target
    commands: tuple[tuple[str, ...], ...] = ()
    """Each a program and its arguments; the next one runs where the one before went well."""
    cwd: Path | None = None
    """Folder in which they run; None: the working directory."""
    env: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 30.0
    hosts: tuple[str, ...] = ()
    """Hosts that are fetched from; empty if nothing is fetched."""
    mirror_commands: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """The commands with each mirror, in whose place they run where the index before is not reached."""
    mirror_hosts: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Sources besides an index, which the user has to know of."""
    uses: tuple[PathUse, ...] = ()
    """Paths that are used besides the environment."""
    files: tuple[Path, ...] = ()
    """Manifests and lock files that may change."""
    asked: frozenset[str] = frozenset()
    """Normalised names of the packages that the call names."""
    digests: tuple[str, ...] = ()
    """SHA-256, in hex, of the files that the plan was made from."""
    runs_code: bool = False
    """True if it runs a program of the project instead of changing packages."""
    wheels: str | None = None
    """The folder of wheels that is installed from."""
    step: "Step | None" = None
    undo: "Undo | None" = None

    @property
    def lines(self) -> Iterator[str]:
        """Its command lines, quoted for a shell."""
        return (shlex.join(command) for command in self.commands)

    @property
    def explanation(self) -> str:
        """Description of the plan for the question to the user."""
        said = " and then ".join(self.lines)
        said = f"{said[:_MOST_CHARS]}…" if len(said) > _MOST_CHARS else said
        what = "in" if self.runs_code else "for the environment"
        parts = [f"it runs `{said}` {what} {self.target}" if said else f"it changes {self.target}"]
        if self.step is not None:
            parts.insert(0, f"it takes back `{self.step.manager} {clean_line(self.step.what)}`")
        if self.hosts:
            mirrors = f" (where that is not reached: {', '.join(self.mirror_hosts)})" if self.mirror_hosts else ""
            parts.append(f"it fetches from {', '.join(self.hosts)}{mirrors}")
        if self.files and not self.runs_code:
            parts.append(f"it may change {', '.join(file.name for file in self.files)}")
        if self.named:
            parts.append(f"not from an index alone: {'; '.join(self.named)}")
        return "; ".join(parts)

    @property
    def own_settings(self) -> Sequence[Path]:
        """Settings in the home, hidden for their credentials, by which it reaches the user's own indexes.

        A program of the project does not get them.
        """
        places = (canonical_path(user_home() / name) for name in _SETTINGS_OF_MANAGERS)
        return [place for place in places if self.hosts and not self.runs_code and os.path.lexists(place)]

    async def sandbox_use(self, sandbox: CommandSandbox) -> SandboxUse:
        """Return its use of the sandbox: with network, unless commands may reach all of its hosts anyway."""
        if not self.hosts:
            return "on"
        if sandbox.is_on and _are_granted((*self.hosts, *self.mirror_hosts), sandbox):
            working = (await sandbox.choice()).sandbox
            return "on" if working is not None and working.can_grant_domains else "network"
        return "network"


def _are_granted(hosts: tuple[str, ...], sandbox: CommandSandbox) -> bool:
    from panpan.system.sandbox.domain_proxy import DomainGrants
    from panpan.system.web.url_guard import plain_authority

    if not sandbox.domains:
        return False
    grants = DomainGrants(sandbox.domains)
    try:
        asked = [plain_authority(host) for host in hosts]
    except ToolError:
        return False  # the hosts are unknown
    return all(grants.covers(authority, authority.port or 443) for authority in asked)


def drop_variables(environment: Mapping[str, str], beginnings: tuple[str, ...], kept: frozenset[str]) -> dict[str, str]:
    """Return an environment without a package manager's own variables, which could lead it to another place.

    `beginnings`: what the names of its variables begin with.
    """
    return {name: value for name, value in environment.items() if name in kept or not name.startswith(beginnings)}


MAX_RESULT_CHARS = 30_000
MAX_CHARS = 300_000
"""Most characters of the end of an output that are searched for reasons."""
_KILL_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class PlanResult:
    """Result of the commands of a plan."""

    exit_code: int
    timed_out: bool
    output: str
    """Output of the commands, shortened if it is long."""
    end: str
    """The end of it, as much as is looked at for reasons."""
    command: str
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    """Further notes on the run, such as that a mirror was used."""

    @property
    def succeeded(self) -> bool:
        """True if every command ran and returned 0 in time."""
        return self.exit_code == 0 and not self.timed_out


async def run_plan(
    plan: Plan, ctx: ToolContext, environment: Mapping[str, str], records: RunnerRecords = NOT_RECORDED
) -> AsyncGenerator[Progress | PlanResult, None]:
    """Run the commands of a plan: yield what they print, then how it went. Consume it under `aclosing`.

    Args:
        plan: The plan.
        ctx: Context of the call.
        environment: Variables of the commands.
        records: Records of the commands of the agent.

    Raises:
        ToolError: One cannot be started.
    """
    cwd = plan.cwd or start_directory(ctx.paths, may_change=ctx.runs_alone)
    env = {**environment, **dict(plan.env)}
    use, hosts = await plan.sandbox_use(ctx.sandbox), tuple[str, ...]()
    if ctx.opening is not None:
        use, hosts = ctx.opening.use, ctx.opening.hosts
    bounds = Bounds(
        is_read_only=False,
        roots=ctx.paths.roots,
        opened=_opened(plan, ctx),
        shown=ctx.paths.approved.union(plan.own_settings),
        hides_home=use == "on" and ctx.box == "unasked",
        has_network=use == "network" and not hosts,
        hosts=hosts,
        is_outside=use == "off",
    )
    deadline = anyio.current_time() + plan.timeout_s
    pacer, folder = ProgressPacer(), LineFolder()
    collector = ctx.outputs.collector(f"packages-{ctx.tool_use_id}", max_chars=MAX_RESULT_CHARS)
    ended = ProcessEnded(exit_code=0, timed_out=False)
    end, notes, line = "", [], ""
    for command in plan.commands:
        line = shlex.join(command)
        own_end = ""
        async with AsyncExitStack() as stack:
            record = await records.begin(command, ctx, cwd, env)
            stack.callback(record.leave)
            marked = ctx.processes.marked({**env, **record.variables})
            start = await stack.enter_async_context(ctx.sandbox.boxed(command, marked, cwd, bounds))
            record.started(start)
            process = run_process(
                limit_command(start.argv, ctx.limits),
                cwd=cwd,
                env=start.env,
                timeout_s=max(1.0, deadline - anyio.current_time()),
                kill_grace_s=_KILL_GRACE_S,
                pass_fds=start.pass_fds,
            )
            async with aclosing(process) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, ProcessEnded):
                        ended = chunk
                        record.ended(ended.exit_code, timed_out=ended.timed_out)
                    elif isinstance(chunk, bytes):
                        record.feed(chunk)
                        text = collector.feed(folder.feed(chunk))
                        own_end = (own_end + text)[-MAX_CHARS:]
                        pacer.add(chunk)
                        if (pause_s := pacer.pause_s(anyio.current_time())) > 0:
                            await anyio.sleep(pause_s)
                        if progress := pacer.take(anyio.current_time()):
                            yield Progress(progress)
            notes += _refusals(own_end, ended, start)
        end = (end + own_end)[-MAX_CHARS:]
        if ended.exit_code != 0 or ended.timed_out:
            break
    if progress := pacer.take_rest():
        yield Progress(progress)
    end = (end + collector.feed(folder.finish()))[-MAX_CHARS:]
    yield PlanResult(ended.exit_code, ended.timed_out, collector.finish(), end, line, tuple(dict.fromkeys(notes)))


def _opened(plan: Plan, ctx: ToolContext) -> frozenset[Path]:
    """Return the paths that the user has opened to the call, without those that it only reads."""
    if not ctx.paths.approved:
        return frozenset()
    read = {ctx.paths.decided_location(use.path).path for use in plan.uses if use.access == "read"}
    written = {ctx.paths.decided_location(use.path).path for use in plan.uses if use.access == "write"} | {
        plan.target.prefix
    }
    return ctx.paths.approved - (read - written)


def _refusals(output: str, ended: ProcessEnded, start: Start) -> list[str]:
    if ended.timed_out:
        return []
    if start.proxy is not None and start.proxy.refused:
        return list(start.proxy.refused)
    if ended.exit_code != 0 and start.profile is not None:
        refusal = refusal_in(output[-20_000:], ended.exit_code, start.profile)
        if refusal is not None:
            return [refusal.text]
    return []
