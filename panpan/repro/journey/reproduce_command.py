"""`panpan reproduce`: a journey with its lines on standard error, its result and its exit code."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from panpan.cli_kit.failures import json_line
from panpan.repro.checking.check import CheckOptions
from panpan.repro.checking.check_command import DEVIATES, say_aside, screen_columns
from panpan.repro.checking.check_table import claimed_text, measured_text, reason_lines, table_lines
from panpan.repro.journey.journey import Journey, JourneyEnd, JourneyOptions
from panpan.repro.journey.model_runs import ModelOptions
from panpan.repro.journey.parts import OwnParts
from panpan.repro.journey.report import label_of
from panpan.system.text.terminal_text import clean_line


async def reproduce(text: str, cwd: Path, form: str, given: Mapping[str, Any]) -> int:
    """Reproduce what was given, and return the exit code.

    Args:
        text: Repository, folder or paper.
        cwd: Folder from which paths are seen.
        form: `text` or `json`, for the result.
        given: The options of the command, by their names.

    Raises:
        PanpanError: A step failed, or waits for the user.
    """
    can_ask = form == "text" and sys.stdin.isatty() and sys.stdout.isatty()
    journey = Journey(text, cwd, _options(given), say_aside, parts=OwnParts(can_ask=can_ask))
    end = await journey.run()
    if form == "json":
        click.echo(json_line(_facts(end)), nl=False)
    else:
        click.echo("\n".join(_lines(end)))
    return DEVIATES if end.report.check.deviates else 0


def _options(given: Mapping[str, Any]) -> JourneyOptions:
    model = ModelOptions(
        model=given["model"], max_usd=given["max_usd"], answer=given["answer"], says_yes=given["says_yes"]
    )
    checking = CheckOptions(
        seeds=given["seeds"],
        on=given["on"],
        max_hours=given["max_hours"],
        allows_unconfirmed=given["says_yes"],
        env=dict(os.environ),
    )
    return JourneyOptions(
        into=given["into"],
        repository=given["repository"],
        paper=given["paper"],
        checking=checking,
        model=None if given["without_model"] else model,
        says_yes=given["says_yes"],
        trusts=given["trusts"],
    )


def _lines(end: JourneyEnd) -> list[str]:
    rows = [
        (one.verdict, label_of(one.claim), claimed_text(one.claim), measured_text(one))
        for one in end.report.check.judgements
    ]
    lines = table_lines(("verdict", "claim", "the paper says", "measured"), rows, screen_columns())
    reasons = [*reason_lines(end.report.check.judgements, screen_columns(), label_of)]
    places = [f"report: {end.folder.path / 'report.html'}"]
    places += [f"kit: {end.kit}"] if end.kit is not None else []
    return [*lines, "", *reasons, *[""] * bool(reasons), clean_line(end.report.conclusion), *map(clean_line, places)]


def _facts(end: JourneyEnd) -> dict[str, Any]:
    check = end.report.check
    return {
        "folder": str(end.folder.path),
        "report": str(end.folder.path / "report.html"),
        "kit": str(end.kit) if end.kit is not None else None,
        "conclusion": end.report.conclusion,
        "verdicts": dict(check.counts),
        "usd": end.report.told.usd,
        "check": check.model_dump(mode="json"),
    }
