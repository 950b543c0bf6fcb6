"""`panpan reproduce` on toy papers with planted faults: from a repository to verdicts, with a scripted model."""

import json
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.e2e.conftest import Done, Panpan, finished, wait_until
from tests.fakes.campaign import git
from tests.model_server import Hold, RecordedRequest, Reply, say, serving
from tests.repro.pdf_paper import VOTES
from tests.repro.toy_papers import (
    EXPLANATION,
    Fill,
    ScriptedModel,
    fill_levels,
    fill_means,
    fill_votes,
    toy_repository,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
EXAMPLE, *_ = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
"""The end of the example in the documentation."""


def verdicts(done: Done) -> Mapping[str, str]:
    """Return the verdicts by row and column."""
    judged = json.loads(done.stdout)["check"]["judgements"]
    return {f"{one['claim']['row']} {one['claim']['column']}".strip(): one["verdict"] for one in judged}


def judgement(done: Done, row: str, column: str = "") -> Mapping[str, Any]:
    """Return the judgement of a claim."""
    judged = json.loads(done.stdout)["check"]["judgements"]
    (found,) = [one for one in judged if one["claim"]["row"] == row and column in one["claim"]["column"]]
    assert isinstance(found, dict)
    return found


def reproduce(panpan: Panpan, name: str, fill: Fill, code: int, *options: str) -> tuple[Done, ScriptedModel]:
    """Reproduce a toy paper without questions, which ends with an exit code; return the end and the model."""
    toy_repository(name, panpan.workspace)
    model = ScriptedModel(fill)
    with serving(model) as server:
        panpan.use(server)
        done = panpan.run("reproduce", name, "--yes", "-f", "json", *options)
    assert done.code == code, done.stderr
    return done, model


def test_number_of_another_seed_is_within_spread(panpan: Panpan) -> None:
    done, _ = reproduce(panpan, "robust-means", fill_means, 0, "--seeds", "5")

    bootstrap, network = judgement(done, "bootstrap mean"), judgement(done, "network")
    assert bootstrap["verdict"] == "within spread"
    assert bootstrap["hints"] == ["the claimed number is that of seed 3, not 0"]
    assert judgement(done, "trimmed mean")["verdict"] == "reproduced"
    assert (network["verdict"], "GPU" in network["reason"]) == ("not run", True)


def test_other_denominator_and_typing_error_deviate(panpan: Panpan) -> None:
    (panpan.workspace / "votes.pdf").write_bytes(VOTES)
    done, model = reproduce(panpan, "message-votes", fill_votes, 1, "--paper", "votes.pdf")

    accuracy, recall = judgement(done, "majority", "Accuracy"), judgement(done, "keyword", "Recall")
    assert sorted(verdicts(done).values()) == ["deviates", "deviates", "reproduced", "reproduced"]
    assert (accuracy["verdict"], recall["verdict"]) == ("deviates", "deviates")
    assert any("40/39" in hint for hint in accuracy["hints"])
    assert any("two digits are swapped" in hint for hint in recall["hints"])
    facts = json.loads(done.stdout)
    report = Path(facts["report"]).read_text()
    assert EXPLANATION in report
    assert report.index("A model wrote this") < report.index(EXPLANATION)
    assert len(model.prompts) == 2, "one to prepare, and one to explain"
    assert (Path(facts["kit"]) / "reproduce.sh").is_file()


def test_other_version_of_the_data_is_named(panpan: Panpan) -> None:
    done, _ = reproduce(panpan, "river-levels", fill_levels, 0)

    autumn, rain = judgement(done, "autumn", "mean"), judgement(done, "autumn", "rain")
    assert autumn["verdict"] == "not reproducible"
    assert "data/autumn.csv has the SHA-256" in autumn["reason"]
    assert judgement(done, "spring")["verdict"] == "reproduced"
    assert (rain["verdict"], "is no number" in rain["reason"]) == ("not run", True)


def test_unconfirmed_claims_wait_for_the_user(panpan: Panpan) -> None:
    toy_repository("robust-means", panpan.workspace)
    with serving(ScriptedModel(fill_means)) as server:
        panpan.use(server)
        waiting = panpan.run("reproduce", "robust-means")
        confirmed = panpan.run("repro", "confirm", "robust-means-reproduction", "--yes")
        done = panpan.run("reproduce", "robust-means-reproduction", "-f", "json")
        again = panpan.run("reproduce", "robust-means-reproduction", "--no-model", "--seeds", "5")

    assert (waiting.code, waiting.stdout) == (5, "")
    assert "panpan repro confirm" in waiting.stderr
    assert confirmed.code == 0
    assert verdicts(done)["trimmed mean Mean"] == "reproduced"
    assert "nobody had to confirm" not in Path(json.loads(done.stdout)["report"]).read_text()
    assert again.code == 0
    assert again.stdout.startswith(EXAMPLE.partition("report:")[0])
    assert git(panpan.workspace / "robust-means", "status", "--porcelain") == ""


def test_killed_reproduction_goes_on_in_the_same_session(panpan: Panpan) -> None:
    toy_repository("robust-means", panpan.workspace)
    model, held = ScriptedModel(fill_means), Event()

    def hold_the_second(request: RecordedRequest) -> Reply:
        reply = model(request)
        return replace(reply, faults=(Hold(0, held),)) if len(request.messages) == 3 else reply

    with serving(hold_the_second) as server:
        panpan.use(server)
        running = panpan.start("reproduce", "robust-means", "--yes", "-f", "json", is_installed=False)
        wait_until(lambda: len(server.requests) == 2)
        os.killpg(running.pid, signal.SIGKILL)
        finished(running)
        held.set()
        done = panpan.run("reproduce", "robust-means-reproduction", "--yes", "--seeds", "5", "-f", "json")

    assert done.code == 0, done.stderr
    assert judgement(done, "bootstrap mean")["verdict"] == "within spread"
    assert len(model.prompts) == 1
    assert len(panpan.session_files()) == 1


def test_reproduction_killed_in_each_step_ends_as_any_other(panpan: Panpan) -> None:
    source = toy_repository("robust-means", panpan.workspace)
    folder, model = panpan.workspace / "robust-means-reproduction", ScriptedModel(fill_means)
    command = ("reproduce", f"git+file://{source}", "--yes", "-f", "json")
    steps = ("cloned", "claims:", "prepare: the model", "prepare: 3 of 3", "1 run of", "run-2: passed", "explain:")
    with serving(model) as server:
        panpan.use(server)
        for step in steps:
            killed_at_line(panpan, step, *command)
        assert not (folder / "report.html").exists()
        running = panpan.start(*command, is_installed=False)
        wait_until((folder / "report.html").exists)  # it writes the kit now
        os.killpg(running.pid, signal.SIGKILL)
        finished(running)
        done = panpan.run(*command)

    assert done.code == 1, done.stderr
    assert sorted(verdicts(done).values()) == ["deviates", "not run", "reproduced"]
    assert judgement(done, "bootstrap mean")["measured"] == [3.499, 3.499]
    assert EXPLANATION in (folder / "report.md").read_text().replace("\\", "")
    assert (folder / "kit" / "reproduce.sh").is_file()
    assert len(panpan.session_files()) == 2, "one to prepare, and one to explain"
    assert [path.name for path in folder.iterdir() if "part" in path.name or "tmp" in path.name] == []


def killed_at_line(panpan: Panpan, words: str, *args: str) -> None:
    """Kill a run, and all of its processes, as soon as it says a line with words."""
    running = panpan.start(*args, is_installed=False)
    assert running.stderr is not None
    said = b""
    while words.encode() not in said:
        line = running.stderr.readline()
        assert line, f"it has not said {words!r} but {said!r}"
        said += line
    os.killpg(running.pid, signal.SIGKILL)
    finished(running)


def test_interrupted_reproduction_says_how_to_go_on(panpan: Panpan) -> None:
    toy_repository("robust-means", panpan.workspace)
    held = Event()
    with serving(lambda _: replace(say("too late"), faults=(Hold(0, held),))) as server:
        panpan.use(server)
        running = panpan.start("reproduce", "robust-means", "--yes", is_installed=False)
        wait_until(lambda: len(server.requests) == 1)
        os.killpg(running.pid, signal.SIGINT)
        done = finished(running)
        held.set()

    assert done.code == 130
    assert done.stderr.endswith("stopped; the same command goes on\n")


def test_claims_without_a_command_do_not_run_without_a_model(panpan: Panpan) -> None:
    toy_repository("robust-means", panpan.workspace)

    done = panpan.run("reproduce", "robust-means", "--no-model", "--yes", "-f", "json")

    assert done.code == 0
    assert set(verdicts(done).values()) == {"not run"}
    assert "no model is asked" in done.stderr


@pytest.mark.parametrize("given", ["missing.pdf", "votes.pdf"])
def test_wrong_use_ends_with_two_and_says_what_to_do(panpan: Panpan, given: str) -> None:
    (panpan.workspace / "votes.pdf").write_bytes(VOTES)

    done = panpan.run("reproduce", given, "--no-model")

    assert done.code == 2
    assert "give a" in done.stderr or "--repo" in done.stderr


def test_failed_step_ends_with_two_since_one_is_a_deviation(panpan: Panpan) -> None:
    toy_repository("robust-means", panpan.workspace)
    (panpan.workspace / "file").touch()

    done = panpan.run("reproduce", "robust-means", "--no-model", "--into", "file/results")

    assert done.code == 2
    assert "file/results cannot be made: Not a directory" in done.stderr
