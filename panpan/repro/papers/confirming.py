"""The dialog in which a person confirms claims: one by one, or all after a list of them.

The rule: nothing is confirmed by default, and nothing that was not shown. Each answer is kept before the next question.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import click
from anyio import to_thread

from panpan.cli_kit.questions import TerminalQuestions
from panpan.config.locations import panpan_home
from panpan.errors import AnswerNeededError, ConfigError
from panpan.repro.checking.judging import obstacle_of
from panpan.repro.claims.claim import Claim, Claims
from panpan.repro.claims.claims_file import (
    ClaimsFile,
    claim_text,
    load_claims,
    parse_claims,
    save_claims,
    with_changes,
    without_claims,
)
from panpan.repro.claims.confirmations import Confirmations
from panpan.repro.claims.places import is_reproduction
from panpan.repro.papers.claim_words import claim_lines
from panpan.session.command import Option
from panpan.system.text.terminal_text import counted
from panpan.types.dataclass import dataclass

_ONE_BY_ONE, _ALL = range(2)
_HELP = """\
# One claim of claims.toml. Save and leave the editor; panpan asks about it again.
# tolerance = { absolute = 0.01 }, { relative = 0.01 }, { runs = 5 } or "exact"; docs/reproduction.md has all keys.
"""


class Questions(Protocol):
    """Asks the user."""

    async def tell(self, text: str) -> None:
        """Show lines."""

    async def choose(self, title: str, options: Sequence[Option]) -> int | None:
        """Return the index of the option that the user picks; None if they leave."""


async def confirm(
    folder: Path, *, says_yes: bool = False, env: Mapping[str, str] = os.environ, questions: Questions | None = None
) -> None:
    """Let the user confirm the claims of a folder that could run.

    Args:
        folder: Folder with claims.toml, canonical.
        says_yes: True if all are confirmed without a question.
        env: The environment, for the panpan home and the editor.
        questions: Asks the user; None: the terminal of this process, if there is one.

    Raises:
        AnswerNeededError: Claims still wait: the user left, or there is no terminal.
        ConfigError: claims.toml is missing or wrong, or an answer cannot be kept.
    """
    dialog = _Dialog(folder, Confirmations(folder, panpan_home(env, folder)), env)
    file = await to_thread.run_sync(load_claims, folder)
    waiting = waiting_claims(file.claims, dialog.confirmations)
    if not waiting:
        click.echo(_nothing_to_do(file.claims))
        return
    if says_yes:
        await to_thread.run_sync(dialog.confirmations.keep, waiting)
        click.echo(f"confirmed {counted(len(waiting), 'claim')}")
        return
    if questions is None and sys.stdin.isatty() and sys.stdout.isatty():
        questions = TerminalQuestions()
    if questions is not None:
        waiting = await ask_about_claims(folder, env, questions)
    if waiting:
        raise AnswerNeededError(
            f"{counted(len(waiting), 'claim')} of {file.path} wait{'s' * (len(waiting) == 1)} for you; on a terminal, "
            f"run: panpan repro confirm {folder}, or confirm all with --yes"
        )
    check = "" if is_reproduction(folder) else "; check them with panpan repro check"  # panpan reproduce goes on itself
    click.echo(f"all claims that can run are confirmed{check}")


async def ask_about_claims(folder: Path, env: Mapping[str, str], questions: Questions) -> tuple[Claim, ...]:
    """Ask the user about the claims of a folder that could run, and return those that still wait.

    Args:
        folder: Folder with claims.toml, canonical.
        env: The environment, for the panpan home and the editor.
        questions: Asks the user.

    Raises:
        ConfigError: claims.toml is missing or wrong, or an answer cannot be kept.
    """
    dialog = _Dialog(folder, Confirmations(folder, panpan_home(env, folder)), env)
    file = await to_thread.run_sync(load_claims, folder)
    if waiting := waiting_claims(file.claims, dialog.confirmations):
        await dialog.ask(questions, waiting)
        file = await to_thread.run_sync(load_claims, folder)
    return waiting_claims(file.claims, dialog.confirmations)


def _nothing_to_do(claims: Claims) -> str:
    obstacles = {one.id: obstacle_of(one, is_confirmed=True) for one in claims.claim}
    cannot = [f"{id_}: {obstacle.reason}" for id_, obstacle in obstacles.items() if obstacle is not None]
    if not claims.claim:
        return "claims.toml has no claims; panpan repro extract proposes some from a paper"
    if cannot:
        return f"nothing to confirm; {counted(len(cannot), 'claim')} cannot run yet, such as {cannot[0]}"
    return "nothing to confirm: you have confirmed all claims"


def waiting_claims(claims: Claims, confirmations: Confirmations) -> tuple[Claim, ...]:
    """Return the claims that could run once the user has confirmed them."""
    able = (claim for claim in claims.claim if obstacle_of(claim, is_confirmed=True) is None)
    return confirmations.waiting(able)


@dataclass(frozen=True, slots=True)
class _Dialog:
    folder: Path
    confirmations: Confirmations
    env: Mapping[str, str]

    async def ask(self, questions: Questions, waiting: Sequence[Claim]) -> None:
        """Ask about all claims that wait, until the user leaves."""
        if len(waiting) > 1:
            tables = ", ".join(dict.fromkeys(filter(None, (claim.table for claim in waiting))))
            title = f"{counted(len(waiting), 'claim')} wait for you{f': {tables}' if tables else ''}."
            ways = [Option("One by one"), Option("All, after a list of them"), Option("Leave")]
            way = await questions.choose(title, ways)
            if way == _ALL:
                await self._ask_all(questions, waiting)
            if way != _ONE_BY_ONE:
                return
        for number, claim in enumerate(waiting, 1):
            if not await self._ask_one(questions, claim.id, f"{number} of {len(waiting)}"):
                return

    async def _ask_all(self, questions: Questions, waiting: Sequence[Claim]) -> None:
        for claim in waiting:
            await questions.tell("\n".join(["", *self._lines(claim)]))
        yes = Option(f"Yes, confirm {'these' if len(waiting) > 1 else 'this'} {counted(len(waiting), 'claim')}")
        if await questions.choose("\nDoes the paper say so, and are the commands right?", [Option("No"), yes]) == 1:
            await to_thread.run_sync(self.confirmations.keep, waiting)

    async def _ask_one(self, questions: Questions, claim_id: str, which: str) -> bool:
        """Ask about a claim until it is decided; return False if the user leaves."""
        while True:
            file = await to_thread.run_sync(load_claims, self.folder)
            claim = next((one for one in waiting_claims(file.claims, self.confirmations) if one.id == claim_id), None)
            if claim is None:
                return True  # it was renamed, or can no longer run
            title = "\n".join(
                ["", f"({which})", *self._lines(claim), "", "Does the paper say so, and is the command right?"]
            )
            options = ["Yes, confirm it", "Edit it", "Remove it from claims.toml", "Leave it for later", "Stop here"]
            match await questions.choose(title, [Option(label) for label in options]):
                case 0:
                    await to_thread.run_sync(self.confirmations.keep, [claim])
                    return True
                case 1:
                    if problem := await _edit_claim(file, claim, self.env):
                        await questions.tell(problem)
                case 2:
                    await to_thread.run_sync(_remove, file, claim.id)
                    return True
                case 3:
                    return True
                case _:
                    return False

    def _lines(self, claim: Claim) -> Sequence[str]:
        return list(claim_lines(claim, self.confirmations.confirmed_before(claim.id)))


def _remove(file: ClaimsFile, claim_id: str) -> None:
    save_claims(file.path, without_claims(file.data, [claim_id]), old=file.data)


async def _edit_claim(file: ClaimsFile, claim: Claim, env: Mapping[str, str]) -> str:
    """Let the user edit one claim in their editor; return a sentence if nothing was changed because of a problem."""
    from panpan.faces.terminal.screen.external_program import EditorFailed, edit_in_editor  # imports prompt_toolkit

    text = f"{_HELP}{claim_text(claim)}"
    while True:
        saved = await edit_in_editor(text, env)
        if isinstance(saved, EditorFailed):
            return saved.reason
        if saved == text.removesuffix("\n"):
            return ""
        outcome = _edited_file(file, claim, saved)
        if isinstance(outcome, bytes):
            await to_thread.run_sync(partial(save_claims, file.path, outcome, old=file.data))
            return ""
        if outcome in saved:
            return "the claim stays as it was"  # the user saw the problem, and saved it again
        text = f"# {outcome}\n# Correct it; leave it as it is to keep the claim as it was.\n{saved}\n"


def _edited_file(file: ClaimsFile, claim: Claim, saved: str) -> bytes | str:
    """Return the file with the claim as it was saved, or a sentence that says why that cannot be.

    Args:
        file: The claims.toml.
        claim: The claim before.
        saved: The text that the user saved.
    """
    try:
        claims = parse_claims(saved.encode()).claim
        if len(claims) != 1:
            return f"one [[claim]] is edited at a time, and this has {len(claims)}; keep one"
        return with_changes(file.data, {claim.id: _changes(claim, claims[0])})
    except ConfigError as error:
        return " ".join(str(error).split())


def _changes(old: Claim, new: Claim) -> dict[str, Any]:
    """Return the new values by key; None for keys that are gone."""
    before, after = _values(old), _values(new)
    gone = dict.fromkeys(key for key in before if key not in after)
    return gone | {key: _on_one_line(value) for key, value in after.items() if value != before.get(key)}


def _values(claim: Claim) -> dict[str, Any]:
    values = claim.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {key: _without_none(value) for key, value in values.items()}


def _without_none(value: Any) -> Any:
    return {key: one for key, one in value.items() if one is not None} if isinstance(value, dict) else value


def _on_one_line(value: Any) -> Any:
    """Return a table as one that stands on the line of its key."""
    import tomlkit

    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update({key: _on_one_line(one) for key, one in value.items()})
    return table
