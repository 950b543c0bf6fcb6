"""`panpan ci`: review and fix in CI, and a check before a commit."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from panpan.cli.ci.findings import FORMATS, AnswerError, Report, as_text, written
from panpan.cli.ci.material import LargeChangeError, Material, difference, read_diff, read_texts, repository_root
from panpan.cli_kit.commands import CommandGroup, chosen_folder
from panpan.errors import ConfigError, OutputError, ProviderError
from panpan.system.text.terminal_text import clean_for_terminal

CHECK_S = 60.0
"""Seconds of `panpan ci check`, which somebody waits for."""
_CHECK_TRIES = 1
_MAX_ROUNDS = 30


@click.group("ci", cls=CommandGroup)
def command() -> None:
    """Review or fix a change where strangers may write what the model reads, and nobody watches.

    Nothing of the repository is settings, rules, hooks, servers, skills or plug-ins. The run has no network but the
    model.
    """


def _options(for_fix: bool = False, for_check: bool = False) -> Callable[[Any], Any]:
    """Return the options that the commands share."""
    options = [
        click.option("--model", metavar="NAME", help="Model, alias or provider/model."),
        click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="The checkout."),
    ]
    if not for_check:
        options += [
            click.option("--text", "texts", multiple=True, metavar="NAME=FILE",
                         help="Text of strangers, such as title=title.txt; it reaches the model as an untrusted file."),
            click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Limit on rounds."),
            click.option("--max-budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD",
                         help="Limit on the cost."),
            click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
                         help="Limit on the time."),
            click.option("--base", metavar="REF", help="Commit or branch that the change is based on."),
            click.option("--diff", "diff_file", metavar="FILE", help="The change as a patch; - for standard input."),
        ]  # fmt: skip
    if for_fix:
        options.append(
            click.option("--commands", "runs_commands", is_flag=True,
                         help="Also let it run commands in the sandbox, without a network.")
        )  # fmt: skip
    else:
        options.append(
            click.option("--fail-on", type=click.Choice(["error", "warning", "note", "never"]),
                         default="error" if for_check else "never", show_default=True,
                         help="End with 1 if a finding is at least so severe.")
        )  # fmt: skip

    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@command.command("review")
@_options()
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="text", show_default=True,
              help="github: annotations at the lines.")  # fmt: skip
@click.pass_context
def review_command(ctx: click.Context, /, format_: str, fail_on: str, **options: Any) -> int:
    """Review the change since --base, or the one in --diff, and print findings. It changes nothing."""
    from panpan.cli.ci.runs import review

    _require_one_diff(options)
    root, material = _material(ctx, options)
    if not material.diff.strip():
        click.echo("panpan: there is no change to review", err=True)
        return _finish(Report(summary="There is no change to review."), format_, fail_on, root)
    report = anyio.run(review, root, material, _ci_options(options))
    return _finish(report, format_, fail_on, root)


@command.command("fix")
@_options(for_fix=True)
@click.pass_context
def fix_command(ctx: click.Context, /, **options: Any) -> int:
    """Change the files of the checkout as the texts ask, and print the patch. It commits and pushes nothing."""
    from panpan.cli.ci.runs import fix

    if not options["texts"] and not options["diff_file"] and not options["base"]:
        raise click.UsageError("say what to fix: --text issue=FILE, or a change with --base or --diff")
    root, material = _material(ctx, options)
    words, patch = anyio.run(fix, root, material, _ci_options(options))
    redact = _redactor(root)
    _print(redact(patch))
    click.echo(as_text(Report(summary=redact(words) or "There is nothing to say.")), nl=False, err=True)
    if not patch:
        click.echo("panpan: no file was changed, so the patch is empty", err=True)
    return 0


@command.command("check")
@_options(for_check=True)
@click.option("--staged", is_flag=True, help="Check what is staged; for hooks before a commit.")
@click.option("--seconds", type=click.FloatRange(min=1, max=CHECK_S), default=CHECK_S, show_default=True,
              help="Limit on the time.")  # fmt: skip
@click.pass_context
def check_command(ctx: click.Context, /, staged: bool, seconds: float, fail_on: str, **options: Any) -> int:
    """Review what is staged in at most 60 seconds.

    Without a model, without an answer in time, or if the change is too large, it says so and passes.
    """
    if not staged:
        raise click.UsageError("check takes --staged; `panpan ci review` has other changes")
    root = anyio.run(repository_root, chosen_folder(ctx, options["cwd"]).absolute())
    try:
        diff = anyio.run(partial(difference, root, index=os.environ.get("GIT_INDEX_FILE") or None))
    except LargeChangeError as error:
        return _passed(str(error))
    if not diff.strip():
        return 0
    settings = {**_ci_settings(options), "retry.max_tries": _CHECK_TRIES}
    try:
        report = anyio.run(_in_time, root, Material(diff, {}), settings, seconds)
    except (ProviderError, AnswerError, TimeoutError) as error:
        return _passed(str(error) or f"there was no answer in {seconds:.0f} s")
    except ConfigError as error:
        if not _is_about_model(error):
            raise
        return _passed(str(error))
    return _finish(report, "text", fail_on, root, to_stderr=True)


async def _in_time(root: Path, material: Material, settings: Mapping[str, Any], seconds: float) -> Report:
    from panpan.cli.ci.runs import CiOptions, review

    with anyio.fail_after(seconds):
        return await review(root, material, CiOptions(settings))


def _is_about_model(error: ConfigError) -> bool:
    from panpan.models.model_choice import ModelNotNamedError, NoModelError

    return isinstance(error, NoModelError | ModelNotNamedError)


def _passed(reason: str) -> int:
    click.echo(f"panpan: the change was not checked, and passes: {reason}", err=True)
    return 0


def _require_one_diff(options: Mapping[str, Any]) -> None:
    if bool(options["base"]) == bool(options["diff_file"]):
        raise click.UsageError("name the change with --base REF or with --diff FILE")


def _material(ctx: click.Context, options: Mapping[str, Any]) -> tuple[Path, Material]:
    root = anyio.run(repository_root, chosen_folder(ctx, options["cwd"]).absolute())
    diff = ""
    if options["base"]:
        diff = anyio.run(partial(difference, root, base=options["base"]))
    elif options["diff_file"]:
        diff = read_diff(options["diff_file"])
    return root, Material(diff, read_texts(options["texts"]))


def _ci_options(options: Mapping[str, Any]) -> Any:
    from panpan.cli.ci.runs import CiOptions

    return CiOptions(_ci_settings(options), runs_commands=options.get("runs_commands", False))


def _ci_settings(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings that flags give."""
    names = ("model", "max_budget_usd", "max_seconds")
    given = {name: options[name] for name in names if options.get(name) is not None}
    return {**given, "max_rounds": options.get("max_turns") or _MAX_ROUNDS}


def _redactor(root: Path) -> Callable[[str], str]:
    from panpan.config.known_secrets import secrets_of_run
    from panpan.config.locations import Locations
    from panpan.system.text.redact import Redactor

    return Redactor(secrets_of_run(Locations.find(root, os.environ), os.environ)).redact


def _finish(report: Report, format_: str, fail_on: str, root: Path, *, to_stderr: bool = False) -> int:
    _print(written(report, format_, _redactor(root)), to_stderr=to_stderr)
    return 1 if fail_on != "never" and report.has_any(fail_on) else 0  # type: ignore[arg-type]


def _print(text: str, *, to_stderr: bool = False) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    text = clean_for_terminal(text) if stream.isatty() else text  # a patch is of the model
    try:
        click.echo(text.encode(errors="replace"), nl=False, err=to_stderr)
        stream.flush()
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror}") from error
