"""Draft of a model: the copy of claims.toml that it edits, and what of it counts.

The rule: what the paper says is not for a model to change. Of a claim that was there, only the way to the number
counts: command, extract, seeds, needs and time. A model adds claims only where there were none at all, and never says
what makes a number right: no tolerance, no confirmation and no reason why nobody can run it. A checksum of data counts
only if the paper or the repository states it, since other data excuses a number. A command that only looks, such as a
search in the README, computes nothing.
"""

from collections.abc import Callable, Iterator, Sequence

from panpan.repro.claims.claim import Claim, Claims, Data, Tolerance
from panpan.repro.claims.written_number import read_number
from panpan.shell_analysis.judge import analyse
from panpan.types.dataclass import dataclass

MODEL_FIELDS = ("command", "timeout_s", "extract", "seed", "seeds", "needs")
"""Fields that a model may fill in."""
_OF_PERSON = {"tolerance": Tolerance.model_construct(), "not_reproducible": "", "confirmed": False}
"""Fields of a new claim that a model has no say in."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Claims with what a model may say about them."""

    claims: Claims
    refused: tuple[str, ...] = ()
    """Changes that do not count, as sentences for people and the model."""

    @property
    def incomplete(self) -> Sequence[Claim]:
        """Claims with a number whose command or extract is still missing."""
        return incomplete(self.claims)


def has_number(claim: Claim) -> bool:
    """True if the paper gives a number for the claim."""
    return read_number(claim.value) is not None


def incomplete(claims: Claims) -> Sequence[Claim]:
    """Return the claims with a number to which a command or an extract is missing."""
    return [
        claim for claim in claims.claim if has_number(claim) and not claim.not_reproducible and not is_complete(claim)
    ]


def merged(before: Claims, draft: Claims, is_stated: Callable[[str], bool]) -> Merged:
    """Return the claims with what counts of a draft.

    Args:
        before: The claims as the model found them.
        draft: Its copy as it left it.
        is_stated: Says if the paper or the repository has a checksum.
    """
    refused: list[str] = []
    if before.claim:
        claims = _completed(before.claim, draft.claim, refused)
    else:
        new = (claim.model_copy(update=_OF_PERSON) for claim in draft.claim)
        claims = tuple(_computing(claim, Claim(id=claim.id), refused) for claim in new)
    environment = draft.environment if before.environment == type(before.environment)() else before.environment
    data = (*before.data, *_added_data(before, draft, is_stated, refused))
    together = before.model_copy(update={"claim": claims, "environment": environment, "data": data})
    return Merged(together, tuple(refused))


def _added_data(before: Claims, draft: Claims, is_stated: Callable[[str], bool], refused: list[str]) -> Iterator[Data]:
    known = {one.path for one in before.data}
    for one in draft.data:
        if one.path in known:
            continue
        if one.sha256 and not is_stated(one.sha256):
            refused.append(f"{one.path}: neither the paper nor the repository states its checksum")
            one = one.model_copy(update={"sha256": ""})
        yield one


def _completed(before: Sequence[Claim], draft: Sequence[Claim], refused: list[str]) -> tuple[Claim, ...]:
    by_id = {claim.id: claim for claim in draft}
    refused += [f"{one.id}: the paper has no such claim" for one in draft if one.id not in {old.id for old in before}]
    claims = []
    for old in before:
        new = by_id.get(old.id)
        if new is None:
            refused.append(f"{old.id}: a claim of the paper stays")
            claims.append(old)
            continue
        refused += [f"{old.id}: {name} stays as it was" for name in _changed_facts(old, new)]
        if is_complete(old):
            claims.append(old)
            continue
        given = {name: getattr(new, name) for name in MODEL_FIELDS if name in new.model_fields_set}
        kept = {"seed": old.seed} if old.seed is not None else {}  # the paper names it
        claims.append(_computing(old.model_copy(update={**given, **kept}), old, refused))
    return tuple(claims)


def _computing(claim: Claim, old: Claim, refused: list[str]) -> Claim:
    """Return a claim as it was if the command of a draft only looks."""
    if claim.command == old.command or not analyse(claim.command).is_read_only:
        return claim
    refused.append(f"{claim.id}: a command that only looks computes nothing")
    return claim.model_copy(update={"command": old.command, "extract": old.extract})


def is_complete(claim: Claim) -> bool:
    """True if a claim's command and extract are given, so that a model has nothing to add."""
    return bool(claim.command.strip() and claim.extract)


def _changed_facts(old: Claim, new: Claim) -> Sequence[str]:
    names = [name for name in Claim.model_fields if name not in MODEL_FIELDS and name != "id"]
    return [name for name in names if not _is_same(getattr(old, name), getattr(new, name))]


def _is_same(old: object, new: object) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return old.strip() == new.strip()
    return old == new
