"""`panpan batch attach`: an attempt as it runs, or its session on a terminal.

The rule: a session has one writer. While a worker holds the attempt's lease, it is only shown; while it is open here,
this process holds the lease, and a worker waits.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from panpan.batch.attempts.panpan_run import PANPAN
from panpan.batch.attempts.protection import protecting_flags
from panpan.batch.attempts.workspace import linked_places, working_folder
from panpan.batch.definition.begun_here import require_begun_here
from panpan.batch.faces.following import AttemptReader, follow
from panpan.batch.store.folder import AttemptFolder, CampaignFolder
from panpan.batch.store.lease import Lease, holder_of
from panpan.batch.store.naming import Named, find_named
from panpan.batch.store.records import AttemptState, Task
from panpan.batch.store.wording import batch_command, typed
from panpan.errors import ConfigError
from panpan.system.processes.foreground import run_in_foreground
from panpan.system.text.terminal_text import clean_for_terminal, clean_line


async def attach(folder: CampaignFolder, word: str) -> int:
    """Show an attempt while it runs; else open its session on a terminal, or print what happened.

    Raises:
        ConfigError: It is not named, has not begun, or may begin at any moment.
        LeaseHeldError: A worker has just begun it.
    """
    named = find_named(folder.tasks(), word)
    attempt = await _attempt(folder, named)
    label = clean_line(named.task.attempt_label(attempt.number))
    state = attempt.state()
    if state is None:
        raise ConfigError(f"{label} has not begun; {batch_command('status', folder.path)} shows what runs")
    if (holder := await holder_of(attempt.lease)) is not None:
        click.echo(f"{label} runs on {clean_line(holder.host)}; Ctrl+C leaves it running", err=True)
        await follow(AttemptReader(attempt, named.task), lambda: _is_over(attempt), click.echo)
    elif named.task.command is None and sys.stdin.isatty() and sys.stdout.isatty():
        return await open_by_hand(folder, named.task, attempt, state)
    else:
        for line in AttemptReader(attempt, named.task).read(is_over=True):
            click.echo(line)
    for line in _end_lines(folder, named, attempt):
        click.echo(line)
    return 0


async def _attempt(folder: CampaignFolder, named: Named) -> AttemptFolder:
    """Return the attempt that is named; without a number the one that runs, or the only one that has begun."""
    if named.attempt is not None:
        return folder.attempt(named.task.id, named.attempt)
    count = folder.frozen().campaign.attempts
    all_ = [folder.attempt(named.task.id, number) for number in range(1, count + 1)]
    begun = [one for one in all_ if one.state() is not None]
    running = [one for one in begun if await holder_of(one.lease) is not None]
    found = running or begun
    if len(found) > 1:
        numbers = ", ".join(str(one.number) for one in found)
        raise ConfigError(
            f"several attempts have begun: {numbers}; name one, such as {named.task.id}/{found[0].number}"
        )
    return found[0] if found else all_[0]


async def _is_over(attempt: AttemptFolder) -> bool:
    return await holder_of(attempt.lease) is None


async def open_by_hand(
    folder: CampaignFolder,
    task: Task,
    attempt: AttemptFolder,
    state: AttemptState,
    panpan: Sequence[str] = PANPAN,
) -> int:
    """Open the session of an attempt in a panpan on this terminal, and return its exit code.

    Args:
        folder: The campaign's folder.
        task: The task.
        attempt: An attempt that does not run.
        state: Its state.
        panpan: The program.

    Raises:
        ConfigError: The campaign may begin it at any moment, or its files are gone.
        LeaseHeldError: A worker has just begun it.
    """
    label = clean_line(task.attempt_label(attempt.number))
    require_begun_here(folder, os.environ)
    is_settled = attempt.result() is not None or attempt.needs() is not None
    if not is_settled and await holder_of(folder.lease) is not None:
        cancel = batch_command("cancel", folder.path)
        raise ConfigError(f"the campaign runs and may begin {label} now; first: {cancel}")
    frozen = folder.frozen()
    if not attempt.workspace.is_dir():
        raise ConfigError(f"the files of {label} are gone: {attempt.workspace}")
    async with Lease(attempt.lease):
        model = ["--model", task.model] if task.model else []
        where = [
            "--cwd",
            str(working_folder(frozen, attempt)),
            *protecting_flags(folder.path, tuple(linked_places(frozen))),
        ]
        words = ["-r", state.session_id, *where, *model]
        env = {**os.environ, "PANPAN_HOME": frozen.home}
        click.echo(f"opens the session of {label}; what you do there goes on in its files, with its budget", err=True)
        with _interrupts_reach_the_child():
            code = await run_in_foreground([*panpan, *words], env)
    if attempt.result() is not None:
        click.echo(f"the result of {label} stays as it was; its files are in {attempt.workspace}")
    elif attempt.is_waiting:
        answer = batch_command("answer", folder.path, f"{attempt.task_id}/{attempt.number}")
        click.echo(f"the campaign goes on with {label} by: {answer}")
    else:
        click.echo(f"the campaign goes on with {label} by: {batch_command('run', folder.path)}")
    return code


@contextmanager
def _interrupts_reach_the_child() -> Iterator[None]:
    """Leave Ctrl+C to the program on the terminal. A handler, since a child inherits an ignored signal."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_lines(folder: CampaignFolder, named: Named, attempt: AttemptFolder) -> Iterator[str]:
    """Yield what became of an attempt that does not run."""
    if (result := attempt.result()) is not None:
        yield f"--- {result.status}, ended by {result.ended_by}"
        if result.message:
            yield clean_for_terminal(result.message)
        if result.verdict is not None:
            name = "verify" if named.task.command is None else "command"
            yield f"--- {name}: exit code {result.verdict.exit_code}"
        if result.verdict is not None and named.task.command is None:
            yield clean_for_terminal(result.verdict.output).strip()
    elif (needs := attempt.needs()) is not None:
        yield f"--- waits for you ({needs.kind}): {clean_line(needs.text)}"
        word = typed(named.task.attempt_label(attempt.number), *attempt.key)
        yield f"answer: {batch_command('answer', folder.path, word)}"
    else:
        yield "--- stopped; the campaign goes on with it"
