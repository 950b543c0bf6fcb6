"""`panpan demo`: a turn with the real loop, permissions, tools and files, without a key.

By default it plays a tape, with replies written by hand, in which a bug is found and fixed. The tape is a recorded
cassette, which `panpan replay` also plays. With `--local` the embedded model does a small task in its own words.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from panpan.cli.subcommands import feature_modules
from panpan.cli_kit.demo import TEST_COMMAND, Scene
from panpan.cli_kit.failures import StdoutWriter
from panpan.config.run_settings import VARIABLES
from panpan.system.files.folder_tree import remove_tree

if TYPE_CHECKING:
    from panpan.session.frontend import SessionInterceptor


KEEPS = "it stays"
REMOVES = "removed at the end; --keep leaves it"

CASSETTE = "bug_fix.jsonl"
"""File in `panpan.demo`; made by `scripts/record_demo.py`."""

TAPE_PROMPT = "A test of this project fails. Find the bug, fix it, and show that it is fixed."
TAPE_INTRODUCTION = """\
This is a demo. The model's words come from a tape, written by hand; nothing is sent to anyone.
The loop, the tools and the files are real: a copy of a small project with a real bug, in
  {{project}}  ({fate})
"""


@click.command("demo")
@click.option(
    "--local", "is_local", is_flag=True, help="Use the small local model. The first time, it downloads 1.1 GB."
)
@click.option("--fast", is_flag=True, help="Print each recorded reply at once.")
@click.option("--keep", is_flag=True, help="Keep the copy of the project, so that you can look at it.")
def command(is_local: bool, fast: bool, keep: bool) -> int:
    """Watch panpan work on real files without a key: from a recording, or with a small local model."""
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
        click.echo("With a key, the same works on your own code:  panpan login  and  panpan")
    return exit_code


def _local_scene(fate: str) -> Scene | int | None:
    for module in feature_modules("demo"):
        scene: Scene | int | None = module.local_scene(fate)
        return scene
    click.echo("There is no small model here.\nA hand-written recording is played instead.\n")
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
    """Return a recorded cassette without the pauses inside replies."""
    lines = [json.loads(line) for line in cassette.split("\n") if line]
    for line in lines:
        if line["type"] == "cassette_reply":
            line["events"] = [[0, event] for _, event in line["events"]]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


HOME = "home"

CHECK_TIMEOUT_S = 60.0
"""Most seconds for the project's tests, which take a moment; a busy machine needs longer."""


def show(
    scene: Scene,
    scratch: Path,
    *,
    interceptor: "SessionInterceptor | None" = None,
    unavailable: Sequence[str] | None = None,
) -> int:
    """Play a scene in a copy of the project below `scratch`, and return 0 if the work was done.

    `unavailable`: names of tools to hide from the model; None: those that cannot work here.

    Raises:
        PanpanError: The scene could not be played.
    """
    project = copy_project(scratch, scene.changes)
    out = StdoutWriter(sys.stdout)
    click.echo(scene.introduction.format(project=project))
    has_run_tests = anyio.run(_play, scene, project, scratch / HOME, out, interceptor, unavailable)
    return check(project, lambda project: scene.fault(project) or ("" if has_run_tests else "the model ran no tests"))


def copy_project(scratch: Path, changes: Mapping[str, str]) -> Path:
    """Return a new copy of the sample project."""
    project = scratch / "warmup"
    with as_file(files("panpan.demo")) as demo:
        shutil.copytree(demo / "project", project, ignore=shutil.ignore_patterns("__pycache__"))
    for path in project.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for old, new in changes.items():
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    return project


def check(project: Path, fault: Callable[[Path], str] = lambda _: "") -> int:
    """Run the project's tests again without the model, print the result, and return 0 if the work was done."""
    from panpan.system.processes.process import capture

    tests = anyio.run(partial(capture, [sys.executable, "-m", "unittest"], cwd=project, timeout_s=CHECK_TIMEOUT_S))
    verdict = tests.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
    click.echo(f"\nChecked apart from the model: {TEST_COMMAND} says {verdict[0]!r}.")
    if reason := ("the tests fail" if tests.exit_code != 0 else fault(project)):
        click.echo(f"The work is not done: {reason}.", err=True)
        return 1
    return 0


async def _play(
    scene: Scene,
    project: Path,
    home: Path,
    out: StdoutWriter,
    interceptor: "SessionInterceptor | None",
    unavailable: Sequence[str] | None,
) -> bool:
    """Play the turns, and return True if the model ran the project's tests in one of them."""
    from panpan.api import open_session
    from panpan.faces.plain.line_face import LineFace
    from panpan.types.events import ToolStarted

    has_colour = out.has_colour(os.environ)
    face = LineFace(out, has_colour=has_colour)
    opening = open_session(
        project,
        overrides={
            "model": scene.model,
            "permission.mode": "acceptEdits",
            "permission.allow": (f"Bash({TEST_COMMAND})", f"Bash({TEST_COMMAND} *)"),
        },
        env=_environment(home),
        warn=lambda sentence: click.echo(f"({sentence})"),
        interceptor=interceptor,
        unavailable=unavailable,
    )
    has_run_tests = False
    async with opening as session:
        for prompt in scene.prompts:
            line = f"❯ {prompt}"
            await out.write(f"{click.style(line, bold=True) if has_colour else line}\n")
            async with aclosing(session.submit(prompt)) as events:
                async for event in events:
                    await face.show(event)
                    has_run_tests |= isinstance(event, ToolStarted) and TEST_COMMAND in event.title
    return has_run_tests


def _environment(home: Path) -> dict[str, str]:
    """Return an environment without the user's settings, in which `python3` is the interpreter of panpan."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**others, "PANPAN_HOME": str(home), "PATH": path}
