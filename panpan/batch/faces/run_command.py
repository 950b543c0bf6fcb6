"""`panpan batch run`: a campaign with its progress on the screen, its signals, and its exit code."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NoReturn

import anyio
import click
from anyio import CancelScope, to_thread

from panpan.batch.api import place_of
from panpan.batch.coordination.coordinator import run_campaign
from panpan.batch.coordination.place import Place
from panpan.batch.coordination.progress import Summary
from panpan.batch.definition.loading import prepare
from panpan.batch.faces.overview import Looker, Overview
from panpan.batch.faces.progress_screen import ProgressScreen
from panpan.batch.faces.status import status_lines
from panpan.batch.reporting.report import write_report
from panpan.batch.store.folder import CampaignFolder, write_whole
from panpan.batch.store.lease import is_held_here
from panpan.batch.store.records import FrozenCampaign
from panpan.cli_kit.failures import json_line
from panpan.cli_kit.questions import ask_yes_or_no
from panpan.errors import AnswerNeededError, BudgetError, PanpanError, unwrap_single_exception
from panpan.system.text.terminal_text import clean_line

_AGAIN_S = 1.0
_HURRY_S = 3.0
"""Seconds from the second Ctrl+C to the end of this process, whatever still runs."""


async def run(
    path: Path,
    form: str,
    options: Mapping[str, Any],
    place_for: Callable[[CampaignFolder, FrozenCampaign], Awaitable[AbstractAsyncContextManager[Place]]] = place_of,
) -> int:
    """Run a campaign, and return the exit code.

    Args:
        path: Its folder, canonical.
        form: `text` or `json`, for the summary.
        options: Those of the command: `on`, `at_once`, `model`, `trusts` and `retries_errors`.
        place_for: Returns where attempts run.

    Raises:
        ConfigError: The campaign is wrong or not trusted, or another panpan runs it.
        OutputError: Its folder cannot be written.
    """
    can_ask = sys.stdin.isatty() and sys.stdout.isatty()
    retries = options["retries_errors"]
    preparing = {name: value for name, value in options.items() if name != "retries_errors"}
    frozen = await prepare(path, os.environ, **preparing, ask=ask_yes_or_no if can_ask else None)
    folder, looker = CampaignFolder(path), Looker(path)
    screen = ProgressScreen(looker, sys.stderr)
    signals = StopSignals(folder, screen)
    summary = None
    with unwrap_single_exception():
        async with anyio.create_task_group() as helpers:
            helpers.start_soon(signals.watch)
            helpers.start_soon(screen.run)
            with signals.scope:
                place = await place_for(folder, frozen)
                summary = await run_campaign(folder, frozen, place, notify=screen.tell, retries_errors=retries)
            helpers.cancel_scope.cancel()
    screen.clear()
    return await to_thread.run_sync(_finish, folder, looker.look(), summary, form, signals.exit_code)


class StopSignals:
    """Stops a campaign at signals: the first one as a checkpoint, a second Ctrl+C at once.

    Args:
        folder: The campaign's folder.
        screen: Tells what the signal does.
    """

    def __init__(self, folder: CampaignFolder, screen: ProgressScreen) -> None:
        self._folder = folder
        self._screen = screen
        self.scope = CancelScope()
        """Cancelled at the second Ctrl+C."""
        self.exit_code: int | None = None
        """128 + the first signal's number, as in shells."""

    async def watch(self) -> None:
        """Wait for signals until cancelled."""
        async with anyio.create_task_group() as tasks:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
                async for number in received:
                    if self.exit_code is None:
                        self.exit_code = 128 + number
                        self._screen.say("stopping, so that `run` can go on; Ctrl+C again ends it at once")
                        tasks.start_soon(self._ask_to_stop)
                    elif number == signal.SIGINT:
                        self.scope.cancel()
                        signal.signal(signal.SIGALRM, _leave)
                        signal.setitimer(signal.ITIMER_REAL, _HURRY_S)

    async def _ask_to_stop(self) -> None:
        """Keep the mark for a stop in place: a campaign that is just beginning takes away an old one."""
        if not await is_held_here(self._folder.lease):  # another process may run it, which is not to stop
            self.scope.cancel()
            return
        while True:
            try:
                await to_thread.run_sync(write_whole, self._folder.stop, b"")
            except PanpanError:  # the disk is full
                self.scope.cancel()
            await anyio.sleep(_AGAIN_S)


def _leave(number: int, frame: object) -> NoReturn:
    os._exit(128 + signal.SIGINT)  # the attempts end with their parent, and the folder bears a kill


def _finish(folder: CampaignFolder, view: Overview, summary: Summary | None, form: str, by_signal: int | None) -> int:
    """Write the report, print the summary, and return the exit code."""
    write_report(folder)
    code = exit_code(summary, by_signal)
    report = folder.path / "report.html"
    if form == "json":
        because = summary.because if summary else "stopped"
        facts = {**view.as_json(), "ended_because": because, "exit_code": code, "report": str(report)}
        click.echo(json_line(facts), nl=False)
        return code
    for line in list(status_lines(view))[1:]:
        click.echo(line)
    click.echo("")
    click.echo(clean_line(summary.message) if summary else "ended at once; `panpan batch run` goes on with it")
    click.echo(f"report: {report}")
    return code


def exit_code(summary: Summary | None, by_signal: int | None) -> int:
    """Return the exit code of a run.

    Args:
        summary: End of the run; None if it was ended at once.
        by_signal: The code of the signal that stopped it, if one did.
    """
    if summary is None or summary.because == "stopped":
        return by_signal or 128 + signal.SIGINT
    match summary.because:
        case "budget":
            return BudgetError.exit_code
        case "waiting":
            return AnswerNeededError.exit_code
        case "unfit":
            return PanpanError.exit_code
        case "done":
            return PanpanError.exit_code if summary.running.counts.get("error") else 0
