"""`panpan batch answer` on a terminal: one question after the other, each with its task."""

import os
from pathlib import Path

from panpan.batch.faces.answering import SKIPPED
from panpan.batch.store.records import Needs
from tests.batch.campaign_files import begun_campaign, task_of
from tests.prepared_command import PREPARED
from tests.terminal_emulator.terminal import Terminal

SPLIT = Needs(kind="question", text="Which split?", choices=("paper", "repository"))


def test_dialog_goes_through_all_that_wait(tmp_path: Path) -> None:
    one, two = task_of("table", seed=1), task_of("table", seed=2)
    folder = begun_campaign(tmp_path / "camp", [one, two])
    attempts = [folder.attempt(task.id, 1) for task in (one, two)]
    for attempt in attempts:
        attempt.path.mkdir(parents=True)
        attempt.write_needs(SPLIT)
    env = {**os.environ, "PANPAN_HOME": str(tmp_path / "home")}
    argv = PREPARED.argv("batch", "answer", str(folder.path), env=env)

    with Terminal(argv, env=env, cwd=tmp_path, rows=40) as terminal:
        terminal.wait_for("2  table/seed=2/1: Which split?")
        terminal.send("2")
        terminal.wait_for("table/seed=2/1 waits for an answer.")
        terminal.wait_for(f"Its task: {two.prompt}")
        terminal.send("1")
        terminal.wait_for("answered table/seed=2/1")
        terminal.wait_for("table/seed=1/1 waits for an answer.")
        terminal.send("3")
        terminal.wait_for("answered table/seed=1/1")
        assert terminal.wait() == 0
        assert "Your answer: paper" in terminal.text

    answers = [attempt.answer() for attempt in attempts]
    assert [answer.text if answer else None for answer in answers] == [SKIPPED, "paper"]
