"""A campaign: the time to expand its tasks and to write them, once."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

from benchmarks.figure import Figure
from panpan.batch.loading import prepare
from tests.fakes.campaign import make_campaign

TITLE = "a campaign"

TASKS, SEEDS = 200, 5
_TASK = """
[[task]]
id = "table-{number}"
prompt = "Reproduce table {number} of the paper with the seed {{seed}}, and write it to results/{number}.csv."
"""
_REST = f"""
[axes]
seed = {list(range(SEEDS))}

[workspace]
source = "../project"
isolation = "copy"
"""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark, part by part."""
    yield from _expansion(runs)


def _expansion(runs: int) -> Iterator[Figure]:
    first, later = zip(*(_begin_and_go_on() for _ in range(runs)), strict=True)
    yield Figure(f"{TASKS * SEEDS:,} tasks: read, expanded and written", "ms", first, at_most=1000)
    yield Figure("the same in a later run, which compares them", "ms", later, at_most=1000)


def _begin_and_go_on() -> tuple[float, float]:
    """Return milliseconds that the first run takes to prepare, and a later one."""
    text = "".join(_TASK.format(number=number) for number in range(TASKS))
    with TemporaryDirectory() as folder:
        campaign = make_campaign(Path(folder), f"verify = 'make check'\n{text}{_REST}", is_repository=False)
        return _prepare_ms(campaign.path), _prepare_ms(campaign.path)


def _prepare_ms(folder: Path) -> float:
    async def prepared() -> float:
        begin = perf_counter()
        frozen = await prepare(
            folder, {"HOME": str(folder.parent), "PANPAN_HOME": str(folder.parent / "home")}, trusts=True
        )
        took = perf_counter() - begin
        assert frozen.tasks == TASKS * SEEDS
        return took * 1000

    return anyio.run(prepared)
