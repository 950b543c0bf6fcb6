"""A whole way: a check that runs, its kit, and the kit that runs again in the sandbox."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from panpan.errors import ConfigError
from panpan.repro.checking.check import CheckOptions, check
from panpan.repro.checking.results import CheckReport
from panpan.repro.cli import command
from panpan.repro.kit.kit_command import make_kit
from panpan.repro.kit.verify import VerifyOptions, verify
from tests.fakes.campaign import git
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

    kit = await make_kit(paper.folder, None, paper.env)
    assert kit == paper.results / "kit"
    outputs = [one["path"] for one in json.loads((kit / "manifest.json").read_text())["files"]]
    assert sum(path.endswith("metrics.json") for path in outputs) >= 3

    found = await verify(kit, VerifyOptions(environ=paper.env, data=paper.folder))
    assert {one["id"]: one["verdict"] for one in found.claims} == verdicts
    assert found.is_same


async def test_kit_without_a_check_is_refused(tmp_path: Path) -> None:
    paper = CheckedPaper(tmp_path)
    paper.claim(claim("mean", "2.0"))
    with pytest.raises(ConfigError, match="run panpan repro check first"):
        await make_kit(paper.folder, None, paper.env)

    paper.put("repro-results/check.json", "{")
    with pytest.raises(ConfigError, match=r"damaged .*; remove it, and run panpan repro check"):
        await make_kit(paper.folder, None, paper.env)


@pytest.mark.parametrize("is_published", [True, False])
async def test_address_is_named_if_it_has_the_commit(is_published: bool, tmp_path: Path) -> None:
    paper = CheckedPaper(tmp_path)
    paper.claim(claim("mean", "2.0"))
    commit = git(paper.folder, "rev-parse", "HEAD").strip()
    git(paper.folder, "remote", "add", "origin", "https://key-12345678@toys.example/mean")
    if is_published:
        git(paper.folder, "update-ref", "refs/remotes/origin/main", commit)
    paper.put("repro-results/check.json", CheckReport(commit=commit).model_dump_json())
    kit = await make_kit(paper.folder, tmp_path / "kit", paper.env)

    source = json.loads((kit / "manifest.json").read_text())["source"]
    assert source["address"] == ("https://toys.example/mean" if is_published else "")
    assert source["archive"] == "source.tar.gz"


def test_kit_command_writes_below_the_folder_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = CheckedPaper(tmp_path)
    paper.claim(claim("mean", "2.0"))
    paper.put("repro-results/check.json", CheckReport().model_dump_json())
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["kit", str(paper.folder), "-o", "mine"], standalone_mode=False)

    assert (done.return_value, done.output) == (0, f"kit: {tmp_path}/mine\n")
    assert (tmp_path / "mine/reproduce.sh").is_file()
