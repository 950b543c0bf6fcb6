"""Subcommands about recorded sessions.

`panpan fork`: Go on from a recorded conversation with another model.
`panpan record`: Record a session into a cassette.
`panpan replay`: Play a cassette again, and say what differs.
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
    epilog="With all that panpan takes otherwise:  panpan record bug.jsonl -p 'find the bug'",
)
@click.argument("file", type=click.Path())
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[PROMPT] [OPTIONS]...")
@click.pass_context
def record(ctx: click.Context, file: str, words: tuple[str, ...]) -> int:
    """Record a session into FILE, a cassette that `panpan replay FILE` plays again.

    FILE must not exist. It holds what was said, what the model was sent, and what the tools answered, but no keys.
    """
    folder = ["--cwd", str(chosen_folder(ctx, None))]  # a later --cwd overrides it
    return run_panpan(ctx, ["--record", file, *folder, *words])


@click.command("fork", context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]...")
@click.option("--at", "at", type=click.IntRange(min=0), required=True, metavar="N", help="Keep the first N rounds.")
@click.option("--model", metavar="NAME", help="Who goes on; as with panpan --model.")
@click.option(
    "-p",
    "--print",
    "prompt",
    is_flag=False,
    flag_value="",
    metavar="TEXT",
    help="Run without a terminal, and say TEXT; without TEXT, what was said next in the recording.",
)
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Work in FOLDER.")
@click.pass_context
def fork(
    ctx: click.Context, file: Path, words: tuple[str, ...], at: int, model: str | None, prompt: str | None,
    cwd: Path | None,
) -> int:  # fmt: skip
    """Go on from round N of the cassette FILE with another model, in a session of its own.

    A round is one reply of the model and what its calls answered. What was said next in the recording is said again;
    where the model was in the middle of its work, it is told to go on. The files are those of the folder, as they are
    now. Other options are those of panpan.
    """
    from panpan.capabilities.cassettes.recorded_session import fork_recorded, read_session
    from panpan.config.locations import Locations

    workspace = chosen_folder(ctx, cwd).expanduser().resolve()
    folder = Locations.find(workspace, os.environ).sessions_folder
    forked = fork_recorded(read_session(file), at, folder, workspace)
    said = prompt or forked.prompt
    if said is None and prompt is not None:
        raise click.UsageError("nothing more was said in the recording; say something behind -p")
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
    help="What must be as it was: each request; the calls and whether they failed; the same, with real tools.",
)
@click.option(
    "--rules",
    "uses_current_rules",
    is_flag=True,
    help="Let the rules files of the folder count as they are now, and not as they were recorded.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="With semantic: ask this model, whose calls have to be the recorded ones.",
)
@click.option("--in-place", is_flag=True, help="With live-tools: work in the folder itself, and not in a copy.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what came out.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder for live-tools and --rules.")
@click.pass_context
def replay(ctx: click.Context, /, file: Path, mode: "Mode", model: str | None, cwd: Path | None, **flags: bool) -> int:
    """Play the cassette FILE again, without a model, and say which request differs first, and where.

    Modes strict and semantic run nothing: what the tools answer comes from the cassette. With live-tools the tools
    work, in a copy of the folder; what needs permission runs if it ran in the recording, but never outside the folder
    or the sandbox. The exit code is 0 where all was as recorded, 1 where it was not, 2 where FILE cannot be played.
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
    from panpan.capabilities.cassettes.replay_run import nothing, play, replay_session, rules_of_user

    overrides = rules_of_user(folder, os.environ) if replay.mode == "live-tools" else {}
    warn = (lambda _: None) if is_quiet else say
    opening = replay_session(replay, program.open_session, workspace, env=os.environ, overrides=overrides, warn=warn)
    return await play(replay, opening, nothing if is_quiet else _shown(program))


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
