"""Campaigns from Python: run to their end, and read back."""

from pathlib import Path

import pytest

import panpan.batch
from panpan.batch.coordination.progress import Progress
from panpan.errors import ConfigError
from tests.fakes.campaign import make_campaign
from tests.model_server import call, say, serving

CAMPAIGN = """
verify = "grep -q done answer.txt"
[attempt]
flags = ["--yes", "--sandbox", "off"]
[where]
at_once = 1
[[task]]
id = "first"
prompt = "Write done into answer.txt."
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PANPAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PANPAN_SESSIONS_TITLE", "first-words")
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path


def test_campaign_runs_to_its_end_from_python(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_campaign(home, CAMPAIGN).path
    news: list[Progress] = []
    with serving([call("Bash", {"command": "echo done >answer.txt"}), say("It is written.")]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789abcdef")
        summary = panpan.batch.run_sync(folder, trust=True, at_once=2, notify=news.append)

    assert (summary.because, summary.message) == ("done", "1 attempt has a result")
    (result,) = panpan.batch.results(folder)
    assert (result.status, result.message) == ("passed", "It is written.")
    assert [one.result for one in news if one.result] == [result]
    state = panpan.batch.state_of(folder)
    assert state is not None
    assert (state.ended, state.slots, state.spent.tokens) == ("done", 2, 30)
    assert not (folder / "state" / "stop").exists()


def test_campaign_without_trust_does_not_run(home: Path) -> None:
    folder = make_campaign(home, CAMPAIGN).path
    with pytest.raises(ConfigError, match="trust"):
        panpan.batch.run_sync(folder)
    assert panpan.batch.state_of(folder) is None
    assert panpan.batch.results(folder) == []


def test_campaign_on_machines_named_wrongly_does_not_run(home: Path) -> None:
    with pytest.raises(ConfigError):
        panpan.batch.run_sync(make_campaign(home, CAMPAIGN).path, trust=True, on="nowhere")


@pytest.mark.parametrize("at_once", [0, -1])
def test_campaign_without_a_slot_does_not_run(at_once: int, home: Path) -> None:
    with pytest.raises(ConfigError, match="give 1 or more"):
        panpan.batch.run_sync(make_campaign(home, CAMPAIGN).path, trust=True, at_once=at_once)


def test_public_names_load_with_a_docstring() -> None:
    for name in panpan.batch.__all__:
        assert getattr(panpan.batch, name).__doc__
    with pytest.raises(AttributeError):
        _ = panpan.batch.nothing
