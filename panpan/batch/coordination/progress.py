"""News of a campaign that runs, and its end, as people and programs are told."""

from collections.abc import Sequence
from pathlib import Path

from panpan.batch.coordination.schedule import Attempt
from panpan.batch.store.records import EndedBecause, Needs, Result, Running, RunningAttempt, WaitingAttempt
from panpan.batch.store.wording import batch_command
from panpan.types.dataclass import dataclass

_SHORT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """News of a campaign that runs."""

    running: Running
    result: Result | None = None
    """Result of the attempt that has just ended."""
    waiting: WaitingAttempt | None = None
    """The attempt that has just stopped, since it needs a person."""


@dataclass(frozen=True, slots=True)
class Summary:
    """End of a run of a campaign."""

    because: EndedBecause
    message: str
    """For people: the reason, and what to do."""
    running: Running
    """The last record, with the counts by status, what waits and what was spent."""


def running_record(attempt: Attempt, seconds: float) -> RunningAttempt:
    """Return an attempt that has run for some seconds, as `status` lists it."""
    task = attempt.task
    return RunningAttempt(task_id=task.id, task=task.name, axes=task.axes, attempt=attempt.number, seconds=seconds)


def waiting_record(attempt: Attempt, needs: Needs) -> WaitingAttempt:
    """Return an attempt that waits for a person, as `status` lists it."""
    first_line = needs.text.strip().partition("\n")[0]
    return WaitingAttempt(
        task_id=attempt.task.id,
        task=attempt.task.name,
        axes=attempt.task.axes,
        attempt=attempt.number,
        kind=needs.kind,
        text=first_line[:_SHORT_CHARS],
    )


def sentence(because: EndedBecause, last: Running, folder: Path, lacking: str, unfit: Sequence[str]) -> str:
    """Return the reason of an end, and what to do.

    Args:
        because: The reason.
        last: The last record of the run.
        folder: The campaign's folder.
        lacking: The amount of the budget that did not suffice.
        unfit: Reasons why machines could not run attempts.
    """
    left = last.attempts - sum(last.counts.values())
    match because:
        case "done":
            done = f"{_attempts(last.attempts, 'has', 'have')} a result"
            if not (errors := last.counts.get("error", 0)):
                return done
            again = batch_command("run", folder, "--retry-errors")
            return f"{done}, {errors} of them an error; try again with {again}"
        case "waiting":
            return f"{_attempts(len(last.waiting), 'needs', 'need')} you; answer with {batch_command('answer', folder)}"
        case "budget":
            return (
                f"the budget's {lacking} is used up, or what is left is less than the limit of one attempt; "
                f"{_attempts(left, 'has', 'have')} no result; raise [budget] in campaign.toml, and run it again"
            )
        case "stopped":
            go_on = batch_command("run", folder)
            return f"stopped, with {left} of {last.attempts} attempts to do; go on with {go_on}"
        case "unfit":
            return f"{_attempts(left - len(last.waiting))} cannot run: {_shortened(unfit)}"


def _shortened(reasons: Sequence[str]) -> str:
    """Return the first reason, and how many others there are; they often differ in a path alone."""
    others = len(reasons) - 1
    first = reasons[0] if reasons else "no machine is left"
    return f"{first} (and {others} other reason{'s' * (others != 1)})" if others > 0 else first


def _attempts(number: int, one: str = "", many: str = "") -> str:
    return f"1 attempt {one}".rstrip() if number == 1 else f"{number} attempts {many}".rstrip()
