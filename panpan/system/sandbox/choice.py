"""Choice of the sandbox that works here: bubblewrap, else Landlock; on macOS Seatbelt; else none, and why.

The rule: only a sandbox that has just kept a command from writing is used. Nothing is remembered; the caller keeps the
answer.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.files.canonical import canonical_path
from panpan.system.processes.process import capture
from panpan.system.sandbox.bubblewrap import Bubblewrap
from panpan.system.sandbox.landlock import Landlock, landlock_version
from panpan.system.sandbox.profile import Profile, Sandbox, read_only, workspace_write
from panpan.system.sandbox.seatbelt import SANDBOX_EXEC, Seatbelt
from panpan.types.dataclass import dataclass

PLACES = "/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin"
"""Folders in which bubblewrap is looked for; the user's PATH may lead into the workspace."""

_TIMEOUT_S = 10.0
_HAS_WRITTEN = 3
_PROBE = f'if (: >"$1") 2>&-; then exit {_HAS_WRITTEN}; fi'


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """The sandbox to use, and why it is not a better one; None if none works."""

    sandbox: Sandbox | None
    passed_over: tuple[str, ...] = ()
    """Reasons, for the user, why better ones cannot be used here."""


async def find_sandbox(
    *, places: str = PLACES, platform: str = sys.platform, sandbox_exec: str = SANDBOX_EXEC
) -> SandboxChoice:
    """Try the sandboxes, best first, with a command that tries to write, and return the first that holds.

    Args:
        places: Folders in which bubblewrap is looked for, as in PATH.
        platform: As `sys.platform`.
        sandbox_exec: The program that applies Seatbelt.
    """
    passed_over: dict[str, str] = {}
    for name, make in _candidates(places, platform, sandbox_exec):
        try:
            sandbox = make()
            await _require_held(sandbox)
        except (ToolError, OSError) as exc:
            passed_over[name] = f"{name} cannot be used: {exc}"
        else:
            return SandboxChoice(sandbox, tuple(reason for other, reason in passed_over.items() if other != name))
    return SandboxChoice(None, tuple(passed_over.values()))


def _candidates(places: str, platform: str, sandbox_exec: str) -> Iterator[tuple[str, Callable[[], Sandbox]]]:
    if platform == "darwin":
        yield "Seatbelt", partial(_seatbelt, sandbox_exec)
        return
    if platform == "linux":
        # Root is better off without a user namespace: inside one, even root cannot change files of other users.
        for has_user_namespace in (False, True) if os.geteuid() == 0 else (True,):
            yield "bubblewrap", partial(_bubblewrap, places, has_user_namespace)
    yield "Landlock", lambda: Landlock(landlock_version())


def _bubblewrap(places: str, has_user_namespace: bool) -> Sandbox:
    program = shutil.which("bwrap", path=places)
    if program is None:
        raise ToolError("it is not installed; install the package bubblewrap")
    return Bubblewrap(program, has_user_namespace=has_user_namespace)


def _seatbelt(program: str) -> Sandbox:
    if not os.access(program, os.X_OK):
        raise ToolError(f"{program} is not there")
    return Seatbelt(program)


async def _require_held(sandbox: Sandbox) -> None:
    """Raise `ToolError` if a command within the sandbox can write a file, or does not start."""
    with tempfile.TemporaryDirectory(prefix="panpan-sandbox-") as folder:
        for profile in _profiles(sandbox, canonical_path(Path(folder))):
            argv = ["/bin/sh", "-c", _PROBE, "probe", f"{folder}/written"]
            with sandbox.wrap(argv, profile, Path("/")) as boxed:
                ended = await capture(
                    boxed.argv,
                    cwd=Path("/"),
                    env=child_environment(),
                    timeout_s=_TIMEOUT_S,
                    max_bytes=10_000,
                    pass_fds=boxed.pass_fds,
                )
            if ended.exit_code == _HAS_WRITTEN:
                raise ToolError("it starts here, but does not keep a command from writing")
            if ended.timed_out:
                raise ToolError(f"it had not started after {_TIMEOUT_S:g} s")
            if ended.exit_code != 0:
                said = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                raise ToolError(said or f"it ended with exit code {ended.exit_code}")


def _profiles(sandbox: Sandbox, folder: Path) -> Iterator[Profile]:
    yield read_only()
    if isinstance(sandbox, Seatbelt):  # a system that does not know one rule rejects them all
        (folder / "workspace" / "hidden").mkdir(parents=True)
        yield workspace_write([folder / "workspace"]).hiding([folder / "workspace" / "hidden"])
        yield read_only(has_network=True)
