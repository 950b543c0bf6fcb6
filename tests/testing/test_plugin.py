"""The pytest plug-in in a pytest of its own, as users do who test their prompts and rules."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.model_server import HttpError, ModelServer, RecordedRequest, Reply, call, say, serving

ROOT = Path(__file__).parents[2]
KEY = "sk-ant-test-0123456789abcdef"
(TEST,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "cassettes.md").read_text(), re.DOTALL | re.MULTILINE)
"""The example of the document."""


class OwnPytest:
    """A folder with one test, and pytest in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.test = folder / "test_notes.py"
        self.cassette = folder / "tapes" / "notes.jsonl"
        self.env: dict[str, str] = {}
        folder.mkdir()
        self.test.write_text(TEST)

    def use(self, server: ModelServer) -> None:
        self.env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}

    def run(self, *args: str, is_alone: bool = True) -> subprocess.CompletedProcess[str]:
        """Run pytest, with this plug-in alone, which starts in half the time, or with all that are installed."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "COVERAGE_PROCESS_START") if name in os.environ}
        is_installed = any(one.name == "panpan" for one in entry_points(group="pytest11"))
        plugin = [] if is_installed and not is_alone else ["-p", "panpan.testing.plugin"]
        if is_alone:
            plugin.append("--disable-plugin-autoload")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", *plugin, *args],
            cwd=self.folder,
            env=kept | {"HOME": str(self.folder), "NO_PROXY": "*", "PYTHONPATH": str(ROOT)} | self.env,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def own(tmp_path: Path) -> OwnPytest:
    return OwnPytest(tmp_path / "tests")


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cassette that the plug-in has recorded."""
    own = OwnPytest(tmp_path_factory.mktemp("recording") / "tests")
    with serving([call("Read", {"file_path": "notes.txt"}), say("It is swordfish.")]) as server:
        own.use(server)
        done = own.run("--panpan-record", "--panpan-model", "claude-sonnet-5", is_alone=False)
    assert done.returncode == 0, done.stdout
    return own.cassette


@pytest.fixture
def recorded(own: OwnPytest, tape: Path) -> OwnPytest:
    own.cassette.parent.mkdir()
    shutil.copy(tape, own.cassette)
    return own


def test_missing_cassette_says_how_to_record_it(own: OwnPytest) -> None:
    done = own.run()

    assert done.returncode == 1
    assert "pytest --panpan-record --panpan-model NAME records it" in done.stdout


def test_cassette_is_recorded_once_and_played_without_a_model(recorded: OwnPytest) -> None:
    before = recorded.cassette.read_bytes()

    done = recorded.run("--panpan-record")

    assert done.returncode == 0, done.stdout
    assert recorded.cassette.read_bytes() == before
    assert KEY.encode() not in before


def test_changed_prompt_fails_and_is_named(recorded: OwnPytest) -> None:
    recorded.test.write_text(TEST.replace("what is in the notes?", "what do the notes say?"))

    done = recorded.run()

    assert done.returncode == 1
    assert "request 1 differs in messages[0].content[0].text" in done.stdout
    assert "+what do the notes say?" in done.stdout
    assert "panpan/core" not in done.stdout, "the loop's frames say nothing to who tests prompts"


def test_changed_rules_of_the_workspace_fail_and_are_named(recorded: OwnPytest) -> None:
    recorded.test.write_text(TEST.replace("one sentence", "two sentences"))

    done = recorded.run()

    assert done.returncode == 1
    assert "request 1 differs in messages[1].text" in done.stdout
    assert "+Answer in two sentences." in done.stdout


def test_semantic_mode_compares_only_the_calls(recorded: OwnPytest) -> None:
    changed = TEST.replace("what is in the notes?", "what do the notes say?").replace("one sentence", "two sentences")
    recorded.test.write_text(changed.replace('jsonl")', 'jsonl", mode="semantic")'))

    done = recorded.run()

    assert done.returncode == 0, done.stdout


def test_senseless_marker_is_refused_with_the_valid_words(own: OwnPytest) -> None:
    own.test.write_text(TEST.replace('jsonl")', 'jsonl", mode="strictest")'))

    done = own.run()

    assert done.returncode == 1
    assert "the marker cassette knows the modes strict, semantic, live-tools, and not 'strictest'" in done.stdout


def test_parallel_tests_may_record_the_same_cassette(own: OwnPytest) -> None:
    second = TEST.split("\n\n\n", 1)[1].replace("def test_it_reads_the_notes", "def test_it_reads_them_again")
    own.test.write_text(f"{TEST}\n\n{second}")

    def answer(request: RecordedRequest) -> Reply:
        has_read = "tool_result" in json.dumps(request.messages)
        return say("It is swordfish.") if has_read else call("Read", {"file_path": "notes.txt"})

    with serving(answer) as server:
        own.use(server)
        done = own.run("-n", "2", "--panpan-record", "--panpan-model", "claude-sonnet-5", is_alone=False)

    assert done.returncode == 0, done.stdout
    assert [path.name for path in own.cassette.parent.iterdir()] == [own.cassette.name]


def test_failed_recording_leaves_no_cassette(own: OwnPytest) -> None:
    with serving([call("Read", {"file_path": "notes.txt"}), HttpError(401, "no such key")]) as server:
        own.use(server)
        done = own.run("--panpan-record", "--panpan-model", "claude-sonnet-5")

    assert done.returncode == 1
    assert "no such key" in done.stdout
    assert list(own.cassette.parent.iterdir()) == []


def test_plugin_loads_nothing_without_a_cassette_test(own: OwnPytest) -> None:
    own.test.write_text(
        "import sys\n\n\ndef test_it():\n"
        "    loaded = {name for name in sys.modules if name.startswith('panpan')}\n"
        "    names = {'panpan', 'panpan.public_names', 'panpan.testing', 'panpan.testing.plugin', 'panpan.version'}\n"
        "    assert loaded == names\n"
    )

    done = own.run(is_alone=False)

    assert done.returncode == 0, done.stdout
