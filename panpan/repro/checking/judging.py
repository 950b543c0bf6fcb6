"""The verdict on a claim, from the numbers of its runs. Nothing here runs or reads anything.

The rule: a verdict does not depend on the order of runs, and says no more than the runs show. What is not
deterministic, was not repeated, or read other data than the paper's never deviates.
"""

from collections.abc import Mapping, Sequence

from panpan.repro.checking.evidence import Evidence, half_of, mean_of
from panpan.repro.checking.hints import hints_of
from panpan.repro.checking.results import ClaimRun, DataCheck, Judgement
from panpan.repro.claims.claim import Claim, Verdict
from panpan.repro.claims.written_number import EXACT, read_number, shown_apart, shown_number
from panpan.system.text.terminal_text import clean_line, counted, listed
from panpan.types.dataclass import dataclass

ENOUGH_SEEDS = 3
"""Fewest seeds that show a deviation where the paper names no seed."""
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Reason that a claim is not run."""

    reason: str
    """Sentence for people."""
    waits_for_confirmation: bool = False


def obstacle_of(claim: Claim, *, is_confirmed: bool) -> Obstacle | None:
    """Return the reason in the claim itself that it is not run; None if there is none.

    Args:
        claim: The claim.
        is_confirmed: True if a person has confirmed it, or the user lets claims run that nobody has confirmed.
    """
    if claim.not_reproducible:
        return Obstacle(clean_line(claim.not_reproducible))
    if read_number(claim.value) is None:
        what = f'"{clean_line(claim.value)}" is no number' if claim.value else "the claim has no number"
        return Obstacle(f"{what}; write the paper's number as its value")
    if not claim.command:
        return Obstacle("no command is known; write one into claims.toml")
    if claim.extract is None:
        return Obstacle("the place of the number is not known; write extract into claims.toml")
    if not is_confirmed:
        return Obstacle("nobody has confirmed it; run panpan repro confirm", waits_for_confirmation=True)
    return None


def judge_all(
    claims: Sequence[Claim],
    runs: Mapping[str, Sequence[ClaimRun]],
    *,
    obstacles: Mapping[str, Obstacle],
    data: Sequence[DataCheck] = (),
) -> tuple[Judgement, ...]:
    """Return the judgement of each claim.

    Args:
        claims: All claims, with different ids.
        runs: Runs of each claim, by its id, in any order.
        obstacles: Reasons that claims were not run, by their ids.
        data: The data files as they were found.
    """
    evidence = {
        claim.id: Evidence(claim, claimed, runs.get(claim.id, ()))
        for claim in claims
        if claim.id not in obstacles and (claimed := read_number(claim.value)) is not None
    }
    return tuple(_judged(claim, runs.get(claim.id, ()), obstacles.get(claim.id), evidence, data) for claim in claims)


def _judged(
    claim: Claim,
    runs: Sequence[ClaimRun],
    obstacle: Obstacle | None,
    evidence: Mapping[str, Evidence],
    data: Sequence[DataCheck],
) -> Judgement:
    if obstacle is None and claim.id not in evidence:
        obstacle = obstacle_of(claim, is_confirmed=True)
    if obstacle is not None:
        return Judgement(
            claim=claim,
            verdict="not reproducible" if claim.not_reproducible else "not run",
            reason=obstacle.reason,
            runs=tuple(runs),
            waits_for_confirmation=obstacle.waits_for_confirmation,
        )
    found = evidence[claim.id]
    verdict, reason = _verdict(found, runs, data)
    interval = found.interval
    return Judgement(
        claim=claim,
        verdict=verdict,
        reason=reason,
        measured=tuple(map(float, found.measured)),
        interval=None if interval is None else (float(interval[0]), float(interval[1])),
        hints=tuple(hints_of(found, verdict, evidence)),
        runs=tuple(runs),
    )


def _verdict(found: Evidence, runs: Sequence[ClaimRun], data: Sequence[DataCheck]) -> tuple[Verdict, str]:
    problems = "; ".join(one.problem for one in data if one.problem)
    if not found.measured:
        return "not run", "; ".join(filter(None, (_why_no_number(runs), problems)))
    if reason := _match(found):
        return "reproduced", reason
    if reason := _spread(found):
        return "within spread", reason
    if problems:
        return "not reproducible", f"{_difference(found)}, with other data: {problems}"
    if found.varies:
        values = listed(shown_apart(found.independent, found.claimed, each=True), _MOST_SHOWN)
        return "not reproducible", f"the same command and seed give other numbers each time, and none is near: {values}"
    if reason := _too_little(found):
        return "not run", reason
    return "deviates", _deviation(found)


def _why_no_number(runs: Sequence[ClaimRun]) -> str:
    """Return the problem of the first run in the order of seeds."""
    ordered = sorted(runs, key=lambda run: (run.seed is not None, run.seed or 0, run.attempt, run.problem))
    first = next((run for run in ordered if run.problem), None)
    if first is None:
        return "there was no run"
    more = f" (and {counted(len(runs) - 1, 'more run')} without a number)" if len(runs) > 1 else ""
    return f"{clean_line(first.problem)}{more}"


def _match(found: Evidence) -> str:
    """Return the reason that it is reproduced; empty if it is not."""
    values = found.at_reference
    if not values or not all(map(found.is_near, values)):
        return ""
    shown = dict.fromkeys(shown_number(value, found.claimed) for value in sorted(values))
    return f"{listed([*shown], _MOST_SHOWN)}{_seed_words(found)} is {_tolerance_words(found)}"


def _spread(found: Evidence) -> str:
    """Return the reason that it is within the spread of runs, or of the paper; empty if it is not."""
    claim, claimed, values = found.claim, found.claimed, found.independent
    if claim.tolerance.exact:
        return ""
    half = half_of(claimed)
    near = sum(map(found.is_near, found.at_reference))
    if near:  # not all, or it would be reproduced
        return f"the same command and seed give other numbers each time, and {near} of {len(found.at_reference)} match"
    if found.interval is not None:
        low, high = found.interval
        if EXACT.subtract(low, half) <= claimed.value <= EXACT.add(high, half):
            ends = f"{shown_number(low, claimed, more=1)} to {shown_number(high, claimed, more=1)}"
            of_runs = f"of {len(values)} {'runs' if found.varies else 'seeds'}"
            how = f"the range {of_runs}" if len(values) < ENOUGH_SEEDS else f"the 95 % prediction interval {of_runs}"
            return f"{clean_line(claim.value)} lies in {ends}, {how}"
    if claim.spread is not None:
        mean = mean_of(values)
        if abs(EXACT.subtract(mean, claimed.value)) <= EXACT.add(EXACT.create_decimal(repr(claim.spread)), half):
            return f"{shown_number(mean, claimed)} lies in the paper's own spread of ± {claim.spread:g}"
    return ""


def _too_little(found: Evidence) -> str:
    """Return what is missing before it may be called a deviation; empty if nothing is."""
    if not found.at_reference:
        return f"the run with the paper's seed {found.claim.seed} gave no number, and others cannot show a deviation"
    if not found.is_repeated:
        return f"{_difference(found)}, and the repeat with the same seed is missing that would show a deviation"
    if found.claim.takes_seed and found.claim.seed is None and len(found.by_seed) < ENOUGH_SEEDS:
        seeds = counted(len(found.by_seed), "seed")
        why = f"{seeds} cannot show a deviation where the paper names none; add --seeds {ENOUGH_SEEDS}"
        return f"{_difference(found)}, but {why}"
    return ""


def _deviation(found: Evidence) -> str:
    claim, times = found.claim, len(found.at_reference)
    if claim.takes_seed and claim.seed is None:
        low, high = found.interval or (found.at_reference[0],) * 2
        ends = f"{shown_number(low, found.claimed, more=1)} to {shown_number(high, found.claimed, more=1)}"
        return f"{_difference(found)}, and {len(found.by_seed)} seeds lead to expect {ends}"
    return f"{_difference(found)}, the same in {counted(times, 'run')}"


def _difference(found: Evidence) -> str:
    claimed, values = found.claimed, found.at_reference or found.independent
    measured = listed(shown_apart(values, claimed), _MOST_SHOWN)
    return f"{measured}{_seed_words(found)} instead of {clean_line(found.claim.value)}"


def _seed_words(found: Evidence) -> str:
    if not found.claim.takes_seed or not found.at_reference:
        return ""
    whose = "the paper's seed" if found.claim.seed is not None else "seed"
    return f" with {whose} {found.reference}"


def _tolerance_words(found: Evidence) -> str:
    """Return the tolerance as the end of a sentence."""
    tolerance, value = found.claim.tolerance, f"{found.claimed.value}"
    if tolerance.exact:
        return f"exactly {value}"
    if tolerance.absolute is not None:
        return f"within {tolerance.absolute:g} of {value}"
    if tolerance.relative is not None:
        return f"within {100 * tolerance.relative:g} % of {value}"
    return f"within half a unit of the last digit of {value}"
