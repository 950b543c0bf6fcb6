"""Runs the commands of a package manager: in the sandbox, one after the other, within one bound of time."""

import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path

import anyio

from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.shell.line_folder import LineFolder
from panpan.capabilities.shell.progress_pacer import ProgressPacer
from panpan.core.tool import ToolContext
from panpan.shell_analysis.working_directory import start_directory
from panpan.system.processes.limits import limited
from panpan.system.processes.process import ProcessEnded, run_process
from panpan.system.sandbox.command_sandbox import Bounds, Start
from panpan.system.sandbox.refusals import refusal_in
from panpan.types.dataclass import dataclass
from panpan.types.tool import Progress

MAX_RESULT_CHARS = 30_000
MAX_CHARS = 300_000
"""Of the end of an output, which is looked at for reasons."""
_KILL_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How it went."""

    exit_code: int
    """Of the last command that ran."""
    timed_out: bool
    output: str
    """What they printed, shortened where it is long."""
    end: str
    """The end of it, as much as is looked at for reasons."""
    command: str
    """The last that ran, as a line."""
    notes: tuple[str, ...] = ()
    """What the sandbox refused."""
    told: tuple[str, ...] = ()
    """What else there is to say of how it ran."""

    @property
    def went_well(self) -> bool:
        """Whether all that was to run has run, and said that it went well."""
        return self.exit_code == 0 and not self.timed_out


async def run_plan(
    plan: Plan, ctx: ToolContext, environment: Mapping[str, str]
) -> AsyncGenerator[Progress | Ran, None]:
    """Run the commands of a plan: yield what they print, then how it went. Consume it under `aclosing`.

    Args:
        plan: What runs.
        ctx: Of the call.
        environment: What they get.

    Raises:
        ToolError: One cannot be started.
    """
    cwd = plan.cwd or start_directory(ctx.paths, may_change=ctx.runs_alone)
    env = ctx.processes.marked({**environment, **dict(plan.env)})
    bounds = Bounds(
        is_read_only=False,
        roots=ctx.paths.roots,
        opened=_opened(plan, ctx),
        has_network=await plan.wish(ctx.sandbox) == "network",
    )
    deadline = anyio.current_time() + plan.timeout_s
    pacer, folder = ProgressPacer(), LineFolder()
    collector = ctx.outputs.collector(f"packages-{ctx.tool_use_id}", max_chars=MAX_RESULT_CHARS)
    ended = ProcessEnded(exit_code=0, timed_out=False)
    end, notes, line = "", [], ""
    for command in plan.commands:
        line = shlex.join(command)
        own_end = ""
        async with ctx.sandbox.boxed(command, env, cwd, bounds) as start:
            process = run_process(
                limited(start.argv, ctx.limits),
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
                    elif isinstance(chunk, bytes):
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
    yield Ran(ended.exit_code, ended.timed_out, collector.finish(), end, line, tuple(dict.fromkeys(notes)))


def _opened(plan: Plan, ctx: ToolContext) -> frozenset[Path]:
    """Return what the user has opened to the call, without what it only reads."""
    if not ctx.paths.approved:
        return frozenset()
    read = {ctx.paths.judged(use.path).path for use in plan.uses if use.access == "read"}
    written = {ctx.paths.judged(use.path).path for use in plan.uses if use.access == "write"} | {plan.target.prefix}
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
