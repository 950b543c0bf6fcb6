"""The commands of a plan are recorded one by one."""

from contextlib import aclosing
from pathlib import Path

from panpan.capabilities.packages.plan import Plan, PlanResult, run_plan
from panpan.capabilities.packages.target import Target
from panpan.core.recorded_commands import RunnerRecords
from tests.fakes.context import context_in
from tests.fakes.records import KeptRecords


async def test_plan_records_each_command_that_ran(tmp_path: Path) -> None:
    records = KeptRecords({"PYTEST_ADDOPTS": "--junitxml=here"})
    commands = ("sh", "-c", "echo $PYTEST_ADDOPTS"), ("sh", "-c", "exit 4"), ("sh", "-c", "echo never")
    plan = Plan(Target(tmp_path, "venv"), commands, runs_code=True)
    env = {"PATH": "/usr/bin:/bin"}
    async with aclosing(run_plan(plan, context_in(tmp_path), env, RunnerRecords(records))) as items:
        results = [item async for item in items if isinstance(item, PlanResult)]

    assert [record.command.argv for record in records.all] == list(commands[:2])
    assert [record.said for record in records.all] == [
        ["started in off", "ended with 0", "left"],
        ["started in off", "ended with 4", "left"],
    ]
    assert records.all[0].printed == b"--junitxml=here\n"
    assert results[0].exit_code == 4
