"""A check runs the commands of claims on copies, finds their numbers, and goes on after a kill."""

import json
import sys
import tomllib
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from panpan.batch.definition.campaign import Campaign
from panpan.errors import ConfigError
from panpan.repro.checking.check import CheckOptions, check
from panpan.repro.checking.check_campaign import Run, campaign_text
from panpan.repro.checking.results import CheckReport
from panpan.repro.checking.run_outputs import outputs_of
from panpan.repro.checking.source_files import SourceFiles
from panpan.repro.claims.claim import Environment
from panpan.system.sandbox.choice import find_sandbox
from tests.capabilities.packages.conftest import UV
from tests.repro.checked_paper import ACCURACY, CheckedPaper, claim


@pytest.fixture(autouse=True)
async def _needs_a_sandbox() -> None:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))


@pytest.fixture
def paper(tmp_path: Path) -> CheckedPaper:
    return CheckedPaper(tmp_path)


async def test_check_judges_claims_without_a_model_or_a_key(paper: CheckedPaper) -> None:
    paper.claim(
        claim("mean", "2.3", seed=3),
        claim("accuracy", "53", seed=3, extract={**ACCURACY, "scale": 100.0}),
        claim("other", "9.9", seed=3),
    )

    report = await paper.check()

    assert [one.verdict for one in report.judgements] == ["reproduced", "reproduced", "deviates"]
    assert report.deviates
    (run,) = report.judgements[0].runs
    assert (run.seed, run.attempt, run.number) == (3, 1, "2.3")
    assert run.receipt is not None
    assert run.receipt.exit_code == 0
    assert (paper.results / run.output).read_text() == "mean: 2.3\n"
    assert json.loads((paper.results / run.files / "metrics.json").read_text()) == {"accuracy": 0.53}
    assert CheckReport.model_validate_json((paper.results / "check.json").read_text()) == report
    files = outputs_of(report, paper.results)[run.receipt.id]
    assert {name: path.read_text()[:8] for name, path in files.items()} == {
        "output.txt": "mean: 2.",
        "metrics.json": '{"accura',
    }


async def test_files_outside_of_the_results_are_no_outputs(paper: CheckedPaper) -> None:
    """A check.json may have come with a repository."""
    paper.claim(claim("accuracy", "0.53", seed=3, extract=ACCURACY))
    report = await paper.check()
    outside = paper.results.parent.with_name("elsewhere")
    outside.mkdir()
    (outside / "metrics.json").write_text("private")

    for place in (str(outside), "../../elsewhere"):
        assert not any(outputs_of(forged(report, place), paper.results).values())


def forged(report: CheckReport, place: str) -> CheckReport:
    """Return a check of one claim that names another folder as that of its run."""
    (judged,) = report.judgements
    runs = tuple(run.model_copy(update={"files": place, "output": f"{place}/metrics.json"}) for run in judged.runs)
    return report.model_copy(update={"judgements": (judged.model_copy(update={"runs": runs}),)})


async def test_packages_of_the_runs_are_recorded_once(paper: CheckedPaper, monkeypatch: pytest.MonkeyPatch) -> None:
    paper.claim(claim("a", "2.0", seed=0), claim("b", "2.1", seed=1))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    (environment,) = (await paper.check()).environments
    again = await paper.check()

    receipts = [run.receipt for one in again.judgements for run in one.runs if run.receipt is not None]
    assert {one.environment.packages_sha256 for one in receipts} == {environment.sha256}
    assert sha256("".join(f"{line}\n" for line in environment.packages).encode()).hexdigest() == environment.sha256
    assert f"pydantic=={version('pydantic')}" in environment.packages
    assert again.environments == (environment,)
    assert len(list(paper.results.glob(f"campaign/*/*/state/packages/{environment.sha256}.txt"))) == 1


async def test_claims_with_one_command_share_its_run(paper: CheckedPaper) -> None:
    await paper.judged(claim("mean", "2.0"), claim("accuracy", "0.50", extract=ACCURACY))

    assert paper.begun == 1


