"""A sandbox that holds nothing: for what is decided before a command runs."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from panpan.system.sandbox.choice import SandboxChoice
from panpan.system.sandbox.sandbox import Boxed


class Boxes:
    """A sandbox by its name only."""

    name = "boxes"
    limits: Sequence[str] = ()

    @contextmanager
    def wrap(self, argv: Sequence[str], profile: object, cwd: Path) -> Iterator[Boxed]:
        yield Boxed(argv)

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        pass


async def works() -> SandboxChoice:
    return SandboxChoice(Boxes())


async def none_works() -> SandboxChoice:
    return SandboxChoice(None, ("bubblewrap cannot be used: it is not installed",))
