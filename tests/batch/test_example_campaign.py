"""The campaign that the tests of this folder begin with."""

from pathlib import Path

from tests.fakes.campaign import frozen_of, git, make_campaign, task_of


def test_example_is_read_back_as_written(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path)
    tasks = [task_of("first", axes={"seed": 1}), task_of("first", axes={"seed": 2})]
    frozen = frozen_of(folder, tasks)
    assert folder.tasks() == tasks
    assert len({task.id for task in folder.tasks()}) == 2
    assert folder.frozen() == frozen
    assert git(Path(frozen.source), "rev-parse", "HEAD").strip() == frozen.commit