async def test_only_a_claim_that_missed_is_repeated(paper: CheckedPaper) -> None:
    missed = await paper.judged(claim("a", "7", seed=1), claim("b", "2.2", seed=2))

    assert [(run.seed, run.attempt) for run in missed.runs] == [(1, 1), (1, 2)]
    assert paper.begun == 3
    assert len(list(paper.results.glob("campaign/*/*"))) == 2


async def test_further_seeds_come_where_the_paper_names_none(paper: CheckedPaper) -> None:
    missed = await paper.judged(claim("a", "9.0"))

    assert sorted({run.seed for run in missed.runs}) == [0, 1, 2]
    assert missed.verdict == "deviates"


async def test_command_without_fixed_numbers_never_deviates(paper: CheckedPaper) -> None:
    line = "python3 -c 'import random; print(\"mean:\", random.random())'"

    judged = await paper.judged(claim("a", "7.000000000", command=line))

    assert judged.verdict == "not reproducible"


async def test_repository_stays_as_it_was(paper: CheckedPaper) -> None:
    paper.put("experiment.py", (paper.folder / "experiment.py").read_text() + "# changed\n")
    paper.claim(claim("a", "2.0", command="rm -rf .git README.md; python3 experiment.py 0; rm experiment.py"))
    paper.put("repro-results/.gitignore", "*\n")
    before, content = paper.status(), (paper.folder / "experiment.py").read_bytes()

    report = await paper.check()

    assert (report.judgements[0].verdict, report.is_changed) == ("reproduced", True)
    assert paper.status() == before
    assert (paper.folder / "experiment.py").read_bytes() == content


async def test_second_check_runs_nothing_again(paper: CheckedPaper) -> None:
    first = await paper.judged(claim("a", "2.0"))
    begun = paper.begun

    second = await paper.judged(claim("a", "2.1"), claim("b", "2.0"))

    assert (first.verdict, begun) == ("reproduced", 1)
    assert "1 of 1 ran before, with the same files" in paper.told
    assert second.runs[0].receipt == first.runs[0].receipt


@pytest.mark.parametrize("name", ["experiment.py", "data/toys.csv"])
async def test_changed_file_makes_everything_run_again(paper: CheckedPaper, name: str) -> None:
    paper.put("data/toys.csv", "1 2 3\n")
    data = [{"path": "data/toys.csv"}]
    paper.claim(claim("a", "2.0", command="python3 experiment.py 0 --data"), data=data)
    await paper.check()

    paper.put(name, (paper.folder / name).read_text() + ("3\n" if name.endswith("csv") else "# more\n"))
    report = await paper.check()

    assert paper.begun >= 2
    assert report.judgements[0].measured[0] == (2.25 if name.endswith("csv") else 2.0)


async def test_failed_command_is_tried_again_by_the_next_check(paper: CheckedPaper) -> None:
    line = "test -e data/go && echo mean: 2.0 || { echo no data here >&2; exit 7; }"
    paper.put("data/none", "")
    paper.claim(claim("a", "2.0", command=line), data=[{"path": "data"}])
    failed = await paper.check()
    assert failed.judgements[0].verdict == "not run"
    assert "the command failed with exit code 7: no data here" in failed.judgements[0].reason

    paper.put("data/go", "")
    report = await paper.check()

    assert report.judgements[0].verdict == "reproduced"


async def test_runs_that_came_with_a_repository_do_not_count(tmp_path: Path) -> None:
    paper = CheckedPaper(tmp_path)
    one = claim("a", "2.0")
    await paper.judged(one)
    (output,) = paper.results.glob("campaign/*/*/state/*/attempt-1/output.txt")
    output.write_text("mean: 5.5\n")
    paper.env["PANPAN_HOME"] = str(tmp_path / "other-home")  # of another user, who has the folder as it is
    paper.confirm(one)

    report = await paper.check()

    assert [run.number for run in report.judgements[0].runs] == ["2.0"]


