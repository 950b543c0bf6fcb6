"""A project with numbers that anybody can see, and the check of its claims, written by hand."""

import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from panpan.receipts.receipt import EnvironmentIdentity, FileDigest, Receipt
from panpan.repro.checking.results import CheckReport, ClaimRun, DataCheck, Judgement
from panpan.repro.claims.claim import Claim, Claims, Verdict
from panpan.repro.kit.write_kit import Reproduction

EXPERIMENT = """\
import json, pathlib, sys
seed = int(sys.argv[1])
values = [float(line) for line in pathlib.Path("data/toys.csv").read_text().split()]
print("mean:", sum(values) / len(values))
pathlib.Path("out").mkdir()
pathlib.Path("out/metrics.json").write_text(json.dumps({"test": {"accuracy": (80 + seed) / 100}}))
pathlib.Path("table.csv").write_text("method,f1\\nours,35.6\\ntheirs,30\\n")
"""
TOYS = "1\n2\n3\n4\n"
COMMAND = "python experiment.py {seed}"
WHEN = "2026-01-02T03:04:05.678+00:00"
CLAIMS_TOML = """\
[paper]
title = "Robust means of toys"

[[data]]
path = "data/toys.csv"
url = "https://toys.example/toys.csv"
version = "2"
"""


def claims() -> Sequence[tuple[Claim, Verdict, Sequence[tuple[int, str]]]]:
    """Return claims with the verdicts and numbers of their check."""
    accuracy = {"json": "out/metrics.json", "at": "test.accuracy", "scale": 100.0}
    f1 = {"csv": "table.csv", "where": {"method": "ours"}, "column": "f1"}
    mean = {"output": "mean: ([0-9.]+)"}
    return (
        (_claim("mean", "2.5", mean, seed=0), "reproduced", [(0, "2.5")]),
        (_claim("accuracy", "81.2", accuracy), "within spread", [(0, "0.8"), (1, "0.81"), (2, "0.82")]),
        (_claim("f1", "36.5", f1, seed=0), "deviates", [(0, "35.6")]),
        (_claim("time", "3", None), "not run", []),
    )


def _claim(name: str, value: str, extract: Mapping[str, object] | None, seed: int | None = None) -> Claim:
    given = {"id": name, "value": value, "extract": extract, "seed": seed, "command": COMMAND if extract else ""}
    return Claim.model_validate({**given, "timeout_s": 60.0})


def check_of(commit: str, data: Sequence[DataCheck] = (), receipts: Mapping[int, Receipt] | None = None) -> CheckReport:
    """Return the check of the claims."""
    known = receipts or {seed: receipt_of(seed) for seed in range(3)}
    judgements = [
        Judgement(
            claim=claim,
            verdict=verdict,
            reason="said by hand",
            measured=tuple(float(number) for _, number in numbers),
            runs=tuple(ClaimRun(seed=seed, number=number, receipt=known[seed]) for seed, number in numbers),
        )
        for claim, verdict, numbers in claims()
    ]
    return CheckReport(
        title="Robust means of toys",
        source="https://toys.example/robust",
        commit=commit,
        began_at=WHEN,
        ended_at=WHEN,
        data=tuple(data),
        judgements=tuple(judgements),
    )


def receipt_of(seed: int) -> Receipt:
    """Return the receipt of the run with a seed."""
    line = COMMAND.replace("{seed}", str(seed))
    return Receipt(
        id=f"0000000{seed}",
        argv=("/bin/sh", "-c", line),
        commands=(tuple(line.split()),),
        cwd=".",
        began_at=WHEN,
        ended_at=WHEN,
        seconds=0.4,
        exit_code=0,
        box="bubblewrap",
        environment=EnvironmentIdentity(interpreter="/usr/bin/python3.11", version="3.11.2"),
        seeds={"seed": str(seed)},
        inputs=(FileDigest(path="data/toys.csv", size=8, sha256=sha256(TOYS.encode()).hexdigest()),),
        outputs=(FileDigest(path="out/metrics.json", size=29, sha256="a" * 64),),
        inputs_are="opened",
        output_sha256="b" * 64,
    )


def toy_data() -> DataCheck:
    """Return the check of the data that is not in the repository."""
    return DataCheck(
        path="data/toys.csv",
        found=FileDigest(path="data/toys.csv", size=len(TOYS), sha256=sha256(TOYS.encode()).hexdigest()),
    )


def git(folder: Path, *args: str) -> str:
    """Run git in a folder with nobody's configuration."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    words = ["git", "-c", "user.name=somebody", "-c", "user.email=somebody@toys.example", *args]
    return subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout.strip()


def toy_project(folder: Path, *, has_data: bool = True) -> str:
    """Write the project as a repository, and return its commit."""
    folder.mkdir(parents=True)
    (folder / "experiment.py").write_text(EXPERIMENT)
    if has_data:
        write_toys(folder)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "toys")
    return git(folder, "rev-parse", "HEAD")


def write_toys(folder: Path, text: str = TOYS) -> None:
    """Write the data below a folder."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data/toys.csv").write_text(text)


def reproduction(folder: Path, source: Path, **further: object) -> Reproduction:
    """Return the facts of a reproduction in a folder, whose user is nobody in particular."""
    folder.mkdir(parents=True, exist_ok=True)
    claims_file = folder / "claims.toml"
    if not claims_file.exists():
        claims_file.write_text(CLAIMS_TOML)
    paper = {"paper": {"title": "Robust means of toys"}}
    data = {"data": [{"path": "data/toys.csv", "url": "https://toys.example/toys.csv", "version": "2"}]}
    given = {"claims": Claims.model_validate(paper | data), "environ": {"PATH": "/usr/bin:/bin"}, **further}
    return Reproduction(claims_file=claims_file, source=source, **given)
