"""Whatever befalls panpan at any moment of a turn: the session goes on, nothing is done twice, and nothing is lost.

A turn writes, edits and patches files and runs a command that counts how often it ran. At one moment it is killed, or
the disk is full, or no fsync succeeds; it goes on with `-c`, and has to come to the same end. `make soak` tries every
moment, and two hundred random ones.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.story import EXPECTED, Story, tree
from tests.e2e.conftest import Done, Panpan, finished
from tests.model_server import serving
from tests.prepared_command import PreparedCommand

pytestmark = pytest.mark.timeout(7200 if "PANPAN_SOAK" in os.environ else 300)

IS_SOAK = "PANPAN_SOAK" in os.environ
SAMPLE = 3
"""Moments that are tried where it is no soak."""
RANDOM_KILLS = 200 if IS_SOAK else 2
FLAGS = ("--yes", "-q")


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Number of moments in an undisturbed turn."""
    panpan = panpan_in(tmp_path_factory.mktemp("whole"))
    with serving(Story()) as server:
        panpan.use(server)
        done = run_with("kill", 0, panpan, "-p", "go", *FLAGS)
        assert (done.code, server.refusals) == (0, []), done.stderr
    assert tree(panpan.workspace) == EXPECTED
    return len((panpan.workspace.parent / "moments").read_text().splitlines())


def panpan_in(folder: Path, prepared: PreparedCommand | None = None) -> Panpan:
    (folder / "workspace").mkdir()
    return Panpan(folder / "workspace", folder / "user" / ".panpan", prepared=prepared)


def run_with(fault: str, moment: int, panpan: Panpan, *args: str) -> Done:
    """Run panpan, and let the fault befall it at that moment; 0: never."""
    report = panpan.workspace.parent / "moments"
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.fault_point", fault, str(moment), report, *args],
        cwd=panpan.workspace,
        env={**panpan.environment(), "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    return finished(process)


def go_on(panpan: Panpan, story: Story, run: Callable[..., Done]) -> Done:
    """Go on as a user who checks if the command did its work, where panpan does not know."""
    if not any(log.stat().st_size for log in panpan.session_files()):  # killed before anything was said
        assert tree(panpan.workspace) == {}
        return run("-p", "go", *FLAGS)
    outcome = "finished" if story.has_counted(panpan.workspace) else "not-run"
    return run("-c", "-p", "go on", "--unfinished", outcome, *FLAGS)


def assert_whole(panpan: Panpan, story: Story, server: Any, done: Done) -> None:
    assert (done.code, done.stdout) == (0, "All is done.\n"), done.stderr
    assert tree(panpan.workspace) == EXPECTED
    # each history was valid; of a request that a kill cut short, the server has half a body
    assert [why for why in server.refusals if why != "The request body is not valid JSON"] == []
    assert story.repeated == []


def sample(moments: int) -> Iterator[int]:
    """Every moment in a soak, else some, in equal steps from a random one."""
    step = 1 if IS_SOAK else max(moments // SAMPLE, 1)
    yield from range(random.randint(1, step), moments + 1, step)


def test_turn_reaches_the_same_end_after_any_kill(
    moments: int, tmp_path_factory: pytest.TempPathFactory, prepared: PreparedCommand
) -> None:
    assert moments > 50
    for moment in sample(moments):
        panpan, story = panpan_in(tmp_path_factory.mktemp(f"at_{moment}"), prepared), Story()
        with serving(story) as server:
            panpan.use(server)
            assert run_with("kill", moment, panpan, "-p", "go", *FLAGS).code == -signal.SIGKILL, moment
            done = go_on(panpan, story, panpan.run)
            assert_whole(panpan, story, server, done)


@pytest.mark.parametrize("fault", ["full", "sync"])
def test_failing_disk_is_reported_without_claiming_success(
    fault: str, moments: int, tmp_path_factory: pytest.TempPathFactory, prepared: PreparedCommand
) -> None:
    for moment in sample(moments):
        panpan, story = panpan_in(tmp_path_factory.mktemp(f"{fault}_{moment}"), prepared), Story()
        with serving(story) as server:
            panpan.use(server)
            failed = run_with(fault, moment, panpan, "-p", "go", *FLAGS)
            assert "Traceback" not in failed.stderr
            assert not list(panpan.home.glob("crashes/*")), (moment, failed.stderr)
            if failed.code == 0:  # what failed did not matter
                assert_whole(panpan, story, server, failed)
                continue
            assert failed.stderr.startswith("panpan: "), moment
            done = go_on(panpan, story, panpan.run)  # there is space again
            assert_whole(panpan, story, server, done)


def test_turn_reaches_the_same_end_after_repeated_kills(moments: int, tmp_path: Path) -> None:
    panpan, story = panpan_in(tmp_path), Story()
    with serving(story) as server:
        panpan.use(server)
        for _ in range(1000):
            moment = random.randint(moments // 4, moments)
            done = go_on(panpan, story, lambda *args, at=moment: run_with("kill", at, panpan, *args))
            if done.code == 0:
                break
            assert done.code == -signal.SIGKILL, done.stderr
        assert_whole(panpan, story, server, done)


def test_turn_reaches_the_same_end_after_a_random_kill(
    tmp_path_factory: pytest.TempPathFactory, prepared: PreparedCommand
) -> None:
    for number in range(RANDOM_KILLS):
        panpan, story = panpan_in(tmp_path_factory.mktemp(f"random_{number}"), prepared), Story()
        with serving(story) as server:
            panpan.use(server)
            process = panpan.start("-p", "go", *FLAGS)
            time.sleep(random.uniform(0.3, 1.5))  # not to wait for something: whenever it comes, it must do no harm
            process.kill()
            if finished(process).code == 0:
                continue
            done = go_on(panpan, story, panpan.run)
            assert_whole(panpan, story, server, done)
