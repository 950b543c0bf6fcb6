"""Parts of the journey that other packages do. Tests give their own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from panpan.repro.checking.check import CheckOptions, check
from panpan.repro.checking.results import CheckReport
from panpan.repro.journey.making_kit import make_kit
from panpan.repro.journey.reproduction_folder import ReproductionFolder


class Parts(Protocol):
    """Work of other packages."""

    async def propose(self, paper: Path) -> bytes | None:
        """Return a claims.toml with what the tables of a paper say; None if they have no numbers."""

    async def confirm(self, folder: Path, says_yes: bool, env: Mapping[str, str]) -> None:
        """Let the user confirm the claims of a folder.

        Raises:
            AnswerNeededError: They have not, or there is no terminal.
        """

    async def check(self, folder: Path, options: CheckOptions, say: Callable[[str], None]) -> CheckReport:
        """Run the claims and judge them."""

    async def make_kit(
        self, report: CheckReport, folder: ReproductionFolder, address: str, env: Mapping[str, str]
    ) -> Path:
        """Write the kit, and return its folder."""


class _OwnParts:
    async def propose(self, paper: Path) -> bytes | None:
        raise NotImplementedError

    async def confirm(self, folder: Path, says_yes: bool, env: Mapping[str, str]) -> None:
        raise NotImplementedError

    async def check(self, folder: Path, options: CheckOptions, say: Callable[[str], None]) -> CheckReport:
        return await check(folder, options, notify=say)

    async def make_kit(
        self, report: CheckReport, folder: ReproductionFolder, address: str, env: Mapping[str, str]
    ) -> Path:
        return await make_kit(report, folder, address, env)


OWN_PARTS: Parts = _OwnParts()
