"""`panpan fork FILE --at N --model X`: a recorded conversation up to a round, and from there on another model."""

import os
from pathlib import Path

import click

from panpan.cli_kit.chosen_folder import chosen_folder
from panpan.cli_kit.failures import say


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
def command(
    ctx: click.Context, file: Path, words: tuple[str, ...], at: int, model: str | None, prompt: str | None,
    cwd: Path | None,
) -> int:  # fmt: skip
    """Go on from round N of the cassette FILE with another model, in a session of its own.

    A round is one reply of the model and what its calls answered. What was said next in the recording is said again;
    where the model was in the middle of its work, it is told to go on. The files are those of the folder, as they are
    now. Other options are those of panpan.
    """
    from panpan.capabilities.cassettes.forking import fork_recorded
    from panpan.capabilities.cassettes.recorded_session import read_session
    from panpan.cli.main import cli
    from panpan.config.locations import Locations

    workspace = chosen_folder(ctx, cwd).expanduser().resolve()
    folder = Locations.find(workspace, os.environ).sessions_folder
    fork = fork_recorded(read_session(file), at, folder, workspace)
    said = prompt or fork.prompt
    if said is None and prompt is not None:
        raise click.UsageError("nothing more was said in the recording; say something behind -p")
    if fork.session_id is not None:
        say(f"the session {fork.session_id} begins with {at} recorded {'round' if at == 1 else 'rounds'}")
    arguments = ["--cwd", str(workspace), *words]
    arguments += ["-r", fork.session_id] if fork.session_id else []
    arguments += ["--model", model] if model else []
    if said is not None:
        arguments += ["-p", said] if prompt is not None else ["--", said]
    code = cli(arguments, prog_name="panpan", standalone_mode=False)
    return code if isinstance(code, int) else 0
