"""One run of a campaign, as a process that a soak kills: FOLDER, then the command line that starts panpan."""

import sys
from functools import partial
from pathlib import Path

import anyio

from panpan.batch.attempts.attempt import Worker, run_attempt
from panpan.batch.coordination.coordinator import run_campaign
from panpan.batch.coordination.local_place import local_place
from panpan.batch.store.folder import CampaignFolder


async def main(path: Path, panpan: list[str]) -> None:
    folder = CampaignFolder(path)
    frozen = folder.frozen()
    place = await local_place(frozen, partial(run_attempt, worker=Worker(panpan=panpan)))
    summary = await run_campaign(folder, frozen, place)
    print(summary.because, summary.message, flush=True)  # noqa: T201


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2:])
