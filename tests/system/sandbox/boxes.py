"""A workspace, a folder beside it, and commands that run in a box of each kind."""

import os
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.processes.process import Captured, ChildHandover, ProcessEnded, capture, run_process
from panpan.system.sandbox.choice import find_sandbox
from panpan.system.sandbox.landlock import Landlock, landlock_version
from panpan.system.sandbox.profile import Boxed, Profile, Sandbox, workspace_write

KINDS = ("bubblewrap", "Landlock", "Seatbelt")

about_linux = pytest.mark.skipif(sys.platform != "linux", reason="about the kernel of Linux")

ENV = child_environment({"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"})


@dataclass(frozen=True)
class Box:
    """Folder in which a test's commands run."""

    sandbox: Sandbox
    workspace: Path
    outside: Path

    @property
    def profile(self) -> Profile:
        return workspace_write([self.workspace])

    async def run(self, script: str, *arguments: object, profile: Profile | None = None) -> Captured:
        """Run a script for bash, the arguments as `$1` and so on."""
        return await self.start(["/bin/bash", "-c", script, "bash", *map(str, arguments)], profile)

    async def run_each(self, scripts: Iterable[str], first: object = "", second: object = "", *, tidy: str) -> None:
        """Run scripts for bash one after the other in one box, each from the workspace, with `$1` and `$2`.

        Args:
            scripts: Each in a shell of its own.
            first: What is `$1` in each.
            second: What is `$2` in each.
            tidy: Run after each, so that the next one finds the workspace as it was.
        """
        tried = tuple(scripts)
        each = f'for script in "${{@:3}}"; do bash -c "$script" bash "$1" "$2"; echo "$script"; {tidy}; done'
        ended = await self.run(each, first, second, *tried)
        missing = [script for script in tried if script not in ended.stdout.decode()]
        assert not missing, ended.stderr

    async def python(self, code: str, *arguments: object, profile: Profile | None = None) -> Captured:
        """Run Python code, the arguments in `sys.argv`."""
        return await self.start([sys.executable, "-c", code, *map(str, arguments)], profile)

    async def start(self, argv: list[str], profile: Profile | None = None) -> Captured:
        with self.sandbox.wrap(argv, self.profile if profile is None else profile, self.workspace) as boxed:
            return await captured(boxed, cwd=self.workspace, timeout_s=60)


async def captured(
    boxed: Boxed, *, cwd: Path = Path("/"), env: Mapping[str, str] = ENV, timeout_s: float = 20
) -> Captured:
    """Run what a sandbox has wrapped."""
    return await capture(boxed.argv, cwd=cwd, env=env, timeout_s=timeout_s, pass_fds=boxed.pass_fds)


def running(
    boxed: Boxed, *, cwd: Path, env: Mapping[str, str] = ENV, timeout_s: float | None, kill_grace_s: float = 2.0
) -> AsyncGenerator[bytes | ProcessEnded | ChildHandover, None]:
    """Run what a sandbox has wrapped, and yield what it prints and how it ends; what it leaves behind runs on."""
    return run_process(
        boxed.argv, cwd=cwd, env=env, timeout_s=timeout_s, kill_grace_s=kill_grace_s, pass_fds=boxed.pass_fds
    )


async def made(kind: str) -> Sandbox:
    """Return a sandbox of the kind; skip the test where it does not work."""
    if kind == "Landlock":
        try:
            return Landlock(landlock_version())
        except ToolError as exc:
            pytest.skip(str(exc))
    if kind == "Seatbelt" and sys.platform != "darwin":
        pytest.skip("only a Mac has Seatbelt")
    choice = await find_sandbox()
    if choice.sandbox is None or choice.sandbox.name != kind:
        pytest.skip(choice.passed_over[0] if choice.passed_over else f"{kind} is not for this system")
    return choice.sandbox


def names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return all that is in a folder: mode, time of change, and content or the target of a link."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        status = path.lstat()
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return found
