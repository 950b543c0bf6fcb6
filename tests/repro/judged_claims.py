"""Checks for tests of reports: claims with every verdict."""

from panpan.receipts.receipt import EnvironmentIdentity, FileDigest, Receipt
from panpan.repro.checking.results import CheckReport, ClaimRun, DataCheck, Judgement
from panpan.repro.claims.claim import Claim, Verdict

COMMAND = "python3 experiment.py --seed {seed}"


def judged(
    row: str, value: str, verdict: Verdict, reason: str, measured: tuple[float, ...] = (), hints: tuple[str, ...] = ()
) -> Judgement:
    """Return a claim of "Table 1" with a verdict, with a run for each number."""
    claim = Claim(id=f"table-1/{row}", table="Table 1", row=row, value=value, command=COMMAND if measured else "")
    runs = tuple(
        ClaimRun(seed=seed, number=str(number), receipt=receipt_of(seed)) for seed, number in enumerate(measured)
    )
    return Judgement(
        claim=claim, verdict=verdict, reason=reason, measured=measured, hints=hints, runs=runs if measured else ()
    )


def receipt_of(seed: int) -> Receipt:
    """Return the receipt of a run."""
    return Receipt(
        id=f"{seed:08x}",
        argv=("/bin/sh", "-c", COMMAND.replace("{seed}", str(seed))),
        cwd=".",
        began_at="2026-11-30T05:00:00.000+00:00",
        ended_at="2026-11-30T05:00:02.000+00:00",
        seconds=2.0,
        exit_code=0,
        box="bubblewrap",
        environment=EnvironmentIdentity(interpreter="/home/ada/venv/bin/python", version="3.11.9"),
    )


def check_of(*judgements: Judgement) -> CheckReport:
    """Return a check with these claims, of a folder of the user, with data and a changed file."""
    return CheckReport(
        title="Robust means of toys",
        source="/home/ada/toys",
        commit="0123456789abcdef0123456789abcdef01234567",
        began_at="2026-11-30T05:00:00.000+00:00",
        ended_at="2026-11-30T05:01:00.000+00:00",
        data=(
            DataCheck(
                path="data/toys.csv",
                stated_sha256="a" * 64,
                found=FileDigest(path="data/toys.csv", size=2_048, sha256="b" * 64),
                problem="its SHA-256 is not the stated one",
            ),
        ),
        judgements=judgements,
        written_here=("experiment.py",),
    )


EVERY_VERDICT = check_of(
    judged("trimmed mean", "3.50", "reproduced", "the run gives 3.50", (3.5,)),
    judged("bootstrap", "3.41", "within spread", "5 runs give 3.3 to 3.6", (3.38, 3.41, 3.52), ("of seed 1, not 0",)),
    judged("accuracy", "87.2", "deviates", "2 runs with the same seed give 85", (85.0,), ("34/39 instead of 34/40",)),
    judged("median", "4.00", "not reproducible", "the data is not the paper's", (4.5,)),
    judged("large model", "91.3", "not run", "it needs 8 GPUs, and there is none"),
)
