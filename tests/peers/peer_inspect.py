"""An evaluation of Inspect with panpan as its agent."""

import json
from pathlib import Path

import pytest

from tests.model_server import call, say, serving
from tests.peers.scratch_python import run_in, scratch_python
from tests.prepared_command import COMMAND

PACKAGES = ("inspect-ai==0.3.285", "anthropic>=2.12,<3", "anyio>=4.16,<5")


@pytest.fixture(scope="session")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scratch_python(tmp_path_factory, "inspect", "3.11", PACKAGES)


@pytest.mark.timeout(600)
def test_agent_in_a_sandbox_asks_the_model_of_the_evaluation(inspect: Path, tmp_path: Path) -> None:
    found = json.loads(run_in(inspect, "inspect_job.py", "sandbox", str(COMMAND), str(tmp_path)))

    assert (found["status"], found["error"], found["scores"]) == ("success", "", ["C"])
    assert [role for role, _ in found["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert found["messages"][-1] == ["assistant", "wrote it"]
    assert (tmp_path / "a.txt").read_text() == "hello\n"


@pytest.mark.timeout(600)
def test_local_agent_hands_its_messages_back(inspect: Path, tmp_path: Path) -> None:
    script = [call("Write", {"file_path": "a.txt", "content": "hello\n"}), say("wrote it")]
    with serving(script) as server:
        model = {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}
        env = {**model, "PANPAN_SESSIONS_TITLE": "first-words"}
        found = json.loads(run_in(inspect, "inspect_job.py", "local", str(COMMAND), str(tmp_path), env=env))

    assert (found["status"], found["error"], found["scores"]) == ("success", "", ["C"])
    assert [role for role, _ in found["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert "a.txt" in found["messages"][2][1]
    assert (tmp_path / "a.txt").read_text() == "hello\n"


@pytest.mark.timeout(600)
def test_failed_run_is_an_error_of_the_sample(inspect: Path, tmp_path: Path) -> None:
    found = json.loads(run_in(inspect, "inspect_job.py", "local", str(COMMAND), str(tmp_path)))

    assert found["status"] == "error"
    assert "panpan failed" in found["error"]
