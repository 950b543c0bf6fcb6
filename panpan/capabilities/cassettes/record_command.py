"""`panpan record FILE …`: the same as `panpan --record FILE …`."""

import click

from panpan.cli_kit.chosen_folder import chosen_folder


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="With all that panpan takes otherwise:  panpan record bug.jsonl -p 'find the bug'",
)
@click.argument("file", type=click.Path())
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[PROMPT] [OPTIONS]...")
@click.pass_context
def command(ctx: click.Context, file: str, words: tuple[str, ...]) -> int:
    """Record a session into FILE, a cassette that `panpan replay FILE` plays again.

    FILE must not exist. It holds what was said, what the model was sent, and what the tools answered, but no keys.
    """
    from panpan.cli.main import cli

    folder = ["--cwd", str(chosen_folder(ctx, None))]  # what stands behind it is stronger
    code = cli(["--record", file, *folder, *words], prog_name="panpan", standalone_mode=False)
    return code if isinstance(code, int) else 0
