"""Records of a check: the runs of each claim and the judgement. All are JSON on disk."""

from collections.abc import Mapping, Sequence
from typing import get_args

from pydantic import BaseModel, ConfigDict

from panpan.receipts.receipt import FileDigest, Receipt
from panpan.repro.claims.claim import Claim, Verdict

VERDICTS: Sequence[Verdict] = get_args(Verdict)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ClaimRun(_Record):
    """One run of a claim's command, or the reason that there was none."""

    seed: int | None = None
    """None if the command takes none."""
    attempt: int = 1
    """Number among the runs with this seed."""
    number: str = ""
    """The number as it was found, before it is scaled; empty if there is none."""
    problem: str = ""
    """Sentence that says why there is no number; empty if there is one."""
    receipt: Receipt | None = None
    """None if the command did not start."""
    output: str = ""
    """File with what the command printed, relative to the folder of check.json; empty if there is none."""
    files: str = ""
    """Folder in which the command ran, as it left it, relative to the folder of check.json; empty if there is none."""


class Judgement(_Record):
    """Outcome of one claim."""

    claim: Claim
    verdict: Verdict
    reason: str
    """One sentence for people, without the verdict's name."""
    measured: tuple[float, ...] = ()
    """Numbers of the runs in the unit of the claim, in the order of `runs`; runs without a number are left out."""
    interval: tuple[float, float] | None = None
    """Interval in which a further run is expected, in the unit of the claim."""
    hints: tuple[str, ...] = ()
    """Observations that may explain a difference, such as that two digits are swapped. They decide nothing."""
    runs: tuple[ClaimRun, ...] = ()
    waits_for_confirmation: bool = False
    """True if it was not run since nobody has confirmed it."""


class DataCheck(_Record):
    """A data file as it was when the check ran."""

    path: str
    stated_sha256: str = ""
    found: FileDigest | None = None
    """None if it is missing."""
    files: tuple[FileDigest, ...] = ()
    """Files of a folder, as far as they are digested."""
    problem: str = ""
    """Sentence; empty if it is there and is what was stated, or nothing was stated."""


class InstalledPackages(_Record):
    """The Python packages of an environment in which commands ran."""

    sha256: str
    """Their digest, as the receipts of these commands have it."""
    packages: tuple[str, ...]
    """Sorted, each as `name==version`."""


class CheckReport(_Record):
    """`check.json`: a whole check."""

    version: int = 1
    title: str = ""
    source: str = ""
    """Address or folder of the repository, as the user gave it."""
    commit: str = ""
    """Commit of the repository that was run; empty if it has none."""
    is_changed: bool = False
    """True if files differ from that commit."""
    began_at: str = ""
    ended_at: str = ""
    data: tuple[DataCheck, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    environments: tuple[InstalledPackages, ...] = ()
    """Environments of the runs whose packages are known, those of most runs first."""
    written_here: tuple[str, ...] = ()
    """Files that a model wrote or changed on the way and that runs read, relative to the repository."""

    @property
    def deviates(self) -> bool:
        """True if a claim deviates; only then a check exits with 1."""
        return any(one.verdict == "deviates" for one in self.judgements)

    @property
    def receipts(self) -> Sequence[Receipt]:
        """Receipts of the runs, each once, in the order of the claims: several claims may share a run."""
        runs = [run for one in self.judgements for run in one.runs]
        return list({run.receipt.id: run.receipt for run in runs if run.receipt is not None}.values())

    @property
    def waits(self) -> bool:
        """True if claims wait for confirmation."""
        return any(one.waits_for_confirmation for one in self.judgements)

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Number of claims with each verdict that occurs, in the order of `VERDICTS`."""
        verdicts = [one.verdict for one in self.judgements]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS if verdict in verdicts}
