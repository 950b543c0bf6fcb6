"""A whole way: a check that runs, its kit, and the kit that runs again in the sandbox."""

import json
from pathlib import Path

from panpan.repro.checking.check import CheckOptions, check
from panpan.repro.checking.run_outputs import outputs_of
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.kit.verify import VerifyOptions, verify
from panpan.repro.kit.write_kit import Reproduction, write_kit
from tests.repro.checked_paper import ACCURACY, MEAN, CheckedPaper, claim

CLOCK = 'python3 -c "import time; print(time.time_ns())"'


async def test_kit_of_a_check_gives_its_verdicts_again(tmp_path: Path) -> None:
    paper = CheckedPaper(tmp_path)
    paper.put("data/toys.csv", "1\n2\n4.5\n")
    paper.claim(
        claim("seed-0", "2.0", seed=0),
        claim("seed-1", "2.0", seed=1),
        claim("accuracy", "51", extract={**ACCURACY, "scale": 100}, seeds=[0, 1, 2]),
        claim("data", "2.50", command="python3 experiment.py 0 --data", extract=MEAN),
        claim("clock", "12", command=CLOCK, extract={"output": "(.+)"}),
        claim("network", "3", command=""),
        data=[{"path": "data/toys.csv"}],
    )
    report = await check(paper.folder, CheckOptions(env=paper.env))
    verdicts = {one.claim.id: one.verdict for one in report.judgements}
    assert verdicts == {
        "seed-0": "reproduced",
        "seed-1": "deviates",
        "accuracy": "within spread",
        "data": "reproduced",
        "clock": "not reproducible",
        "network": "not run",
    }

    loaded = load_claims(paper.folder)
    facts = Reproduction(
        claims_file=loaded.path,
        claims=loaded.claims,
        source=paper.folder,
        outputs=outputs_of(report, paper.results),
        environ=paper.env,
    )
    kit = await write_kit(report, facts, tmp_path / "kit")
    outputs = [one["path"] for one in json.loads((kit / "manifest.json").read_text())["files"]]
    assert sum(path.endswith("metrics.json") for path in outputs) >= 3

    found = await verify(kit, VerifyOptions(environ=paper.env, data=paper.folder))
    assert {one["id"]: one["verdict"] for one in found.claims} == verdicts
    assert found.is_same
