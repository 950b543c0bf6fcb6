"""Subcommands about recorded sessions.

`panpan fork`:
`panpan record`: Record a session; replay plays it again, fork goes on with it.
`panpan replay`:
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from panpan.cli_kit.commands import Program, chosen_folder, program_of, run_panpan
from panpan.cli_kit.failures import say
from panpan.system.files.folder_tree import temporary_folder
from panpan.system.text.terminal_text import clean_for_terminal, clean_line

if TYPE_CHECKING:
    from panpan.capabilities.cassettes.replay import Mode, Replay
    from panpan.capabilities.cassettes.replay_run import ReplayReport, Show
    from panpan.capabilities.cassettes.requests import Divergence

EXIT_DIFFERENT = 1


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="All other options of panpan work, too:  panpan record bug.jsonl -p 'find the bug'",
)
@click.argument("file", type=click.Path())
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[PROMPT] [OPTIONS]...")
@click.pass_context
def record(ctx: click.Context, file: str, words: tuple[str, ...]) -> int:
    """Record a session into the cassette FILE, for `panpan replay FILE`.

    FILE must not exist. It gets the messages, the requests to the model, and the tool results, but no keys.
    """
    folder = ["--cwd", str(chosen_folder(ctx, None))]  # a later --cwd overrides it
    return run_panpan(ctx, ["--record", file, *folder, *words])


@click.command("fork", context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]...")
@click.option("--at", "at", type=click.IntRange(min=0), required=True, metavar="N", help="Keep the first N rounds.")
@click.option("--model", metavar="NAME", help="Model that continues, as in panpan --model.")
@click.option(
    "-p",
    "--print",
    "prompt",
    is_flag=False,
    flag_value="",
    metavar="TEXT",
    help="Run headless with TEXT; without TEXT, with the next recorded prompt.",
)
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Work in FOLDER.")
@click.pass_context
def fork(
    ctx: click.Context, file: Path, words: tuple[str, ...], at: int, model: str | None, prompt: str | None,
    cwd: Path | None,
) -> int:  # fmt: skip
    """Continue from round N of the cassette FILE with another model, in a new session.

    A round is one reply of the model with the results of its calls. The next recorded prompt is sent again; in the
    middle of a turn, the model is told to continue. It works on the present files of the folder. All other options of
    panpan work, too.
    """
    from panpan.capabilities.cassettes.recorded_session import fork_recorded, read_session
    from panpan.config.locations import Locations

    workspace = chosen_folder(ctx, cwd).expanduser().resolve()
    folder = Locations.find(workspace, os.environ).sessions_folder
    forked = fork_recorded(read_session(file), at, folder, workspace)
    said = prompt or forked.prompt
    if said is None and prompt is not None:
        raise click.UsageError("the recording has no further prompt; give one: -p TEXT")
    if forked.session_id is not None:
        say(f"the session {forked.session_id} begins with {at} recorded {'round' if at == 1 else 'rounds'}")
    arguments = ["--cwd", str(workspace), *words]
    arguments += ["-r", forked.session_id] if forked.session_id else []
    arguments += ["--model", model] if model else []
    if said is not None:
        arguments += ["-p", said] if prompt is not None else ["--", said]
    return run_panpan(ctx, arguments)


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--mode",
    type=click.Choice(["strict", "semantic", "live-tools"]),
    default="strict",
    show_default=True,
    help="What must match: each request; the calls and their success; the same with real tools.",
)
@click.option(
    "--rules",
    "uses_current_rules",
    is_flag=True,
    help="Use the folder's present rules files instead of the recorded ones.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="With semantic: ask this model, and compare its calls with the recorded ones.",
)
@click.option("--in-place", is_flag=True, help="With live-tools: work in the folder itself instead of a copy.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the result.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder for live-tools and --rules.")
@click.pass_context
def replay(ctx: click.Context, /, file: Path, mode: "Mode", model: str | None, cwd: Path | None, **flags: bool) -> int:
    """Replay the cassette FILE without a model, and show the first request that differs.

    Modes strict and semantic run nothing: tool results come from the cassette. With live-tools the tools work in a copy
    of the folder; calls that need permission run if they ran in the recording, but never outside the folder or the
    sandbox. The exit code is 0 if everything matched, 1 if not, and 2 if FILE cannot be replayed.
    """
    from panpan.capabilities.cassettes.recorded_session import read_session
    from panpan.capabilities.cassettes.replay import Replay
    from panpan.capabilities.cassettes.replay_run import model_of_user

    if model is not None and mode != "semantic":
        raise click.UsageError("--model goes with --mode semantic")
    has_current_rules, in_place, as_json = flags["uses_current_rules"], flags["in_place"], flags["as_json"]
    if in_place and mode != "live-tools":
        raise click.UsageError("--in-place goes with --mode live-tools")
    folder = chosen_folder(ctx, cwd).expanduser().resolve()
    asked = None if model is None else model_of_user(model, folder, os.environ, program_of(ctx).provider_kinds)
    played = Replay(read_session(file), mode, uses_current_rules=has_current_rules, asked=asked)
    with _workspace(folder, mode, is_copied=not in_place, is_read=has_current_rules) as workspace:
        is_quiet = flags["quiet"] or as_json
        report = anyio.run(partial(_played, program_of(ctx), played, workspace, folder, is_quiet=is_quiet))
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=2))
    else:
        for line in _lines(report):
            click.echo(line)
    return 0 if report.is_same else EXIT_DIFFERENT


async def _played(
    program: Program, replay: "Replay", workspace: Path | None, folder: Path, *, is_quiet: bool
) -> "ReplayReport":
    from panpan.capabilities.cassettes.replay_run import play, replay_session, rules_of_user, show_nothing

    overrides = rules_of_user(folder, os.environ) if replay.mode == "live-tools" else {}
    warn = (lambda _: None) if is_quiet else say
    opening = replay_session(replay, program.open_session, workspace, env=os.environ, overrides=overrides, warn=warn)
    return await play(replay, opening, show_nothing if is_quiet else _shown(program))


@contextmanager
def _workspace(folder: Path, mode: "Mode", *, is_copied: bool, is_read: bool) -> Iterator[Path | None]:
    """Yield the folder to work in: a copy of the folder, the folder itself, or None."""
    from panpan.capabilities.cassettes.replay_run import copy_of

    if mode != "live-tools" or not is_copied:
        yield folder if mode == "live-tools" or is_read else None
        return
    with temporary_folder("panpan-replay-") as scratch:
        yield copy_of(folder, scratch.resolve())


def _shown(program: Program) -> "Show":
    """Return a function that prints prompts and events as they come."""
    from panpan.cli_kit.failures import StdoutWriter
    from panpan.types.events import Event
    from panpan.types.messages import UserMessage

    out = StdoutWriter(sys.stdout)
    print_event = program.printer(out, has_colour=out.has_colour(os.environ))

    async def show(event: Event) -> None:
        if isinstance(event, UserMessage):
            await out.write(f"❯ {clean_for_terminal(event.text)}\n")
        else:
            await print_event(event)

    return show


def _lines(report: "ReplayReport") -> Iterator[str]:
    """Yield the lines of the report."""
    counts = f"{_counted(report.turns, 'turn')}, {_counted(report.requests, 'request')}, "
    counts += _counted(report.tool_calls, "call")
    for other in report.other_texts:
        yield f"{clean_line(other.what)} says something else:"
        yield from _diff(other)
    if report.divergence is not None:
        yield f"different ({report.mode}): {clean_line(report.divergence.sentence)}"
        yield from _diff(report.divergence)
    elif report.error:
        yield f"not whole ({report.mode}): {clean_for_terminal(report.error)}"
    else:
        yield f"same as recorded ({report.mode}): {counts}"
    yield f"transcript sha256 {report.transcript}"


def _diff(divergence: "Divergence") -> Iterator[str]:
    return (f"  {clean_line(line)}" for line in divergence.difference.diff.splitlines())


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
