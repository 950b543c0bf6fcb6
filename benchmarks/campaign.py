"""A campaign: the time to expand and write its tasks, the cost of an attempt beside its panpan, and of `status`."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

from benchmarks.figure import Figure
from benchmarks.model_server import serving
from benchmarks.process import run
from panpan.batch.attempts.attempt import Worker, run_attempt
from panpan.batch.definition.loading import prepare
from panpan.batch.store.records import Changes, Finished, Job, Result, Spent, Task, Verdict
from panpan.integrations.headless import headless_command
from tests.fakes.campaign import frozen_of, make_campaign, task_of

TITLE = "a campaign"

TASKS, SEEDS = 200, 5
PROGRAM = str(Path(sys.executable).with_name("panpan"))
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
    yield from anyio.run(_attempts, runs)
    yield from _status(runs)


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


_ATTEMPTED = """
[attempt]
flags = ["--yes", "--sandbox", "off"]

[[task]]
id = "first"
prompt = "Go."
"""
_REPLY = {"repeat": True, "replies": [{"text": "All done."}]}


async def _attempts(runs: int) -> Sequence[Figure]:
    """Measure attempts whose model answers at once, each followed by the same panpan in the workspace it made."""
    tasks = [task_of(f"task-{number}") for number in range(runs + 1)]
    attempts, alone = list[float](), list[float]()
    with TemporaryDirectory() as folder, serving(_REPLY) as server:
        campaign = make_campaign(Path(folder), _ATTEMPTED)
        frozen = frozen_of(campaign, tasks)
        environ = {**os.environ, "HOME": folder, "ANTHROPIC_API_KEY": "sk-none", "ANTHROPIC_BASE_URL": server.url}
        worker = Worker(environ={**environ, "PANPAN_SESSIONS_TITLE": "first-words"})
        for task in tasks:
            job = Job(folder=str(campaign.path), campaign_id=frozen.id, task_id=task.id, attempt=1)
            begin = perf_counter()
            end = await run_attempt(job, worker=worker)
            attempts.append((perf_counter() - begin) * 1000)
            assert isinstance(end, Finished)
            assert end.result.status == "done", end.result.message
            argv = headless_command("Go.", command=worker.panpan, flags=("--yes", "--sandbox", "off"))
            env = {**worker.environ, "PANPAN_HOME": frozen.home}
            begin = perf_counter()
            await anyio.run_process(argv, cwd=campaign.attempt(task.id, 1).workspace, env=env)
            alone.append((perf_counter() - begin) * 1000)
    beyond = [one - other for one, other in zip(attempts, alone, strict=True)]
    return (
        Figure("an attempt whose model answers at once", "ms", attempts[1:]),  # the first one imports
        Figure("the same panpan alone, in a folder that is there", "ms", alone[1:]),
        Figure("the attempt beyond that", "ms", beyond[1:], at_most=50),
    )


RESULTS = 10_000


def _status(runs: int) -> Iterator[Figure]:
    with TemporaryDirectory() as name:
        base = Path(name)
        folder = make_campaign(base, f"verify = 'make check'\n{_TASK.format(number=1)}{_REST}", is_repository=False)
        tasks = [task_of(f"table-{number}", axes={"seed": number % SEEDS}) for number in range(RESULTS)]
        frozen_of(folder, tasks)
        folder.rewrite_results(list(map(_result, tasks)))
        env = {"HOME": str(base), "PANPAN_HOME": str(base / "home"), "PATH": os.environ["PATH"]}
        done = [run([PROGRAM, "batch", "status", str(folder.path)], env=env, cwd=base) for _ in range(runs)]
    assert f"{RESULTS:,} of {RESULTS:,} attempts (100 %)" in done[0].stdout
    yield Figure(
        f"status of {RESULTS:,} tasks, with the start of panpan", "ms", [one.wall_s * 1e3 for one in done], at_most=300
    )


def _result(task: Task) -> Result:
    """Return a result as long as usual ones."""
    return Result(
        task_id=task.id,
        task=task.name,
        axes=task.axes,
        attempt=1,
        status="passed",
        ended_by="answer",
        message="word " * 60,
        verdict=Verdict(exit_code=0, seconds=3.0, output="line\n" * 100),
        changes=Changes(files=("results/1.csv", "src/table.py"), added=40, removed=3),
        spent=Spent(usd=0.5, tokens=100_000, seconds=300.0),
    )
