"""`panpan repro` and `panpan reproduce`. Each command imports its needs when it is called."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from panpan.cli_kit.commands import CommandGroup, chosen_folder
from panpan.errors import ConfigError, PanpanError

_FOLDER = click.argument("folder", metavar="[FOLDER]", default=".", type=click.Path(path_type=Path))
_FORMAT = click.option(
    "-f", "--output-format", "form", type=click.Choice(["text", "json"]), default="text", help="What is printed."
)


@click.group("repro", cls=CommandGroup)
def command() -> None:
    """Check the numbers of a paper: claims, runs, verdicts, and a kit that others can check.

    The claims are in claims.toml. docs/reproduction.md says more.
    """


def existing_folder(folder: Path) -> Path:
    """Return the canonical path of a folder as seen from `panpan --cwd`.

    Raises:
        ConfigError: It is no folder.
    """
    seen = chosen_folder(click.get_current_context(), None).expanduser() / folder.expanduser()
    path = Path(os.path.realpath(seen))
    if not path.is_dir():
        raise ConfigError(f"{folder} is not a folder; name the one that holds claims.toml")
    return path


class StepFailedError(PanpanError):
    """The check could not be made to its end; 1 would say that a claim deviates."""

    exit_code = 2


@contextmanager
def _checking() -> Iterator[None]:
    """Say at Ctrl+C that nothing is lost, and keep the exit code 1 for claims that deviate."""
    try:
        yield
    except PanpanError as error:
        if error.exit_code != PanpanError.exit_code:
            raise
        raise StepFailedError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("\nstopped; the same command goes on", err=True)  # behind the ^C of the terminal
        raise click.exceptions.Exit(128 + signal.SIGINT) from None


@command.command("check")
@_FOLDER
@click.option("--seeds", type=click.IntRange(1, 1_000), metavar="K", help="Run commands with K different seeds.")
@click.option("--only", multiple=True, metavar="ID", help="Check only the claim ID. May be given more than once.")
@click.option("--on", metavar="WHERE", help="Machines, as for panpan batch run.")
@click.option("--at-once", type=click.IntRange(min=1), metavar="N", help="Runs at once on one machine.")
@click.option("--max-hours", type=click.FloatRange(min=0), default=1.0, metavar="H", show_default=True,
              help="Skip claims whose run takes longer.")  # fmt: skip
@click.option("-y", "--yes", "allows_unconfirmed", is_flag=True, help="Check claims that nobody has confirmed, too.")
@click.option("--trust", "trusts", is_flag=True, help="Trust the commands of claims.toml in this run.")
@_FORMAT
def check_command(folder: Path, form: str, **given: Any) -> int:
    """Run the commands of claims.toml in FOLDER, and compare their numbers with the paper's.

    Exit codes: 0 no claim deviates, 1 a claim deviates, 2 usage, configuration, or the check could not be made, 5
    claims wait for confirmation.
    """
    import anyio

    from panpan.repro.checking.check_command import run

    with _checking():
        return anyio.run(run, existing_folder(folder), form, given)


@command.command("show")
@_FOLDER
@_FORMAT
def show_command(folder: Path, form: str) -> int:
    """Show the results of the last check, or the claims if there was none."""
    from panpan.repro.checking.check_command import show

    return show(existing_folder(folder), form)


@command.command("extract")
@click.argument("paper", metavar="PAPER.pdf|README.md|PAGE.html|PAPER.tex", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", default="claims.toml",
              show_default=True, help="Where claims are added; - prints them.")  # fmt: skip
@click.option("-t", "--table", "tables", multiple=True, metavar="N", help="Take only table N. May be given repeatedly.")
@click.option("--example", "writes_example", is_flag=True, help="Without tables, write an example to fill in.")
@_FORMAT
def extract_command(paper: Path, form: str, **given: Any) -> int:
    """Propose claims from the tables of a paper, a README or a page; a person confirms them.

    Claims that the file has are never changed.
    """
    import anyio

    from panpan.repro.papers.extract_command import extract

    return anyio.run(extract, paper, chosen_folder(click.get_current_context(), None).expanduser(), form, given)


@command.command("confirm")
@_FOLDER
@click.option("-y", "--yes", "says_yes", is_flag=True, help="Confirm all claims of FOLDER without a question.")
def confirm_command(folder: Path, says_yes: bool) -> int:
    """Ask you if the claims of FOLDER are what the paper says, and if their commands are right.

    Your answers are kept in the panpan home. A claim that changes afterwards is asked about again.

    Exit codes: 0 all claims that can run are confirmed, 2 usage or configuration, 5 claims wait for you.
    """
    from functools import partial

    import anyio

    from panpan.repro.papers.confirming import confirm

    anyio.run(partial(confirm, existing_folder(folder), says_yes=says_yes, env=os.environ))
    return 0


@command.command("kit")
@_FOLDER
@click.option("-o", "--into", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the kit.")
@click.option("--public-names", "names_are_public", is_flag=True,
              help="Keep names of people and machines in the sources and in their address.")  # fmt: skip
def kit_command(folder: Path, into: Path | None, names_are_public: bool) -> int:
    """Write the kit of the last check of FOLDER, with which others check it without panpan."""
    from functools import partial

    import anyio

    from panpan.repro.kit.kit_command import make_kit

    place = chosen_folder(click.get_current_context(), None).expanduser().resolve() / into if into else None
    made = partial(make_kit, existing_folder(folder), place, os.environ, names_are_public=names_are_public)
    click.echo(f"kit: {anyio.run(made)}")
    return 0


@command.command("verify")
@click.argument("kit", metavar="KIT", type=click.Path(path_type=Path))
@click.option("-d", "--data", type=click.Path(path_type=Path), metavar="DIR", help="Folder of data that KIT lacks.")
@click.option("--network", "has_network", is_flag=True, help="Let the commands of the kit use the network.")
@_FORMAT
def verify_command(kit: Path, form: str, data: Path | None, has_network: bool) -> int:
    """Check the checksums of KIT, run its commands in the sandbox, and compare with its check.

    Exit codes: 0 the same verdicts, 1 others, 2 the kit is broken or cannot run here.
    """
    import anyio

    from panpan.repro.kit.kit_command import show
    from panpan.repro.kit.verify import VerifyOptions, verify

    folder = existing_folder(data) if data else None
    options = VerifyOptions(data=folder, has_network=has_network, environ=os.environ)
    return show(anyio.run(verify, existing_folder(kit), options), form)


@click.command("reproduce")
@click.argument("given", metavar="REPOSITORY|FOLDER|PAPER")
@click.option("--into", metavar="DIR", type=click.Path(path_type=Path), help="Folder for all results.")
@click.option(
    "--repo", "repository", metavar="ADDRESS|FOLDER", help="The repository of a paper; else the one that it names."
)
@click.option("--paper", metavar="FILE|ADDRESS", help="The paper of a repository; else its README is read.")
@click.option("--seeds", type=click.IntRange(1, 1_000), metavar="K", help="Run commands with K different seeds.")
@click.option("--model", metavar="NAME", help="Model that completes the claims and explains what deviates.")
@click.option("--no-model", "without_model", is_flag=True, help="Ask no model.")
@click.option("--max-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Limit its cost.")
@click.option("--max-hours", type=click.FloatRange(min=0), default=1.0, metavar="H", show_default=True,
              help="Skip claims whose run takes longer.")  # fmt: skip
@click.option("--on", metavar="WHERE", help="Machines, as for panpan batch run.")
@click.option("--answer", metavar="TEXT", help="Answer the question at which the model stopped; yes allows a call.")
@click.option("--trust", "trusts", is_flag=True, help="Trust the setup of claims.toml in this run.")
@click.option("-y", "--yes", "says_yes", is_flag=True,
              help="Clone what the paper names, run unconfirmed claims, and allow calls of the model.")  # fmt: skip
@_FORMAT
def reproduce(given: str, form: str, **options: Any) -> int:
    """Reproduce the numbers of a paper: fetch, read, prepare, run, judge, report.

    The same command goes on after an interruption, an answer or a change of claims.toml.

    Exit codes: 0 no claim deviates, 1 a claim deviates, 2 usage, configuration, or a step failed, 4 the money is used
    up, 5 the model, the claims or the choice of a repository wait for you.
    """
    import anyio

    from panpan.repro.journey.reproduce_command import reproduce as run

    folder = chosen_folder(click.get_current_context(), None).expanduser().resolve()
    with _checking():
        return anyio.run(run, given, folder, form, options)
