"""Harbor's models of trajectories, which read what `panpan sessions export --format atif` writes, and its agents."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panpan.session.export.as_atif import atif_text
from panpan.version import __version__
from tests.e2e.conftest import Panpan
from tests.model_server import Reply, Thinking, ToolCall, call, calls, say, serving
from tests.peers.installs import installed_once
from tests.peers.scratch_python import run_in, scratch_python
from tests.prepared_command import COMMAND
from tests.session.export.export_fixtures import PIECES, everywhere

HARBOR = "harbor==0.26.0"
ACP = "agent-client-protocol==0.12.1"
"""Library of Harbor's agent `acp`, which installs the newest one in a container."""
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
INSTALL_S = 120
READS = """
import sys
from harbor.models.trajectories import Trajectory
for text in sys.stdin.read().split("\\0"):
    found = Trajectory.model_validate_json(text)
    print(len(found.steps), len(found.subagent_trajectories or ()))
"""


@pytest.fixture(scope="session")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with Harbor alone."""
    return installed_once(tmp_path_factory, "harbor", install_harbor)


def install_harbor(folder: Path) -> None:
    """Install Harbor alone: its models need only pydantic, and it is for a newer Python than panpan."""
    uv = str(Path(sys.executable).with_name("uv"))
    argv = [uv, "pip", "install", "-q", "--python", sys.executable, "--python-version", "3.12", "--no-deps"]
    try:
        done = subprocess.run(
            [*argv, "--target", str(folder), HARBOR], capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"Harbor cannot be installed: {error}")
    if done.returncode != 0:
        pytest.skip(f"Harbor cannot be had: {done.stderr.strip().splitlines()[-1:]}")


@pytest.fixture(scope="session")
def whole_harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with all of Harbor, 470 MB."""
    return scratch_python(tmp_path_factory, "whole-harbor", "3.12", (HARBOR, ACP, "anyio>=4.16,<5"))


@pytest.fixture
def panpan(tmp_path: Path) -> Panpan:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "user").mkdir()
    return Panpan(workspace, tmp_path / "user" / ".panpan")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that stands in for a container."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "installed").mkdir()
    return tmp_path


def read_by(harbor: Path, *texts: str) -> list[tuple[int, int]]:
    """Let Harbor read trajectories, and return the numbers of steps and of embedded trajectories."""
    done = subprocess.run(
        [sys.executable, "-c", READS],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(harbor)},
        input="\0".join(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [(int(line.split()[0]), int(line.split()[1])) for line in done.stdout.splitlines()]


def test_session_with_subagent_and_failures_is_read(harbor: Path, panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("a\n")
    task = ToolCall("Task", {"description": "look", "prompt": "look", "subagent_type": "general-purpose"})
    script = [
        Reply((Thinking("hm"), ToolCall("Read", {"file_path": "a.txt"}), ToolCall("Read", {"file_path": "no.txt"}))),
        calls(task, ToolCall("Bash", {"command": "rm -rf /"})),
        calls(ToolCall("LS", {})),
        say("nothing there"),
        say("done"),
    ]
    with serving(script) as server:
        panpan.use(server)
        assert panpan.run("-p", "go").stdout == "done\n"
    (log,) = panpan.session_files()

    exported = panpan.run("sessions", "export", log.stem, "--format", "atif").stdout

    found: dict[str, Any] = json.loads(exported)
    assert read_by(harbor, exported) == [(len(found["steps"]), 1)]


def test_hostile_texts_are_read(harbor: Path) -> None:
    texts = [atif_text(everywhere(piece)) for piece in PIECES]

    assert len(read_by(harbor, *texts)) == len(PIECES)


def run_job(python: Path, folder: Path, *agent: str, env: Mapping[str, str] = OFFLINE) -> dict[str, Any]:
    """Let an agent of Harbor write a file, and return what Harbor knows of its run."""
    found: dict[str, Any] = json.loads(
        run_in(python, "harbor_job.py", str(folder), str(COMMAND), "write a.txt", *agent, env=env)
    )
    return found


def run_scripted_job(python: Path, folder: Path, *agent: str) -> dict[str, Any]:
    script = [call("Write", {"file_path": "a.txt", "content": "hi\n"}), say("done")]
    with serving(script) as server:
        model = {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}
        return run_job(python, folder, *agent, env={**OFFLINE, **model, "PANPAN_SESSIONS_TITLE": "first-words"})


@pytest.mark.timeout(600)
def test_agent_runs_panpan_and_leaves_a_trajectory(whole_harbor: Path, harbor: Path, folder: Path) -> None:
    found = run_scripted_job(whole_harbor, folder)

    assert (found["failure"], found["version"]) == ("", __version__)
    assert (found["n_input_tokens"], found["n_output_tokens"]) == (20, 10)
    assert found["cost_usd"] > 0
    assert (folder / "workspace" / "a.txt").read_text() == "hi\n"
    ((steps, _),) = read_by(harbor, (folder / "logs" / "trajectory.json").read_text())
    assert steps >= 3


@pytest.mark.timeout(600)
def test_agent_reports_a_run_without_a_key(whole_harbor: Path, folder: Path) -> None:
    assert "ANTHROPIC_API_KEY" in run_job(whole_harbor, folder)["failure"]


@pytest.mark.timeout(600)
def test_agent_acp_runs_panpan_and_leaves_a_trajectory(whole_harbor: Path, harbor: Path, folder: Path) -> None:
    found = run_scripted_job(whole_harbor, folder, "acp")

    assert found["failure"] == ""
    assert (found["n_input_tokens"], found["n_output_tokens"]) == (20, 10)
    assert found["cost_usd"] > 0
    assert found["metadata"]["acp"]["resolved_session_model_id"] == "anthropic/claude-sonnet-5-5"
    assert (folder / "workspace" / "a.txt").read_text() == "hi\n"
    trajectory = (folder / "logs" / "trajectory.json").read_text()
    assert read_by(harbor, trajectory) == [(3, 0)]
    made = [[one["arguments"] for one in step.get("tool_calls", ())] for step in json.loads(trajectory)["steps"]]
    assert made == [[], [{"file_path": "a.txt", "content": "hi\n"}], []]


@pytest.mark.timeout(600)
def test_agent_acp_reports_a_run_without_a_key(whole_harbor: Path, folder: Path) -> None:
    found = run_job(whole_harbor, folder, "acp")

    assert found["failure"]
    assert "ANTHROPIC_API_KEY" in found["metadata"]["acp"]["error"]["message"]