async def test_file_of_the_repository_is_no_result(tmp_path: Path) -> None:
    paper = CheckedPaper(tmp_path, {"metrics.json": '{"accuracy": 0.91}'})

    judged = await paper.judged(claim("a", "0.91", command="true", extract=ACCURACY))

    assert judged.verdict == "not run"
    assert "metrics.json is in the repository, and the command did not write it" in judged.reason


async def test_file_that_is_written_again_is_a_result(tmp_path: Path) -> None:
    paper = CheckedPaper(tmp_path, {"metrics.json": '{"accuracy": 0.5}'})

    judged = await paper.judged(claim("a", "0.50", extract=ACCURACY))

    assert judged.verdict == "reproduced"


@pytest.mark.parametrize("is_repository", [True, False])
async def test_data_is_read_by_a_link_and_digested_once(tmp_path: Path, is_repository: bool) -> None:
    paper = CheckedPaper(tmp_path, is_repository=is_repository)
    paper.put("data/toys.csv", "1 2 3\n")
    stated = sha256(b"1 2 3\n").hexdigest()
    line = "python3 experiment.py 0 --data; echo x >data/toys.csv; true"
    paper.claim(claim("a", "2.0", command=line), data=[{"path": "data/toys.csv", "sha256": stated}])

    report = await paper.check()

    (data,) = report.data
    assert (report.judgements[0].verdict, data.problem) == ("reproduced", "")
    assert data.found is not None
    assert (data.found.sha256, data.found.how) == (stated, "whole")
    assert (paper.folder / "data" / "toys.csv").read_text() == "1 2 3\n"
    assert not list(paper.results.glob("campaign/*/*/state/*/attempt-1/workspace-*/repro-results"))


async def test_other_version_of_the_data_is_no_deviation(paper: CheckedPaper) -> None:
    paper.put("data/toys.csv", "1 2 30\n")
    paper.claim(
        claim("a", "2.0", command="python3 experiment.py 0 --data"),
        data=[{"path": "data/toys.csv", "sha256": sha256(b"1 2 3\n").hexdigest()}],
    )

    report = await paper.check()

    assert report.judgements[0].verdict == "not reproducible"
    assert "it is another version" in report.data[0].problem


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"gpus": 2}, "it needs 2 GPUs, and this machine has none"),
        ({"memory_gb": 1e6}, "it needs 1e+06 GB of memory"),
        ({"disk_gb": 1e9}, "it needs 1e+09 GB of disk"),
        ({"programs": ["python3", "no-such-program"]}, "it needs no-such-program, which this machine does not have"),
        ({"files": ["data/asked-for.csv"]}, "it needs data/asked-for.csv, which the repository does not have; get it"),
        ({"hours": 30.0}, "a run takes about 30 hours, more than 1; allow it with --max-hours 30"),
    ],
)
async def test_missing_need_is_a_sentence_and_runs_nothing(
    paper: CheckedPaper, needs: dict[str, Any], reason: str
) -> None:
    paper.env["CUDA_VISIBLE_DEVICES"] = ""

    judged = await paper.judged(claim("a", "2.0", needs=needs))

    assert (judged.verdict, paper.begun) == ("not run", 0)
    assert reason in judged.reason


async def test_needed_file_is_there_by_a_link(paper: CheckedPaper) -> None:
    paper.put("data/asked-for.csv", "mean: 2.0\n")
    needs = {"files": ["data/asked-for.csv"]}

    first = await paper.judged(claim("a", "2.0", command="cat data/asked-for.csv", needs=needs))
    paper.put("data/asked-for.csv", "mean: 2.25\n")
    second = (await paper.check()).judgements[0]

    assert (first.verdict, first.measured[0], second.measured[0]) == ("reproduced", 2.0, 2.25)


