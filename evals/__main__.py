"""`python -m evals`: run the tasks, print a table in Markdown.

With the embedded model, one server is kept for all trials. Latencies depend on the machine; results do not.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import anyio
import click

from evals.kinds import KINDS
from evals.trial import Trial, run_trial
from evals.vocabulary import SETS


@click.command()
@click.option("--model", default="local", show_default=True, help="As for panpan --model.")
@click.option("--set", "set_name", type=click.Choice(list(SETS)), default="counted", show_default=True)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="Only these kinds.")
@click.option("--trials", default=10, show_default=True, help="Of each kind.")
@click.option("--seed", default=1, show_default=True, help="Makes other tasks of the same words.")
@click.option("--stories", type=click.Path(path_type=Path), help="Write what happened in the trials that failed here.")
def main(model: str, set_name: str, kinds: Sequence[str], trials: int, seed: int, stories: Path | None) -> None:
    """Measure how often a model does small tasks right."""
    if set_name == "counted" and stories is not None:
        raise click.UsageError("the counted set is for counting only; look at failures with --set development")
    results = anyio.run(_run_all, model, set_name, list(kinds) or list(KINDS), trials, seed, stories)
    click.echo(f"\nModel {model}, {set_name} set, seed {seed}, {date.today().isoformat()}\n")
    click.echo(table(results))


async def _run_all(
    model: str, set_name: str, kinds: Sequence[str], trials: int, seed: int, stories: Path | None
) -> list[Trial]:
    results: list[Trial] = []
    async with AsyncExitStack() as stack:
        log = None if stories is None else stack.enter_context(stories.open("w", encoding="utf-8"))
        home = Path(stack.enter_context(TemporaryDirectory(prefix="panpan-eval-home-")))
        if model == "local":
            await _keep_server(stack)
        for kind in kinds:
            for number in range(trials):
                task = KINDS[kind](Random(f"{seed} {kind} {number}"), SETS[set_name])
                trial = await run_trial(task, model, home)
                results.append(trial)
                mark = "pass" if trial.has_passed else "FAIL"
                click.echo(f"{mark} {kind} {number + 1}/{trials} {trial.duration_s:.1f} s", err=True)
                if log is not None and not trial.has_passed:
                    print(trial.story, file=log, flush=True)
    return results


async def _keep_server(stack: AsyncExitStack) -> None:
    """Start the embedded model once for all trials, unless it runs already."""
    from panpan.capabilities.local_model.server import announce, running_server, start_server
    from panpan.capabilities.local_model.weight_store import embedded_store

    weights = embedded_store(os.environ).check()
    if running_server(weights.parent) is None:
        served = await stack.enter_async_context(start_server(weights))
        stack.enter_context(announce(weights.parent, served))


def table(results: Sequence[Trial]) -> str:
    """Return the success rates by kind and over all trials, as a table in Markdown."""
    kinds = dict.fromkeys(trial.task.kind for trial in results)
    rows = [_row(kind, [trial for trial in results if trial.task.kind == kind]) for kind in kinds]
    return "\n".join(["| task | passed | rate | median time |", "|---|---|---|---|", *rows, _row("all", results)])


def _row(name: str, trials: Sequence[Trial]) -> str:
    passed = sum(trial.has_passed for trial in trials)
    middle = sorted(trial.duration_s for trial in trials)[len(trials) // 2]
    return f"| {name} | {passed} of {len(trials)} | {100 * passed / len(trials):.0f} % | {middle:.1f} s |"


if __name__ == "__main__":
    sys.exit(main())
