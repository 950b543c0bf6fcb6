"""Fake sandboxes without any effect, for decisions before a command runs."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from panpan.system.sandbox.choice import SandboxChoice
from panpan.system.sandbox.profile import Boxed


class Boxes:
    """A sandbox in name only."""

    name = "boxes"
    limits: Sequence[str] = ()
    can_grant_domains = False
    shares_loopback = False
    can_seal = True

    def __init__(self) -> None:
        self.placeholders: set[Path] = set()

    @contextmanager
    def wrap(self, argv: Sequence[str], profile: object, cwd: Path) -> Iterator[Boxed]:
        yield Boxed(argv)

    def adopt(self, placeholders: Collection[Path]) -> None:
        pass

    async def tidy(self, needed: Collection[Path] = ()) -> None:
        pass


async def works() -> SandboxChoice:
    return SandboxChoice(Boxes())


class GrantingBoxes(Boxes):
    """A sandbox that can allow single hosts."""

    can_grant_domains = True


class LooserBoxes(Boxes):
    """A sandbox that cannot keep commands from leaving processes behind."""

    can_seal = False


async def works_without_sealing() -> SandboxChoice:
    return SandboxChoice(LooserBoxes())


async def works_with_domains() -> SandboxChoice:
    return SandboxChoice(GrantingBoxes())


async def none_works() -> SandboxChoice:
    return SandboxChoice(None, ("bubblewrap cannot be used: it is not installed",))
