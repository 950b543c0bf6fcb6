"""`panpan repro check` and `panpan repro show`: a check on the screen, and its exit code."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import click
from anyio import to_thread

from panpan.cli_kit.failures import json_line
from panpan.cli_kit.questions import ask_yes_or_no
from panpan.config.locations import panpan_home
from panpan.errors import AnswerNeededError
from panpan.repro.checking.check import CheckOptions, check, last_check
from panpan.repro.checking.check_table import MAX_COLUMNS, check_lines, claim_lines
from panpan.repro.checking.results import CheckReport
from panpan.repro.claims.claim import Claim, Claims
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.claims.claims_trust import require_trust
from panpan.repro.claims.confirmations import Confirmations
from panpan.repro.claims.places import is_reproduction
from panpan.system.text.terminal_text import clean_line

DEVIATES = 1
"""Exit code if a claim deviates."""


class Checks(Protocol):
    """Runs a check, as `check` does."""

    async def __call__(self, folder: Path, options: CheckOptions, *, notify: Callable[[str], None]) -> CheckReport: ...


async def run(folder: Path, form: str, given: Mapping[str, Any], checks: Checks = check) -> int:
    """Check the claims of a folder, and return the exit code.

    Args:
        folder: Folder with claims.toml, canonical.
        form: `text` or `json`, for the result.
        given: The options of the command, by their names.
        checks: Runs the check.

    Raises:
        ConfigError: claims.toml is missing, wrong or not trusted, or the check cannot begin.
        OutputError: The results cannot be written.
    """
    options = dict(given)
    trusts = options.pop("trusts")
    can_ask = sys.stdin.isatty() and sys.stdout.isatty()
    file = await to_thread.run_sync(load_claims, folder)
    home, seen = panpan_home(os.environ, Path.cwd()), _confirmations(folder).confirms
    await require_trust(file, home, trusts=trusts, ask=ask_yes_or_no if can_ask else None, has_seen=seen)
    chosen = CheckOptions(**options, confirms=confirmed_in(folder), env=dict(os.environ))
    report = await checks(folder, chosen, notify=say_aside)
    code = exit_code(report)
    if form == "json":
        click.echo(json_line({**report.model_dump(mode="json"), "exit_code": code}), nl=False)
    else:
        _print(check_lines(report, screen_columns()))
        if code == AnswerNeededError.exit_code:
            click.echo("claims wait for you; panpan repro confirm asks about each, and --yes runs them all")
    return code


def confirmed_in(folder: Path) -> Callable[[Claim], bool]:
    """Return a function that says if a person has confirmed a claim.

    In a repository the word of its author counts, too. In a reproduction only the user's does: a model writes there.
    """
    seen = _confirmations(folder).confirms
    return seen if is_reproduction(folder) else lambda claim: claim.confirmed or seen(claim)


def _confirmations(folder: Path) -> Confirmations:
    return Confirmations(folder, panpan_home(os.environ, Path.cwd()))


def exit_code(report: CheckReport) -> int:
    """Return the exit code of a check: 1 only if a claim deviates, 5 if claims wait for confirmation."""
    if report.deviates:
        return DEVIATES
    return AnswerNeededError.exit_code if report.waits else 0


def show(folder: Path, form: str) -> int:
    """Show the last check of a folder, or its claims if there was none. Return the exit code, which is 0.

    Args:
        folder: Folder with claims.toml, canonical.
        form: `text` or `json`.

    Raises:
        ConfigError: claims.toml or the result of the last check is wrong.
    """
    claims = load_claims(folder).claims
    report = last_check(folder)
    if form == "json":
        facts = {
            "claims": claims.model_dump(mode="json", by_alias=True),
            "check": None if report is None else report.model_dump(mode="json"),
        }
        click.echo(json_line(facts), nl=False)
        return 0
    if report is None:
        _print(claim_lines(claims, confirmed_in(folder), screen_columns()))
        return 0
    _print(check_lines(report, screen_columns()))
    click.echo(f"checked {report.ended_at[:16].replace('T', ' ')} UTC{_since(report, claims)}")
    return 0


def _since(report: CheckReport, claims: Claims) -> str:
    known = {one.claim.id: one.claim for one in report.judgements}
    is_same = all(known.get(claim.id) == claim for claim in claims.claim) and len(known) == len(claims.claim)
    return "" if is_same else "; claims.toml has changed since, or not all of it was checked"


def screen_columns() -> int:
    """Return the width that tables may have."""
    return shutil.get_terminal_size((MAX_COLUMNS, 24)).columns - 1 if sys.stdout.isatty() else MAX_COLUMNS


def _print(lines: Iterable[str]) -> None:
    click.echo("\n".join(lines))


def say_aside(line: str) -> None:
    """Print a line for people on standard error."""
    click.echo(clean_line(line), file=sys.stderr)
