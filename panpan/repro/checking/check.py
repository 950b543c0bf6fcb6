"""A whole check: read `claims.toml`, run its commands as a campaign, find the numbers and judge them."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from panpan.repro.checking.results import CheckReport
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Choices of the user for one check."""

    seeds: int | None = None
    """Runs with different seeds for each claim whose command takes one; None: as many as its tolerance says, or one."""
    only: tuple[str, ...] = ()
    """Ids of the claims to check; all if empty."""
    on: str | None = None
    """Machines, as for `panpan batch run --on`; None: this one."""
    at_once: int | None = None
    """Runs at once on one machine; None: as campaigns do."""
    max_hours: float = 1.0
    """Longest estimate of a run that may begin, in hours."""
    allows_unconfirmed: bool = False
    """True if claims run that nobody has confirmed."""
    results: Path | None = None
    """Folder for the results; None: the reproduction's own, or `repro-results` beside claims.toml."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment, for the panpan home and for programs on PATH."""


def _silent(_: str) -> None: ...


async def check(folder: Path, options: CheckOptions, *, notify: Callable[[str], None] = _silent) -> CheckReport:
    """Check the claims of a folder, and write `check.json`. A check that was killed goes on where it was.

    The caller has made sure that the user trusts claims.toml, whose commands run.

    Args:
        folder: Folder with claims.toml; canonical.
        options: Choices of the user.
        notify: Gets a line for people now and then.

    Raises:
        ConfigError: claims.toml is missing or wrong, or the check cannot begin; the error says what to do.
    """
    raise NotImplementedError
