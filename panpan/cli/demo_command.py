"""`panpan demo`: the loop, the permissions, the tools and the files are real, and no key is needed.

With the tape, whose words were written by hand, a bug is found and fixed: it is a recorded cassette, which `panpan
replay` plays as well. With `--local` the embedded model does a task that is within its reach, and nothing it says is
written beforehand.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

import click

from panpan.cli.subcommands import feature_modules
from panpan.cli_kit.demo import Scene
from panpan.system.files.folder_tree import remove_tree

KEEPS = "it stays"
REMOVES = "removed at the end; --keep leaves it"

CASSETTE = "bug_fix.jsonl"
"""In `panpan.demo`; made by `scripts/record_demo.py`."""

TAPE_PROMPT = "A test of this project fails. Find the bug, fix it, and show that it is fixed."
TAPE_INTRODUCTION = """\
This is a demo. The model's words come from a tape, written by hand; nothing is sent to anyone.
The loop, the tools and the files are real: a copy of a small project with a real bug, in
  {{project}}  ({fate})
"""


@click.command("demo")
@click.option("--local", "is_local", is_flag=True, help="Let the embedded model work; fetches it first, 1.1 GB, once.")
@click.option("--fast", is_flag=True, help="With the tape: print each reply at once.")
@click.option("--keep", is_flag=True, help="Leave the copy of the project, to look at what was changed.")
def command(is_local: bool, fast: bool, keep: bool) -> int:
    """See panpan work on real files, with no key: from a tape, or with a small model on this machine."""
    from panpan.cli.demo_scene import show

    fate = KEEPS if keep else REMOVES
    scene = _local_scene(fate) if is_local else None
    if isinstance(scene, int):
        return scene
    with _scratch(keep) as scratch:
        exit_code = show(scene or _tape(scratch, is_fast=fast, fate=fate), scratch)
    if scene is not None:
        click.echo(scene.farewell)
        return exit_code
    if exit_code == 0:
        click.echo("With a key, the same works on your own code:  export ANTHROPIC_API_KEY=…  and  panpan")
    return exit_code


def _local_scene(fate: str) -> Scene | int | None:
    for module in feature_modules("demo"):
        scene: Scene | int | None = module.local_scene(fate)
        return scene
    click.echo("There is no small model here.\nSo a tape is played instead, written by hand.\n")
    return None


@contextmanager
def _scratch(keep: bool) -> Iterator[Path]:
    scratch = Path(tempfile.mkdtemp(prefix="panpan-demo-"))
    try:
        yield scratch
    finally:
        if not keep:
            with suppress(OSError):
                remove_tree(scratch)


def _tape(scratch: Path, *, is_fast: bool, fate: str) -> Scene:

    text = files("panpan.demo").joinpath(CASSETTE).read_text(encoding="utf-8")
    cassette = scratch / CASSETTE
    cassette.write_text(without_pauses(text) if is_fast else text, encoding="utf-8")
    return Scene(TAPE_INTRODUCTION.format(fate=fate), [TAPE_PROMPT], f"cassette:{cassette}")


def without_pauses(cassette: str) -> str:
    """Return a recorded cassette in which the model says all of a reply at once."""
    lines = [json.loads(line) for line in cassette.split("\n") if line]
    for line in lines:
        if line["type"] == "cassette_reply":
            line["events"] = [[0, event] for _, event in line["events"]]
    return "".join(f"{json.dumps(line)}\n" for line in lines)
