"""`panpan batch`: begin, watch, answer and end campaigns. Each command imports its needs when it is called."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panpan.batch.store.wording import batch_command
from panpan.cli_kit.commands import CommandGroup, chosen_folder
from panpan.errors import ConfigError

if TYPE_CHECKING:
    from panpan.batch.store.folder import CampaignFolder

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_FORMAT = click.option(
    "-f", "--output-format", "form", type=click.Choice(["text", "json"]), default="text", help="What is printed."
)
_STOP_S = 60.0
"""Seconds that `cancel` waits for the campaign to stop."""

EXAMPLE = """\
# A campaign; docs/campaigns.md has all keys.

attempts = 3                              # at each task, with each value of the axes
verify = "python -m pytest -q"            # decides if an attempt passes

[[task]]
id = "table-1"
prompt = "Reproduce table 1 with the seed {seed}, and write it to table1.csv."

[axes]
seed = [1, 2, 3, 4, 5]

[workspace]
source = ".."                             # the project; each attempt gets a git worktree of it

[attempt]
flags = ["--permission-mode", "auto"]     # no questions about what the sandbox holds
max_usd = 1.0

[budget]
usd = 20.0
"""


@click.group("batch", cls=CommandGroup)
def command() -> None:
    """Run a campaign: many tasks, several attempts each, on one machine or many.

    A campaign is a folder DIR with a file campaign.toml. Attempts keep their sessions, so a campaign that was stopped
    or killed goes on where it was. docs/campaigns.md says more.
    """


@command.command("new")
@_FOLDER
def new_command(folder: Path) -> int:
    """Write an example of campaign.toml into DIR, for the project in the working folder."""
    place = _in_chosen_folder(folder)
    path = place / "campaign.toml"
    project = chosen_folder(click.get_current_context(), None).expanduser().resolve()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(_example_for(project, place.resolve()))
    except FileExistsError as error:
        raise ConfigError(f"{path} is there already; edit it, or choose another folder") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    click.echo(f"wrote {path} for the project {project}; edit it, then: {batch_command('run', folder)}")
    return 0


def _example_for(project: Path, place: Path) -> str:
    """Return the example with its project: relative to a campaign's folder that lies in it, else absolute."""
    source = os.path.relpath(project, place) if place.is_relative_to(project) else str(project)
    before, _, after = EXAMPLE.partition('source = ".."')
    line = f"source = {json.dumps(source, ensure_ascii=False)}"
    return f"{before}{line:<41} {after.lstrip()}"


@command.command("run")
@_FOLDER
@click.option("--on", metavar="WHERE", help="Machines: local:N, ssh:HOSTS, slurm, or the address of a Dask scheduler.")
@click.option("--at-once", type=click.IntRange(min=1), metavar="N", help="Attempts at once on one machine.")
@click.option("--model", metavar="NAME", help="Model of all attempts, unless there is an axis model.")
@click.option("--retry-errors", "retries_errors", is_flag=True, help="Go on with attempts that ended with an error.")
@click.option("--trust", "trusts", is_flag=True, help="Trust the campaign's files in this run, without a question.")
@_FORMAT
def run_command(folder: Path, form: str, **options: Any) -> int:
    """Begin the campaign, or go on with it. Ctrl+C stops it so that it can go on.

    Exit codes: 0 all attempts have a result, 1 some could not be made, 2 usage or configuration, 4 the budget is used
    up, 5 attempts wait for your answer, 130 and 143 stopped.
    """
    import anyio

    from panpan.batch.faces.run_command import run

    return anyio.run(run, _existing(folder), form, options)


@command.command("status")
@_FOLDER
@click.option("--watch", "watches", is_flag=True, help="Show it again and again until the campaign has ended.")
@_FORMAT
def status_command(folder: Path, watches: bool, form: str) -> int:
    """Show how far it is, by status and by axis, also on another machine."""
    from panpan.batch.faces.overview import Looker
    from panpan.batch.faces.status import status_lines, watch

    path = _existing(folder)
    if watches and form == "json":
        raise click.UsageError("--watch and --output-format json exclude each other")
    if watches:
        watch(path)
        return 0
    view = Looker(path).look()
    click.echo(_json(view.as_json()) if form == "json" else "\n".join(status_lines(view)))
    return 0


