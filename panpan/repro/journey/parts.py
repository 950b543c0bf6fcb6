"""Parts of the journey that other packages do. Tests give their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from panpan.cli_kit.questions import TerminalQuestions, ask_yes_or_no
from panpan.config.locations import panpan_home
from panpan.errors import AnswerNeededError
from panpan.repro.checking.check import CheckOptions, check
from panpan.repro.checking.results import CheckReport
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.claims.claims_trust import require_trust
from panpan.repro.claims.confirmations import Confirmations
from panpan.repro.kit.kit_command import make_kit
from panpan.repro.papers.confirming import ask_about_claims, waiting_claims
from panpan.repro.papers.extract_command import read_document, read_named_repositories
from panpan.repro.papers.proposals import propose, proposed_text
from panpan.repro.papers.repository_addresses import NamedRepositories
from panpan.system.text.terminal_text import clean_line, counted


class Parts(Protocol):
    """Work of other packages."""

    async def propose(self, paper: Path) -> bytes | None:
        """Return a claims.toml with what the tables of a paper say; None if they have no numbers."""

    async def repositories(self, paper: Path) -> NamedRepositories:
        """Return the repositories that a paper names."""

    async def may_clone(self, address: str) -> bool:
        """Return the user's answer about the repository that a paper names.

        Raises:
            AnswerNeededError: There is no terminal.
        """

    async def confirm(self, folder: Path, env: Mapping[str, str]) -> None:
        """Let the user confirm the claims of a folder.

        Raises:
            AnswerNeededError: They have not, or there is no terminal.
        """

    async def require_trust(self, folder: Path, env: Mapping[str, str]) -> None:
        """Let the user look at a setup, which runs with the network and which no claim shows.

        Raises:
            ConfigError: They do not trust it, or there is no terminal.
        """

    async def check(self, folder: Path, options: CheckOptions, say: Callable[[str], None]) -> CheckReport:
        """Run the claims and judge them."""

    async def make_kit(self, folder: Path, env: Mapping[str, str]) -> Path:
        """Write the kit of a folder that was checked, and return its place."""


class OwnParts:
    """The work as panpan does it.

    Args:
        can_ask: True if the user is at a terminal, which nothing else writes to.
    """

    def __init__(self, *, can_ask: bool) -> None:
        self._can_ask = can_ask

    async def propose(self, paper: Path) -> bytes | None:
        """Read the tables of a paper."""
        found = propose(await read_document(paper), paper.name)
        return proposed_text(found) if found.claims.claim else None

    async def repositories(self, paper: Path) -> NamedRepositories:
        """Read the addresses of a paper."""
        return await read_named_repositories(paper)

    async def may_clone(self, address: str) -> bool:
        """Ask about a repository."""
        if not self._can_ask:
            raise AnswerNeededError(f"the paper names the repository {address}; to clone it, add --repo {address}")
        return await ask_yes_or_no(f"The paper names the repository {clean_line(address)}\nClone it?") is True

    async def confirm(self, folder: Path, env: Mapping[str, str]) -> None:
        """Ask about claims that wait."""
        confirmations = Confirmations(folder, panpan_home(env, folder))
        file = await to_thread.run_sync(load_claims, folder)
        waiting: Sequence[Claim] = await to_thread.run_sync(waiting_claims, file.claims, confirmations)
        if waiting and self._can_ask:
            waiting = await ask_about_claims(folder, env, TerminalQuestions())
        if waiting:
            asks = (
                "the same command asks again" if self._can_ask else f"on a terminal, run: panpan repro confirm {folder}"
            )
            raise AnswerNeededError(
                f"{counted(len(waiting), 'claim')} of {file.path} wait{'s' * (len(waiting) == 1)} for you; {asks}, or "
                f"run {'it' if len(waiting) == 1 else 'them'} unconfirmed with --yes"
            )

    async def require_trust(self, folder: Path, env: Mapping[str, str]) -> None:
        """Ask about a setup; `--yes` is about claims and does not answer this."""
        file = await to_thread.run_sync(load_claims, folder)
        if file.claims.environment.setup is not None:
            await require_trust(file, panpan_home(env, folder), ask=ask_yes_or_no if self._can_ask else None)

    async def check(self, folder: Path, options: CheckOptions, say: Callable[[str], None]) -> CheckReport:
        """Run what the user has confirmed."""
        confirmations = Confirmations(folder, panpan_home(options.env, folder))
        return await check(folder, replace(options, confirms=confirmations.confirms), notify=say)

    async def make_kit(self, folder: Path, env: Mapping[str, str]) -> Path:
        """Write the kit."""
        return await make_kit(folder, None, env)
