"""What a sandbox is to those who start commands."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from panpan.system.sandbox.profile import Profile
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Boxed:
    """What to start in the place of a command, so that it runs in its box."""

    argv: Sequence[str]
    pass_fds: Sequence[int] = ()
    """Descriptors that it has to inherit under the same numbers."""
    stand_ins: Collection[Path] = ()
    """Which of `Sandbox.stand_ins` it needs, also while it is being made."""


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

    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> AbstractContextManager[Boxed]:
        """Give what to start instead of `argv`, so that it runs within `profile`; to be left after the start.

        It is started like any other command: with the same environment, marks included, and the same pipes. Output,
        exit code and signals are those of the command, and ending its tree ends all of it. From its start on it needs
        nothing of panpan's, which may end before the box is made.

        Args:
            argv: The program and its arguments.
            profile: What it may do.
            cwd: Its working directory; canonical.

        Raises:
            ToolError: No more descriptors can be open.
        """

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        """Remove the empty folders that stood for protected places which did not exist.

        Call it after each command, and when the session has ended what it left behind. What something boxed still needs
        stays until the next call. Nothing is wrapped meanwhile.

        Args:
            needed: Those that boxes need which may not be whole yet, so that nobody could see it.
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
