"""A claim in words, as a person reads it before they confirm it.

The rule: every character of what a person confirms is visible.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from panpan.repro.claims.claim import Claim, Extract, Tolerance
from panpan.system.text.terminal_text import escape_invisible


def claim_lines(claim: Claim, before: Sequence[Claim] = ()) -> Iterator[str]:
    """Yield the lines about a claim.

    Args:
        claim: The claim.
        before: The claim as it was when the user confirmed it, if it has changed since.
    """
    yield f"Claim: {_shown(claim.id)}"
    yield f"The paper says: {_shown(_value_words(claim))}{_place(claim)}"
    if claim.quote:
        yield f"  it reads: {_shown(claim.quote)}"
    yield f"Command: {_shown(claim.command) or 'none'}"
    yield f"Its number: {_shown(_extract_words(claim.extract))}"
    yield f"Tolerance: {_tolerance_words(claim.tolerance)}"
    yield from (f"{name}: {_shown(text)}" for name, text in _further(claim))
    for old in before[-1:]:
        yield from (f"Changed since you confirmed it: {_shown(line)}" for line in _changes(old, claim))


def _value_words(claim: Claim) -> str:
    """Return the number with its spread and unit."""
    spread = f" ± {claim.spread:g}" if claim.spread is not None else ""
    return f"{claim.value}{spread}{f' {claim.unit}' if claim.unit else ''}"


def _place(claim: Claim) -> str:
    row = f'row "{_shown(claim.row)}"' if claim.row else ""
    column = f'column "{_shown(claim.column)}"' if claim.column else ""
    page = f"page {claim.page}" if claim.page is not None else ""
    parts = ", ".join(filter(None, (_shown(claim.table), row, column, page)))
    return f" ({parts})" if parts else ""


def _extract_words(extract: Extract | None) -> str:
    """Return the place of a claim's number after a run."""
    if extract is None:
        return "no place is known"
    scale = f", times {extract.scale:g}" if extract.scale != 1 else ""
    if extract.output is not None:
        return f"last match of {extract.output} in the output{scale}"
    if extract.json_file is not None:
        return f"{extract.at or 'the value'} in {extract.json_file}{scale}"
    if extract.csv is not None:
        where = ", ".join(f"{name} is {value}" for name, value in extract.where.items())
        return f"column {extract.column} of {extract.csv}{f' where {where}' if where else ''}{scale}"
    return f"last match of {extract.match} in {extract.file}{scale}"


def _tolerance_words(tolerance: Tolerance) -> str:
    """Return the distance that a measured number may have."""
    if tolerance.exact:
        return "the same digits"
    if tolerance.absolute is not None:
        return f"±{tolerance.absolute:g}"
    if tolerance.relative is not None:
        return f"±{tolerance.relative:.3%} of the value"
    if tolerance.runs is not None:
        return f"the interval of {tolerance.runs} runs with different seeds"
    return "half a unit of the last written digit"


def _further(claim: Claim) -> Iterator[tuple[str, str]]:
    if claim.seed is not None:
        yield "Seed of the paper", str(claim.seed)
    if claim.seeds:
        yield "Seeds", ", ".join(map(str, claim.seeds))
    needs = claim.needs.model_dump(mode="json", exclude_defaults=True)
    if needs:
        yield "Needs", ", ".join(f"{name} {_plain(value)}" for name, value in needs.items())


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else "yes" if value is True else str(value)


def _changes(old: Claim, new: Claim) -> Iterator[str]:
    before = old.model_dump(mode="json", by_alias=True, exclude={"confirmed"})
    after = new.model_dump(mode="json", by_alias=True, exclude={"confirmed"})
    for key, value in before.items():
        if value != after[key]:
            yield f"{key} was {value!r}"


def _shown(text: str) -> str:
    return " ".join(escape_invisible(text).split())
