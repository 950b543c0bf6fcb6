"""Runs of the claims of a check: each command once for each seed, again where a number misses, and their numbers.

The rule: a number counts only if the run brought it about. A file that was in the repository before is no result.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count, islice
from pathlib import Path

from anyio import CancelScope

from panpan.repro.checking.check_campaign import CheckCampaigns, Outcome, Run
from panpan.repro.checking.evidence import Evidence, reference_seed
from panpan.repro.checking.extraction import find_numbers
from panpan.repro.checking.judging import ENOUGH_SEEDS, judge_all
from panpan.repro.checking.results import ClaimRun
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.written_number import read_number
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.terminal_text import clean_line, counted
from panpan.types.dataclass import dataclass

_MOST_ROUNDS = 10
"""Rounds of runs; what they cannot decide stays undecided."""
_MAX_NAME_CHARS = 120


class ClaimRuns:
    """Runs of claims. Claims with the same command share them.

    Args:
        claims: Claims that can be run.
        campaigns: Runs the commands.
        results: Folder of the results; canonical.
        notify: Gets a line for people now and then.
    """

    def __init__(
        self, claims: Sequence[Claim], campaigns: CheckCampaigns, results: Path, notify: Callable[[str], None]
    ) -> None:
        self._claims = claims
        self._campaigns = campaigns
        self._results = results
        self._notify = notify
        self._found: dict[str, list[ClaimRun]] = {claim.id: [] for claim in claims}

    async def make(self, seeds: int | None, at_once: int | None) -> Mapping[str, Sequence[ClaimRun]]:
        """Return the runs of each claim by its id, with repeats and further seeds where a number misses.

        Args:
            seeds: Different seeds to begin with; None: as the claims say.
            at_once: Runs at once on one machine; None: as campaigns do.

        Raises:
            ConfigError: The runs cannot begin.
            OutputError: The folder of the results cannot be written.
        """
        sandbox = CommandSandbox(is_on=True)
        try:
            planned = [one for claim in self._claims for one in self._planned(claim, first_seeds(claim, seeds))]
            for number in range(_MOST_ROUNDS):
                if not planned:
                    break
                await self._run(planned, at_once, sandbox, is_again=number > 0)
                planned = [
                    one
                    for claim in self._claims
                    for one in self._planned(claim, further_seeds(claim, self._found[claim.id]))
                ]
            await self._campaigns.remove_environments()
        finally:
            with CancelScope(shield=True):
                await sandbox.aclose()
        return self._found

    def _planned(self, claim: Claim, seeds: Sequence[int | None]) -> Sequence["_Planned"]:
        tried = Counter(run.seed for run in self._found[claim.id])
        planned = []
        for seed in seeds:
            tried[seed] += 1
            planned.append(_Planned(claim, seed, tried[seed]))
        return planned

    async def _run(
        self, planned: Sequence["_Planned"], at_once: int | None, sandbox: CommandSandbox, *, is_again: bool
    ) -> None:
        of_run: dict[tuple[str, int], list[_Planned]] = defaultdict(list)
        for one in planned:
            of_run[one.line, one.number].append(one)
        runs = {key: self._shared(those[0]) for key, those in of_run.items()}
        commands = counted(len({line for line, _ in runs}), "command")
        why = " again, since numbers are not the paper's" if is_again else ""
        self._notify(f"{counted(len(runs), 'run')} of {commands}{why}")
        ends = await self._campaigns.outcomes(list(runs.values()), at_once=at_once)
        for key, those in of_run.items():
            for one, found in zip(those, await self._numbers(those, ends[runs[key].key], sandbox), strict=True):
                self._found[one.claim.id].append(found)

    def _shared(self, one: "_Planned") -> Run:
        """Return a run with the limits and rights that all claims with its command give together."""
        claims = [claim for claim in self._claims if _line_of(claim, one.seed) == one.line or claim == one.claim]
        return Run(
            line=one.line,
            number=one.number,
            timeout_s=max(claim.timeout_s for claim in claims),
            has_network=any(claim.needs.network for claim in claims),
            gpus=max(claim.needs.gpus for claim in claims),
            memory_gb=max(claim.needs.memory_gb for claim in claims),
            name=_name_of(claims[0], one.seed),
        )

    async def _numbers(
        self, planned: Sequence["_Planned"], end: Outcome, sandbox: CommandSandbox
    ) -> Sequence[ClaimRun]:
        """Return the runs of the claims that share one run."""
        if end.problem or end.attempt is None or end.files is None:
            return [self._claim_run(one, end, problem=end.problem) for one in planned]
        extracts = [one.claim.extract for one in planned if one.claim.extract is not None]
        found = await find_numbers(extracts, end.files, end.attempt.output, sandbox)
        runs = []
        for one, extract, number in zip(planned, extracts, found, strict=True):
            is_old = bool(extract.path) and not number.problem and not end.wrote(extract.path)
            old = f"{clean_line(extract.path)} is in the repository, and the command did not write it" if is_old else ""
            runs.append(self._claim_run(one, end, "" if old else number.number, old or number.problem))
        return runs

    def _claim_run(self, one: "_Planned", end: Outcome, number: str = "", problem: str = "") -> ClaimRun:
        return ClaimRun(
            seed=one.seed,
            attempt=one.number,
            number=number,
            problem=problem,
            receipt=end.receipt,
            output="" if end.attempt is None else self._shown(end.attempt.output),
            files="" if end.files is None else self._shown(end.files),
        )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._results).as_posix()


@dataclass(frozen=True, slots=True)
class _Planned:
    """A run that a claim needs."""

    claim: Claim
    seed: int | None
    number: int
    """Number among its runs with this seed."""

    @property
    def line(self) -> str:
        return _line_of(self.claim, self.seed)


def _line_of(claim: Claim, seed: int | None) -> str:
    return claim.command if seed is None else claim.command.replace("{seed}", str(seed))


def _name_of(claim: Claim, seed: int | None) -> str:
    """Return a name for a task, which has at most 200 characters."""
    name = claim.id
    if len(name) > _MAX_NAME_CHARS:
        name = f"{name[:_MAX_NAME_CHARS]}~{sha256(name.encode()).hexdigest()[:8]}"
    return name if seed is None else f"{name}-seed-{seed}"


def first_seeds(claim: Claim, seeds: int | None) -> Sequence[int | None]:
    """Return the seed of each run to begin with, the one that counts first in front; None for no seed.

    Args:
        claim: The claim.
        seeds: Different seeds that the user wants; None: those of the claim, or one.
    """
    runs = claim.tolerance.runs or 1
    if not claim.takes_seed:
        return (None,) * runs
    wanted = max(seeds or len(claim.seeds), runs, 1)
    return tuple(islice(_all_seeds(claim), wanted))


def further_seeds(claim: Claim, runs: Sequence[ClaimRun]) -> Sequence[int | None]:
    """Return the seeds of further runs without which no verdict can be reached; none once they were tried.

    Args:
        claim: The claim.
        runs: Its runs so far.
    """
    claimed = read_number(claim.value)
    if claimed is None:
        return ()
    verdict = judge_all([claim], {claim.id: runs}, obstacles={})[0].verdict
    found = Evidence(claim, claimed, runs)
    if not found.measured or verdict in ("reproduced", "within spread"):
        return ()
    tried = Counter(run.seed if claim.takes_seed else None for run in runs)
    repeats = max(found.repeats_needed - tried[found.reference], 0)
    more: Iterator[int] = iter(())
    if claim.takes_seed and claim.seed is None:
        more = islice((seed for seed in _all_seeds(claim) if seed not in tried), max(ENOUGH_SEEDS - len(tried), 0))
    return (*(found.reference,) * repeats, *more)


def _all_seeds(claim: Claim) -> Iterator[int]:
    """Yield different seeds without end: the one that counts first, those of the claim, then 0, 1, 2 and so on."""
    first = reference_seed(claim)
    assert first is not None, "its command takes a seed"
    given = dict.fromkeys((first, *claim.seeds))
    yield from given
    yield from (seed for seed in count() if seed not in given)
