"""Rules of `claims.toml` that concern more than one key.

The rule: what cannot work is found before the first command runs.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from panpan.config.keys import KeyPath, shown
from panpan.repro.claims.claim import Claim, Claims, Extract, Tolerance

_MAX_PATTERN_CHARS = 1_000
_LEAST_SCALE, _MOST_SCALE = 1e-15, 1e15


class Problem(NamedTuple):
    """A mistake in the file."""

    path: KeyPath
    """The key at fault."""
    item: int | None
    """Number of the claim or data file, from 0."""
    sentence: str
    """Problem and correction, without the key."""


def problems_of(claims: Claims) -> Iterator[Problem]:
    """Yield all problems of a file."""
    if claims.environment.python is not None and claims.environment.kind == "none":
        yield Problem(("environment", "python"), None, 'is for environments of uv; set environment.kind = "uv"')
    for number, data in enumerate(claims.data):
        if wrong := _path_problem(data.path):
            yield Problem(("data", "path"), number, wrong)
    seen: dict[str, int] = {}
    for number, claim in enumerate(claims.claim):
        if (first := seen.setdefault(claim.id, number)) != number:
            yield Problem(("claim", "id"), number, f"is that of claim {first + 1}, too; choose another")
        for key, sentence in _of_claim(claim):
            yield Problem(("claim", *key), number, sentence)


def _of_claim(claim: Claim) -> Iterator[tuple[KeyPath, str]]:
    if not claim.id.isprintable():
        yield ("id",), "has a character that cannot be seen; remove it"
    if claim.seeds and not claim.takes_seed:
        yield ("seeds",), "is for commands with {seed}; write {seed} into the command, or remove it"
    if len(set(claim.seeds)) < len(claim.seeds):
        yield ("seeds",), "names a seed twice; remove one"
    for path in claim.needs.files:
        if wrong := _path_problem(path):
            yield ("needs", "files"), wrong
    yield from ((("tolerance", *key), sentence) for key, sentence in _of_tolerance(claim.tolerance))
    if claim.extract is not None:
        yield from ((("extract", *key), sentence) for key, sentence in _of_extract(claim.extract))


def _of_tolerance(tolerance: Tolerance) -> Iterator[tuple[KeyPath, str]]:
    given = [name for name in ("absolute", "relative", "runs") if getattr(tolerance, name) is not None]
    given += ["exact"] * tolerance.exact
    if len(given) > 1:
        yield (given[1],), f"contradicts {given[0]}; remove one of the two"


_PLACES = ("output", "json", "csv", "file")
_COMPANIONS = {"at": "json", "where": "csv", "column": "csv", "match": "file"}


def _of_extract(extract: Extract) -> Iterator[tuple[KeyPath, str]]:
    values = extract.model_dump(by_alias=True, exclude_defaults=True)
    places = [name for name in _PLACES if name in values]
    if len(places) != 1:
        yield (), f"has {_listed(places)}; write one of output, json, csv and file"
        return
    for name, place in _COMPANIONS.items():
        if name in values and place not in values:
            yield (name,), f"is for {place}; remove it, or write {place}"
    for name, place in (("column", "csv"), ("match", "file")):
        if place in values and name not in values:
            yield (), f"has {place} without {name}; add it"
    if extract.path and (wrong := _path_problem(extract.path)):
        yield (places[0],), wrong
    for name in ("output", "match"):
        if name in values and (wrong := _pattern_problem(values[name])):
            yield (name,), wrong
    if not _LEAST_SCALE <= abs(extract.scale) <= _MOST_SCALE:
        yield ("scale",), f"is {extract.scale:g}; write a factor whose size is {_LEAST_SCALE:g} to {_MOST_SCALE:g}"


def _listed(places: Sequence[str]) -> str:
    return " and ".join(places) if places else "no place"


def _path_problem(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        return f"is {shown(path)}, which may lie outside; write a path below the top of the repository"
    return "" if path.isprintable() else "has a character that cannot be seen; remove it"


def _pattern_problem(pattern: str) -> str:
    if len(pattern) > _MAX_PATTERN_CHARS:
        return f"is too long; write at most {_MAX_PATTERN_CHARS:,} characters"
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no pattern: {shown(error)}; correct it"
    if groups != 1:
        return f"has {groups} groups; put ( ) around the number, and (?: ) around others"
    return ""
