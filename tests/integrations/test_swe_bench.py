"""Predictions of real runs with a scripted model, over small repositories."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from panpan.integrations.swe_bench import predicted_ids, read_instances
from tests.model_server import ModelServer, Reply, call, say, serving
from tests.model_server.recording import RecordedRequest


def git(folder: Path, *args: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@t")
    return subprocess.run(
        ["git", *author, *args], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def base(tmp_path: Path) -> str:
    """Make the checkout of a project whose history goes on behind the base commit."""
    project = tmp_path / "repos" / "ada__engine"
    project.mkdir(parents=True)
    git(project, "init", "-q")
    (project / "engine.py").write_text("RATIO = 1\n")
    (project / ".gitignore").write_text("*.log\n")
    (project / "kept.log").write_text("tracked although it is ignored\n")
    git(project, "add", "-f", ".")
    git(project, "commit", "-qm", "first")
    commit = git(project, "rev-parse", "HEAD")
    (project / "engine.py").write_text("RATIO = 42\n")
    git(project, "commit", "-qam", "the solution")
    return commit


def instance(name: str, base: str, **fields: Any) -> str:
    return json.dumps(
        {"instance_id": name, "repo": "ada/engine", "base_commit": base, "problem_statement": f"fix {name}", **fields}
    )


def predict(tmp_path: Path, server: ModelServer, *args: str) -> subprocess.CompletedProcess[str]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "panpan.integrations.swe_bench", tmp_path / "instances.jsonl", "--repos",
         tmp_path / "repos", "--out", tmp_path / "out.jsonl", "--name", "ours", *args],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "ANTHROPIC_API_KEY": "sk-ant-test",
             "ANTHROPIC_BASE_URL": server.url, "NO_PROXY": "*", "PANPAN_SESSIONS_TITLE": "first-words"},
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


def edits(request: RecordedRequest) -> Reply:
    """Answer the requests of a run with a look, an edit and the end."""
    text = json.dumps(request.messages)
    if "fix broken" in text:
        raise AssertionError("there is no checkout of it")
    edit = {"file_path": "engine.py", "old_string": "RATIO = 1\n", "new_string": "RATIO = 2\n"}
    steps = [call("Read", {"file_path": "engine.py"}), call("Edit", edit), say("done")]
    return steps[text.count('"tool_result"')]


def test_bad_instances_stop_no_other_and_runs_resume(tmp_path: Path, base: str) -> None:
    lines = [
        instance("a-1", base),
        "no json",
        instance("broken-1", base, repo="bob/missing"),
        instance("broken-2", "0" * 40),
        instance("b-2", base),
    ]
    (tmp_path / "instances.jsonl").write_text("\n".join(lines))
    with serving(edits) as server:
        first = predict(tmp_path, server, "--jobs", "2")
        (tmp_path / "out.jsonl").write_text((tmp_path / "out.jsonl").read_text() + '{"instance_id": "c-')
        requests = len(server.requests)
        second = predict(tmp_path, server)

    assert (first.returncode, second.returncode) == (1, 1)
    assert "line 2 is no instance" in first.stderr
    assert "broken-1: there is no checkout for it" in first.stderr
    assert "Traceback" not in first.stderr + second.stderr
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()[:2]]
    assert sorted(one["instance_id"] for one in found) == ["a-1", "b-2"]
    for one in found:
        assert one.keys() == {"instance_id", "model_name_or_path", "model_patch"}
        assert one["model_name_or_path"] == "ours"
        assert "-RATIO = 1\n+RATIO = 2\n" in one["model_patch"]
        assert one["model_patch"].count("diff --git") == 1
    assert len(server.requests) == requests == 6
    failed = [json.loads(line) for line in (tmp_path / "out.jsonl.failed.jsonl").read_text().splitlines()]
    assert {one["instance_id"] for one in failed} == {"broken-1", "broken-2"}


def test_patch_applies_to_the_base_commit(tmp_path: Path, base: str) -> None:
    (tmp_path / "instances.jsonl").write_text(instance("a-1", base))
    with serving(edits) as server:
        assert predict(tmp_path, server).returncode == 0

    project = tmp_path / "repos" / "ada__engine"
    assert (project / "engine.py").read_text() == "RATIO = 42\n"
    git(project, "checkout", "-q", base)
    (tmp_path / "a.patch").write_text(json.loads((tmp_path / "out.jsonl").read_text())["model_patch"])
    git(project, "apply", str(tmp_path / "a.patch"))
    assert (project / "engine.py").read_text() == "RATIO = 2\n"


def test_workspace_holds_no_later_history(tmp_path: Path, base: str) -> None:
    (tmp_path / "instances.jsonl").write_text(instance("a-1", base))
    command = "git log --all --oneline | wc -l; cat engine.py kept.log; git status --short | wc -l"
    script = [call("Bash", {"command": command}), say("done")]
    with serving(script) as server:
        assert predict(tmp_path, server).returncode == 0

    told = json.dumps(server.requests[1].messages[-1])
    assert "1\\nRATIO = 1\\ntracked although it is ignored\\n0" in told
    assert json.loads((tmp_path / "out.jsonl").read_text())["model_patch"] == ""


@pytest.mark.parametrize(
    "fields",
    [{"instance_id": name} for name in ("..", ".", ".git", "-x", "a/b", "")]
    + [{"repo": name} for name in ("..", "../up", "ada/..", "/etc", "ada/.git", "a/b/c")],
)
def test_name_that_is_no_plain_one_is_refused(fields: dict[str, str]) -> None:
    found, complaints = read_instances(instance(**{"name": "a-1", "base": "HEAD", **fields}))

    assert (found, len(complaints)) == ([], 1)


def test_helpers_of_a_checkout_do_not_run(tmp_path: Path, base: str) -> None:
    project = tmp_path / "repos" / "ada__engine"
    for key in ("filter.x.clean", "filter.x.smudge", "core.fsmonitor"):
        git(project, "config", key, f"touch {tmp_path}/helper-ran; cat")
    git(project, "checkout", "-q", base)
    (project / ".gitattributes").write_text("* filter=x\n")
    git(project, "-c", "filter.x.clean=cat", "add", ".")
    git(project, "-c", "filter.x.clean=cat", "commit", "-qm", "attributes")
    (tmp_path / "helper-ran").unlink(missing_ok=True)
    (tmp_path / "instances.jsonl").write_text(instance("index", git(project, "rev-parse", "HEAD")))
    with serving(edits) as server:
        done = predict(tmp_path, server)

    assert done.returncode == 0, done.stderr
    assert "+RATIO = 2" in (tmp_path / "out.jsonl").read_text()
    assert not (tmp_path / "helper-ran").exists()


def test_instances_and_predictions_are_read_line_by_line() -> None:
    found, complaints = read_instances(f"{instance('a', 'HEAD')}\n\n{instance('../b', 'HEAD')}\n{{}}\n")

    assert [one.instance_id for one in found] == ["a"]
    assert len(complaints) == 2
    assert predicted_ids('{"instance_id": "a", "model_patch": ""}\n{"instance_id": "b"}\n[1]\n{"inst') == {"a"}
