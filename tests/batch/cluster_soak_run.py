"""One run of a campaign on the hosts of a file, as a process that a soak kills: FOLDER, then HOSTS."""

import sys
from pathlib import Path

import anyio

from panpan.batch.cluster.cluster_place import ClusterPlace
from panpan.batch.coordination.coordinator import run_campaign
from panpan.batch.definition.campaign import Where
from panpan.batch.store.folder import CampaignFolder


async def main(path: Path, hosts: str) -> None:
    folder = CampaignFolder(path)
    place = ClusterPlace(Where(on=f"ssh:{hosts}", listen="127.0.0.1"), folder)
    summary = await run_campaign(folder, folder.frozen(), place)
    print(summary.because, summary.message, flush=True)  # noqa: T201


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
