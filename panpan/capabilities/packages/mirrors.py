"""The same call with another index, for when the first one is not reached.

The rule: every index that may be asked is known before anybody says yes; another one is asked only where the one before
was not reached, never for what it does not have; and which one was not reached is told.
"""

import shlex
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace

from anyio import current_time

from panpan.capabilities.packages.diagnosis import is_unreached
from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.running import Ran, run_plan
from panpan.config.settings import PackageSettings
from panpan.core.tool import ToolContext
from panpan.types.tool import Progress

_MOST_CHARS = 300
"""Of a command line that is told."""


def mirrored(settings: PackageSettings) -> Iterator[PackageSettings]:
    """Yield a user's settings with each of his mirrors in place of what it mirrors."""
    yield from (settings.model_copy(update={"index": url}) for url in settings.mirrors)
    yield from (settings.model_copy(update={"channel_alias": url}) for url in settings.channel_mirrors)


def with_mirrors(plan: Plan, others: Iterable[Plan]) -> Plan:
    """Return a plan that goes on with the commands of others where its own index is not reached.

    Args:
        plan: Of the call.
        others: Of the same call with each mirror in place of its index.
    """
    different = [other for other in others if other.commands != plan.commands]
    mirrors = [host for other in different for host in other.hosts if host not in plan.hosts]
    return replace(
        plan, instead=tuple(other.commands for other in different), mirror_hosts=tuple(dict.fromkeys(mirrors))
    )


async def run_with_mirrors(
    plan: Plan, ctx: ToolContext, environment: Mapping[str, str]
) -> AsyncGenerator[Progress | Ran, None]:
    """Run a plan as `run_plan` does, again with each mirror until one is reached. Consume it under `aclosing`."""
    told: tuple[str, ...] = ()
    deadline = current_time() + plan.timeout_s
    for commands in (plan.commands, *plan.instead):
        is_last = len(told) == len(plan.instead)
        left_s = max(0.0, deadline - current_time())
        async with aclosing(run_plan(replace(plan, commands=commands, timeout_s=left_s), ctx, environment)) as items:
            async for item in items:
                if isinstance(item, Progress):
                    yield item
                elif is_last or item.went_well or item.timed_out or not is_unreached(item.end):
                    yield replace(item, told=told)
                    return
        told = (*told, f"not reached: what `{shlex.join(commands[-1])[:_MOST_CHARS]}` asks; the next mirror was asked")