async def test_reproduction_folder_checks_its_source(paper: CheckedPaper) -> None:
    folder = paper.folder.with_name("toys-reproduction")
    folder.mkdir()
    (folder / "state.json").write_text('{"what": "panpan reproduction"}')
    (folder / "source").symlink_to(paper.folder)
    paper.claim(claim("a", "2.0"))
    (paper.folder / "claims.toml").rename(folder / "claims.toml")

    report = await check(folder, CheckOptions(env=paper.env, confirms=lambda _: True))

    assert (report.judgements[0].verdict, report.source) == ("reproduced", str(paper.folder))
    assert (folder / "check.json").is_file()
    assert len(paper.status().split("\n")) == 3, "no change and one worktree"


async def test_unconfirmed_claim_waits(paper: CheckedPaper) -> None:
    paper.claim(claim("a", "2.0"))
    paper.env["PANPAN_HOME"] += "-of-another-user"
    waiting = (await paper.check()).judgements[0]
    assert (waiting.waits_for_confirmation, paper.begun) == (True, 0)

    assert (await paper.check(allows_unconfirmed=True)).judgements[0].verdict == "reproduced"
    assert (await paper.check(confirms=lambda one: one.id == "a")).judgements[0].verdict == "reproduced"


async def test_command_is_bounded_and_has_no_network_unasked(paper: CheckedPaper) -> None:
    judged = await paper.judged(claim("a", "2.0", command="sleep 716.5", timeout_s=0.3))

    assert "the command took longer than 0.3 s" in judged.reason
    assert judged.runs[0].receipt is not None
    assert judged.runs[0].receipt.network == ()


async def test_runs_get_an_environment_and_it_is_removed(
    paper: CheckedPaper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{UV.parent}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    line = "python -c 'import sys; print(\"mean:\", 2.0 if sys.prefix != sys.base_prefix else 1.0)'"
    paper.claim(claim("a", "2.0", command=line), environment={"kind": "uv", "setup": "echo set up >setup.txt"})

    report = await paper.check()

    (run,) = report.judgements[0].runs
    assert report.judgements[0].verdict == "reproduced"
    assert (paper.results / run.files / "setup.txt").exists()
    assert not list(paper.results.glob("campaign/*/*/state/*/attempt-1/venv"))


async def test_setup_that_fails_is_a_sentence(paper: CheckedPaper) -> None:
    paper.claim(claim("a", "2.0"), environment={"setup": "echo no such module; exit 1"})

    judged = (await paper.check()).judgements[0]

    assert judged.verdict == "not run"
    assert "setup failed (exit code 1): no such module" in judged.reason


def test_jobs_of_slurm_are_made_for_the_runs(tmp_path: Path) -> None:
    source = SourceFiles(tmp_path / 'a "paper" é', "", True, "", ("data",), ())
    run = Run(line="true", number=1, timeout_s=5_000.0, has_network=False, gpus=2, memory_gb=15.5, name="a")

    text = campaign_text(source, Environment(setup="echo 'é\x7f'"), [run] * 3, on="slurm", at_once=2)

    campaign = Campaign.model_validate(tomllib.loads(text))
    jobs = campaign.where.slurm
    assert (jobs.jobs, jobs.memory, jobs.walltime) == (2, "16GB", "02:56:40")
    assert (jobs.directives, campaign.attempt.gpu) == (("--gres=gpu:2",), 2)
    assert (campaign.workspace.source, campaign.workspace.setup) == (str(source.folder), "echo 'é\x7f'")


async def test_only_the_wanted_claims_are_checked(paper: CheckedPaper) -> None:
    paper.claim(claim("a", "2.0"), claim("b", "2.0", command="exit 1"))

    assert [one.claim.id for one in (await paper.check(only=("a",))).judgements] == ["a"]
    with pytest.raises(ConfigError, match="has no claim c"):
        await paper.check(only=("c",))


async def test_results_behind_a_link_are_refused(paper: CheckedPaper, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    paper.results.symlink_to(tmp_path / "elsewhere")
    paper.claim(claim("a", "2.0"))

    with pytest.raises(ConfigError, match="remove the link"):
        await paper.check()
