"""Campaign folders made by tests, as the coordinator leaves them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.batch.definition.campaign import Campaign
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import FrozenCampaign, Result, Spent, Task
from tests.fakes import campaign as fakes


def task_of(name: str, **axes: Any) -> Task:
    return fakes.task_of(name, "go", axes=axes)


def result_of(task: Task, status: Any = "passed", attempt: int = 1, **fields: Any) -> Result:
    given = {"ended_by": "answer", "spent": Spent(usd=0.5, tokens=1000, seconds=60.0), "tries": 1, **fields}
    return Result(task_id=task.id, task=task.name, axes=task.axes, status=status, attempt=attempt, **given)


def begun_campaign(
    place: Path, tasks: Sequence[Task], results: Iterable[Result] = (), campaign: Mapping[str, Any] | None = None
) -> CampaignFolder:
    """Make the folder of a campaign that has begun."""
    place.mkdir(parents=True, exist_ok=True)
    folder = CampaignFolder(place)
    folder.write_frozen(
        FrozenCampaign(
            id="0b54a4d3-5f1e-4a4e-8a3a-0f0f0f0f0f0f",
            tasks=len(tasks),
            tasks_digest="0" * 32,
            source=str(place.parent / "project"),
            home=str(place.parent / "home"),
            campaign=Campaign.model_validate({"task": [], **(campaign or {})}),
        )
    )
    folder.tasks_file.write_text("".join(f"{task.model_dump_json()}\n" for task in tasks))
    for result in results:
        folder.append_result(result)
    return folder


def write_running(folder: CampaignFolder, **fields: Any) -> None:
    """Write `state/running.json`."""
    given = {
        "begun_at": "2026-11-30T08:00:00Z", "host": "elsewhere", "pid": 1, "seconds": 10.0, "attempts": 1, "counts": {},
        "running": [], "waiting": [], "hosts": [], "note": "", "ended": None, "seconds_left": None,
        "rates": {"usd": 0.0, "tokens": 0.0, "attempts": 0.0}, **fields,
    }  # fmt: skip
    folder.running_file.write_text(json.dumps(given))
