"""/tasks lists what runs in the background, shows what it printed, and stops it."""

import re

import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.capability import _look, gpu_use
from panpan.errors import ConfigError
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, terminal_in, type_in
from tests.fakes.background import FakeBackground, task


def terminal_with(tmp_path, *tasks, picks=(), **outputs) -> FakeTerminal:
    terminal = terminal_in(tmp_path / "work")
    terminal.session[BackgroundTasks] = FakeBackground(*tasks)
    terminal.session[BackgroundTasks].outputs = outputs
    left = list(picks)

    async def choose(title, options, search=None):
        terminal.title, terminal.options = title, options
        return left.pop(0) if left else None

    terminal.choose = choose
    return terminal


async def test_tasks_command_says_that_nothing_runs(tmp_path):
    terminal = await type_in(terminal_with(tmp_path), "/tasks")

    assert "there were no background tasks" in terminal.text


async def test_tasks_command_lists_each_with_its_state(tmp_path):
    terminal = terminal_with(
        tmp_path,
        task("aaaa0001", "npm run dev"),
        task("aaaa0002", "pytest", state="failed", exit_code=1, ended_at=1004.0),
    )
    await type_in(terminal, "/tasks")

    (runs, failed) = terminal.options
    assert (runs.label, failed.label) == ("npm run dev", "pytest")
    assert runs.detail.startswith("running, ")
    assert failed.detail == "failed, exit code 1, 4.0 s, aaaa0002"


async def test_tasks_command_stops_a_running_one(tmp_path):
    terminal = await type_in(terminal_with(tmp_path, task(), picks=[0, 2]), "/tasks")

    assert terminal.session[BackgroundTasks].running == []
    assert "was stopped: npm run build" in terminal.text


async def test_tasks_command_stops_nothing_without_a_choice(tmp_path):
    terminal = await type_in(terminal_with(tmp_path, task(), picks=[0]), "/tasks")

    assert len(terminal.session[BackgroundTasks].running) == 1


async def test_tasks_command_shows_output_during_and_after_a_task(tmp_path):
    runs = terminal_with(tmp_path, task("aaaa0001"), picks=[0, 1], aaaa0001="line 1\nline 2\n")
    ended = terminal_with(tmp_path, task("aaaa0001", state="finished"), picks=[0], aaaa0001="line 1\nline 2\n")
    for terminal in (runs, ended):
        await type_in(terminal, "/tasks")
        assert terminal.read_lines[-2:] == ["line 1", "line 2"]
        assert "npm run build" in terminal.read_lines[0]


async def test_tasks_command_needs_no_pager_for_a_silent_task(tmp_path):
    terminal = await type_in(terminal_with(tmp_path, task(state="finished"), picks=[0]), "/tasks")

    assert "it has printed nothing" in terminal.text
    assert terminal.read_lines == []


async def test_tasks_command_takes_an_id(tmp_path):
    terminal = terminal_with(tmp_path, task("aaaa0001"), task("aaaa0002", "pytest"), picks=[2])
    await type_in(terminal, "/tasks aaaa0002")

    assert [one.id for one in terminal.session[BackgroundTasks].running] == ["aaaa0001"]


async def test_tasks_command_refuses_an_unknown_id(tmp_path):
    with pytest.raises(ConfigError, match="there is no background task nope"):
        await type_in(terminal_with(tmp_path, task()), "/tasks nope")


@pytest.mark.parametrize("wanted", ["2", "12345678", "bbbb", "BB", "12"])
async def test_tasks_command_takes_a_number_or_the_start_of_an_id(tmp_path, wanted):
    tasks = task("aaaa0001"), task("bbbb0002" if wanted.lower().startswith(("2", "b")) else "12345678", "pytest")
    terminal = await type_in(terminal_with(tmp_path, *tasks, picks=[2]), f"/tasks {wanted}")

    assert [one.id for one in terminal.session[BackgroundTasks].running] == ["aaaa0001"]


async def test_tasks_command_refuses_an_ambiguous_id(tmp_path):
    with pytest.raises(ConfigError, match="several background tasks begin with aaaa"):
        await type_in(terminal_with(tmp_path, task("aaaa0001"), task("aaaa0002")), "/tasks aaaa")


def put_nvidia_smi(folder, script):
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)
    return {"PATH": str(folder)}


async def test_tasks_command_watches_the_last_lines_and_the_gpu(tmp_path):
    terminal = terminal_with(tmp_path, task("aaaa0001"), picks=[0, 0], aaaa0001="epoch 1\repoch 2\n")
    terminal.env |= put_nvidia_smi(tmp_path, "echo '0, 45, 3200, 24000'")
    await type_in(terminal, "/tasks")

    assert re.fullmatch(r"\d+ h \d+ min · GPU 0 45% 3.2/24.0 GB · npm run build", terminal.rows[0])
    assert terminal.rows[1:] == ["epoch 1", "epoch 2"]


async def test_tasks_command_stops_watching_an_ended_task(tmp_path):
    terminal = terminal_with(tmp_path, task("aaaa0001"), aaaa0001="one\n")
    assert await _look(terminal, "aaaa0001")

    terminal.session[BackgroundTasks].end("aaaa0001")
    assert await _look(terminal, "aaaa0001") == {}


@pytest.mark.parametrize("script", ["exit 9", "echo 'No devices were found'", "echo '0, [N/A], 1, 2'", "exec sleep 60"])
async def test_gpu_use_is_empty_without_nvidia_smi(tmp_path, script):
    assert await gpu_use({**put_nvidia_smi(tmp_path, script), "PATH": f"{tmp_path}:/usr/bin:/bin"}) == ""
    assert await gpu_use({"PATH": ""}) == ""
