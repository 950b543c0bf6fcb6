"""`panpan demo --local`: the embedded model renames a function in two files and runs the tests.

Where it cannot be had, that is said, and the tape is played in its place.
"""

import ast
import select
import sys
from pathlib import Path

import click

from panpan.capabilities.local_model.cli import LocalModel, fetch, introduce
from panpan.cli_kit.demo import TEST_COMMAND, Scene
from panpan.errors import PanpanError

CHOICE_S = 5
"""Seconds in which the tape can be chosen instead."""

OLD_NAME, NEW_NAME = "learning_rate", "rate_at"
BUG = {"/ total_steps": "/ (total_steps - warmup_steps)"}
"""The bug that the tape fixes: this demo is not about it, so it is mended beforehand."""

PROMPTS = (
    f"Rename the function {OLD_NAME} to {NEW_NAME} in schedule.py and test_schedule.py.",
    f"Run the tests with {TEST_COMMAND}.",
)
"""One thing at a time: asked for both at once, it renames and answers, without running anything."""
INTRODUCTION = """\
This is a demo. {name} runs on this machine and gets a small task;
what it says and does is its own, and you could unplug the network. It works on a copy of a small project, in
  {{project}}  ({fate})
"""
FAREWELL = (
    "On your own code:  panpan --model local\n"
    "It is a small model: good for look-ups and small edits. With a key of a large one, panpan finds bugs, too."
)


def local_scene(fate: str) -> Scene | int | None:
    """Return the demo of the embedded model, which is fetched first.

    Returns:
        An exit code if it was not fetched; None where the tape should be played instead, which was said.
    """
    model = LocalModel.here()
    if _chooses_tape(model):
        click.echo("Playing the recording.\n")
        return None
    try:
        model.require_machine()
        if not model.store.is_stamped:
            introduce(model)
            if (exit_code := fetch(model)) is not None:
                return exit_code
    except PanpanError as error:
        click.echo(f"The small model is unavailable: {error}\nA hand-written recording is played instead.\n")
        return None
    introduction = INTRODUCTION.format(name=model.store.weights.name, fate=fate)
    return Scene(introduction, PROMPTS, "local", is_not_renamed, FAREWELL, BUG)


def is_not_renamed(project: Path) -> str:
    """Return in which file the function was not renamed; empty where it was."""
    for name in ("schedule.py", "test_schedule.py"):
        names = _names(project / name)
        if OLD_NAME in names:
            return f"{name} still calls the function {OLD_NAME}"
        if NEW_NAME not in names:
            return f"{name} has no function {NEW_NAME}"
    return ""


def _names(path: Path) -> set[str]:
    """Return the names that a module defines, imports and uses."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.alias(name=name) | ast.Name(id=name):
                names.add(name)
            case _:
                pass
    return names


def _chooses_tape(model: LocalModel) -> bool:
    """Give whoever sits there a few seconds to choose the tape; elsewhere nobody can."""
    if not model.is_interactive:
        return False
    what = "works now" if model.store.is_ready else "is fetched, 1.1 GB, once"
    click.echo(f"In {CHOICE_S} seconds a small model {what}. Enter: play the recording instead. ", nl=False)
    is_chosen = bool(select.select([sys.stdin], [], [], CHOICE_S)[0])
    if is_chosen:
        sys.stdin.readline()
    else:
        click.echo()
    return is_chosen
