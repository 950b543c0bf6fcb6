"""Runs one task with panpan, as a user would, and returns the result."""

import os
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

import panpan
from evals.task import Outcome, Task
from panpan.config.run_settings import VARIABLES
from panpan.types.events import ToolFinished
from panpan.types.messages import AssistantMessage, ToolResultMessage

TIME_LIMIT_S = 600.0
"""Most seconds for one task, plenty for a small model on a busy machine."""
MAX_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of one task."""

    task: Task
    has_passed: bool
    duration_s: float
    story: str
    """Actions of the model, to find the reason for the result."""


async def run_trial(task: Task, model: str, home: Path) -> Trial:
    """Run a task in a new folder and check the result.

    Args:
        task: The task.
        model: Name of the model, as for `--model`.
        home: The panpan home, without any files of the user.
    """
    with TemporaryDirectory(prefix="panpan-eval-") as name:
        folder = Path(name)
        task.write(folder)
        began_s = perf_counter()
        story: list[str] = [f"[{task.kind}] {task.prompt}"]
        outcome = Outcome(folder, "", (), 0)
        try:
            with anyio.fail_after(TIME_LIMIT_S):
                outcome = await _run(task, model, folder, home, story)
            has_passed = await anyio.to_thread.run_sync(task.has_passed, outcome)
        except TimeoutError:
            has_passed = False
            story.append("time is up")
        except panpan.PanpanError as error:
            has_passed = False
            story.append(f"failed: {error}")
        return Trial(task, has_passed, perf_counter() - began_s, "\n".join(story))


async def _run(task: Task, model: str, folder: Path, home: Path, story: list[str]) -> Outcome:
    overrides = {"model": model, "max_rounds": MAX_ROUNDS}
    env = _environment(home)
    answer, commands, calls = "", {}, 0
    succeeded: list[str] = []
    async with (
        panpan.open_session(folder, overrides=overrides, auto_approve=True, env=env) as session,
        aclosing(session.submit(task.prompt)) as events,
    ):
        async for event in events:
            match event:
                case AssistantMessage():
                    answer = event.text
                    story += [f"  says {answer!r}"] if answer else []
                    for use in event.tool_uses:
                        commands[use.id] = str(use.input.get("command", ""))
                        story.append(f"  {use.name} {use.input}")
                case ToolFinished(tool_use_id=use_id, is_error=is_error):
                    calls += not is_error
                    if not is_error:
                        succeeded.append(commands[use_id])
                case ToolResultMessage():
                    story.append(f"  -> {event.result.content}"[:600])
                case _:
                    pass
    return Outcome(folder, answer, tuple(succeeded), calls)


def _environment(home: Path) -> dict[str, str]:
    """Return an environment without the user's settings."""
    return {name: value for name, value in os.environ.items() if name not in VARIABLES} | {"PANPAN_HOME": str(home)}
