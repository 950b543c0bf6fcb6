"""Parsing of untrusted files by a program of panpan's own, in the sandbox.

The rule: its time, its memory and what it may write are bounded, it has no network where a sandbox works, and no key in
any case. A file that breaks it, holds it up or takes it over costs what was asked of it, and nothing else.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from panpan.system.environment import child_environment
from panpan.system.processes.limits import GB, Limits, limit_command
from panpan.system.processes.process import Captured, capture
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox

WITHIN_S = 60.0
MEMORY_BYTES = 3 * GB


async def run_parser(
    module: str,
    arguments: Sequence[str],
    data: bytes,
    sandbox: CommandSandbox,
    *,
    max_bytes: int,
    within_s: float = WITHIN_S,
    memory_bytes: int = MEMORY_BYTES,
) -> Captured:
    """Run a module of panpan's on `data`, which a stranger made, and return what it prints; it can change no files.

    Raises:
        ToolError: It cannot be started.
    """
    command = [sys.executable, "-P", "-m", module, *arguments]
    required = frozenset({"memory_gb", "cpu_s"})
    limits = Limits(memory_bytes=memory_bytes, cpu_s=max(int(within_s), 1), required=required)
    here = Path("/")
    with TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        async with sandbox.boxed(command, child_environment(), here, Bounds(is_read_only=True)) as start:
            return await capture(
                limit_command(start.argv, limits),
                cwd=here,
                env=start.env,
                timeout_s=within_s,
                max_bytes=max_bytes,
                stdin=file,
                pass_fds=start.pass_fds,
            )