@command.command("attach")
@_FOLDER
@click.argument("task")
def attach_command(folder: Path, task: str) -> int:
    """Show the attempt TASK[/N] as it runs. If it does not run, open its session on a terminal, to go on by hand.

    TASK is a name, NAME/AXIS=VALUE, or the beginning of a digest.
    """
    import anyio

    from panpan.batch.faces.attaching import attach

    return anyio.run(attach, _campaign(folder), task)


@command.command("answer")
@_FOLDER
@click.argument("task", required=False)
@click.argument("text", default="")
@click.option("--choice", type=click.IntRange(min=1), metavar="N", help="Take the answer with this number.")
@click.option("--allow", "allows", is_flag=True, help="Allow the call, or approve the plan.")
@click.option(
    "--unfinished",
    type=click.Choice(["finished", "not-run", "unclear"]),
    help="What became of a command that a crash cut off.",
)
@click.option("--skip", "skips", is_flag=True, help="Go on without an answer, or refuse the call.")
@_FORMAT
def answer_command(folder: Path, task: str | None, form: str, **given: Any) -> int:
    """Answer the attempt TASK[/N], which waits for you. Without TASK, list all that wait."""
    from panpan.batch.faces.answer_dialog import answer

    return answer(_campaign(folder), task, given, form)


@command.command("pick")
@_FOLDER
@click.argument("task")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
def pick_command(folder: Path, task: str, is_sure: bool) -> int:
    """Bring the best attempt at TASK, or the attempt TASK/N, into your project."""
    import anyio

    from panpan.batch.faces.pick_dialog import pick

    return anyio.run(pick, _campaign(folder), task, is_sure)


@command.command("report")
@_FOLDER
@_FORMAT
def report_command(folder: Path, form: str) -> int:
    """Write results.csv, report.md and report.html."""
    from panpan.batch.reporting.report import write_report

    campaign = _campaign(folder)
    report = write_report(campaign)
    if form == "json":
        click.echo(_json(report.as_json()))
        return 0
    for name, text in report.totals():
        click.echo(f"{name}: {text}")
    click.echo(f"written: {campaign.path / 'report.html'}, report.md and results.csv")
    return 0


@command.command("cancel")
@_FOLDER
@click.argument("tasks", nargs=-1)
def cancel_command(folder: Path, tasks: tuple[str, ...]) -> int:
    """Stop the campaign, so that `run` goes on with it; or end the attempts TASK[/N] for good."""
    import anyio

    from panpan.batch.faces.answering import cancel, stop_campaign
    from panpan.system.text.terminal_text import clean_line

    campaign = _campaign(folder)
    if tasks:
        labels = cancel(campaign, tasks)
        click.echo(f"cancelled: {', '.join(map(clean_line, labels))}")
        return 0
    said = anyio.run(stop_campaign, campaign, _STOP_S)
    click.echo(f"{said}; {batch_command('run', folder)} goes on with it")
    return 0


def _in_chosen_folder(folder: Path) -> Path:
    """Return a folder as seen from `panpan --cwd`."""
    return chosen_folder(click.get_current_context(), None).expanduser() / folder.expanduser()


def _existing(folder: Path) -> Path:
    """Return the canonical path of a folder.

    Raises:
        ConfigError: It is no folder.
    """
    path = Path(os.path.realpath(_in_chosen_folder(folder)))
    if not path.is_dir():
        raise ConfigError(f"{folder} is not a folder; make one with: {batch_command('new', folder)}")
    return path


def _campaign(folder: Path) -> "CampaignFolder":
    from panpan.batch.store.folder import CampaignFolder

    campaign = CampaignFolder(_existing(folder))
    campaign.frozen()  # or its other files are missing without a reason
    return campaign


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=not (sys.stdout.encoding or "").lower().startswith("utf"))
