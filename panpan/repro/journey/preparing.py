"""Preparing: a model completes claims.toml, with the commands and the places of their numbers.

The rule: the model edits a copy, and only what `merged` takes of it counts.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from anyio import to_thread

from panpan.batch.store.folder import write_whole
from panpan.errors import ConfigError
from panpan.repro.claims.claim import Claim, Claims, Environment
from panpan.repro.claims.claims_file import (
    ClaimsFile,
    claims_text,
    load_claims,
    parse_claims,
    save_claims,
    with_changes,
)
from panpan.repro.journey.claims_draft import MODEL_FIELDS, Merged, has_number, incomplete, merged
from panpan.repro.journey.model_runs import ModelRuns
from panpan.repro.journey.repository_files import stated_in
from panpan.repro.journey.reproduction_folder import ReproductionFolder
from panpan.repro.journey.simple_questions import ask_simply
from panpan.system.files.folder_tree import make_folders

MAX_TRIES = 3
"""Times that the model is told what is wrong with its draft."""
_MAX_LISTED = 200


def is_prepared(claims: Claims) -> bool:
    """True if a model has nothing to add."""
    return bool(claims.claim) and not incomplete(claims)


async def prepare(folder: ReproductionFolder, runs: ModelRuns, say: Callable[[str], None]) -> None:
    """Let the model complete the claims, if it was not asked about these before.

    Args:
        folder: The folder of the reproduction, with its claims.toml.
        runs: The model.
        say: Gets a line for people.

    Raises:
        AnswerNeededError: It waits for the user.
        BudgetError: The money is used up.
        ConfigError: There is no model, or its draft cannot be used.
        PanpanError: It failed.
    """
    before = await to_thread.run_sync(load_claims, folder.path)
    if is_prepared(before.claims):
        return
    if await runs.is_small():
        result = await _simply(folder, runs, Merged(before.claims), say)
    else:
        result = await _by_its_draft(folder, runs, before, say)
        if len(result.incomplete) == sum(map(has_number, result.claims.claim)):
            result = await _simply(folder, runs, result, say)
    for refused in result.refused:
        say(f"prepare: not taken from the model: {refused}")
    await to_thread.run_sync(_write_merged, before, result.claims)
    total = sum(map(has_number, result.claims.claim))
    say(f"prepare: {total - len(result.incomplete)} of {total} numbers have what a run needs")


async def _by_its_draft(
    folder: ReproductionFolder, runs: ModelRuns, before: ClaimsFile, say: Callable[[str], None]
) -> Merged:
    """Let the model work in the repository and edit its draft, and return what counts of it."""
    about = digest_of(before.claims)
    work = runs.work("prepare", about)
    flags = ("--add-dir", str(folder.draft))
    if work is None:
        await to_thread.run_sync(_write_draft, folder, before.data)
    if work is None or not work.has_ended:
        say("prepare: the model looks for the commands of the claims")
        message = work.prompts[0] if work is not None and work.prompts else _task(folder, before.claims)
        await runs.ask("prepare", about, message, flags)
    return await _usable_draft(folder, runs, about, before.claims, flags)


async def _simply(folder: ReproductionFolder, runs: ModelRuns, result: Merged, say: Callable[[str], None]) -> Merged:
    """Ask about each claim alone, since a small model may manage that."""
    if not result.incomplete:
        return result
    say("prepare: the model is asked about each number alone")
    answers = {claim.id: claim for claim in await ask_simply(folder, runs, result.incomplete, say)}
    draft = result.claims.model_copy(
        update={"claim": tuple(answers.get(claim.id, claim) for claim in result.claims.claim)}
    )
    again = merged(result.claims, draft, lambda _: False)
    return Merged(again.claims, (*result.refused, *again.refused))


def digest_of(claims: Claims) -> str:
    """Return a digest of what the model is asked about: the claims as the paper has them."""
    facts = [claim.model_dump(mode="json", exclude=set(MODEL_FIELDS) | {"confirmed"}) for claim in claims.claim]
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


async def _usable_draft(
    folder: ReproductionFolder, runs: ModelRuns, about: str, before: Claims, flags: Sequence[str]
) -> Merged:
    """Return what counts of the draft; tell the model what is wrong with it as long as that may help."""
    for number in range(1, MAX_TRIES + 2):
        try:
            draft = (await to_thread.run_sync(load_claims, folder.draft)).claims
            return await to_thread.run_sync(merged, before, draft, await stated_in(folder))
        except ConfigError as error:
            if number > MAX_TRIES:
                raise ConfigError(
                    f"the model left a file that cannot be used: {error}; mend {folder.draft_file}, then begin again"
                ) from error
            message = f"The file {folder.draft_file} is not right ({number} of {MAX_TRIES}): {error}. Mend it."
        await runs.ask("prepare", about, message, flags)
    raise AssertionError("the last try returns or raises")


def _write_draft(folder: ReproductionFolder, data: bytes) -> None:
    make_folders(folder.draft)
    write_whole(folder.draft_file, data)


def _task(folder: ReproductionFolder, claims: Claims) -> str:
    text = (files("panpan.repro.journey") / "prepare.md").read_text(encoding="utf-8")
    return text.replace("{draft}", str(folder.draft_file)).replace("{task}", _listing(folder, claims))


def _listing(folder: ReproductionFolder, claims: Claims) -> str:
    paper = f" The paper is {folder.paper}." if folder.paper is not None else " The paper is the repository's README."
    missing = [claim.id for claim in incomplete(claims)]
    if not claims.claim:
        return f"The file has no claims yet.{paper} Write one for each number of its main tables, as the paper has it."
    more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
    return f"To complete: {', '.join(missing[:_MAX_LISTED])}{more}.{paper}"


def _write_merged(before: ClaimsFile, claims: Claims) -> None:
    """Write the claims into the file of before; what a person wrote into it stays."""
    if claims != before.claims:
        save_claims(before.path, merged_text(before.data, before.claims, claims), old=before.data)


def merged_text(data: bytes, before: Claims, after: Claims) -> bytes:
    """Return the content of a claims.toml with what came to its claims, its environment and its data."""
    old = {claim.id: claim for claim in before.claim}
    changes = {
        claim.id: changed for claim in after.claim if claim.id in old and (changed := _changes(old[claim.id], claim))
    }
    came = Claims(
        claim=tuple(claim for claim in after.claim if claim.id not in old),
        data=after.data[len(before.data) :],
        environment=after.environment if after.environment != before.environment else Environment.model_construct(),
    )
    try:
        text = with_changes(data, changes) + b"\n" + claims_text(came).encode()
        if parse_claims(text) == after:
            return text
    except ConfigError:  # its layout does not bear additions
        pass
    return claims_text(after).encode()


def _changes(old: Claim, new: Claim) -> Mapping[str, Any]:
    dumped = new.model_dump(by_alias=True, exclude_defaults=True, mode="json")
    return {name: dumped.get(name) for name in MODEL_FIELDS if getattr(old, name) != getattr(new, name)}
