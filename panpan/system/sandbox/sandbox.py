"""What a sandbox is to those who start commands."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from panpan.system.sandbox.profile import Profile


class Sandbox(Protocol):
    """Keeps commands within a profile, by means of the operating system."""

    stand_ins: set[Path]
    """The empty folders that stand for protected places which did not exist, as far as they were not removed again."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def limits(self) -> Sequence[str]:
        """What it cannot keep a command from, or keeps from more than it should; one sentence each, for the user."""

    @property
    def can_grant_domains(self) -> bool:
        """Whether a command can be let to single hosts (`Profile.proxy`) and to no others."""

    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> list[str]:
        """Return what to start instead of `argv`, so that it runs within the bounds of `profile`.

        It is started like any other command: with the same environment, marks included, and the same pipes, and with
        what `Profile.proxy` names as inherited. Output,
        exit code and signals are those of the command, and ending its tree ends all of it.

        Args:
            argv: The program and its arguments.
            profile: What it may do.
            cwd: Its working directory; canonical.
        """

    async def tidy(self) -> None:
        """Remove the empty folders that stood for protected places which did not exist.

        Call it after each command, and when the session has ended what it left behind. What something boxed still needs
        stays until the next call.
        """


def with_loader_inside(argv: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return what to wrap and the environment to start it with, so that the box is made by the system's own programs.

    Variables that name folders to load libraries from would let a command put a library into the workspace that the
    next box loads while it is made. They are set inside only.

    Args:
        argv: The program and its arguments.
        env: The environment that the program shall have.
    """
    inside = [f"{name}={value}" for name, value in env.items() if _is_read_by_loader(name)]
    outside = {name: value for name, value in env.items() if not _is_read_by_loader(name)}
    return ["/usr/bin/env", *inside, *argv] if inside else list(argv), outside


def _is_read_by_loader(name: str) -> bool:
    return name.startswith("LD_") or name in ("GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH")
