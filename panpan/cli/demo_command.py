"""`panpan demo`: a bug is found and fixed in a real small project, with no key and no network.

The model's words come from a tape; the loop, the permissions, the tools and the files are the real ones. Whether the
bug is gone is checked here, by running the project's tests, and not taken from the tape.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import aclosing
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

if TYPE_CHECKING:
    from panpan.ui.stdout import StdoutWriter

PROMPT = "A test of this project fails. Find the bug, fix it, and show that it is fixed."
TEST_COMMAND = "python3 -m unittest"


@click.command("demo")
@click.option("--fast", is_flag=True, help="Do not type: print each reply at once.")
def command(fast: bool) -> int:
    """See panpan fix a bug, with no key and no network."""
    from panpan.ui.stdout import StdoutWriter

    out = StdoutWriter(sys.stdout)
    scratch = Path(tempfile.mkdtemp(prefix="panpan-demo-"))
    project = scratch / "warmup"
    with as_file(files("panpan.demo")) as demo:
        shutil.copytree(demo / "project", project, ignore=shutil.ignore_patterns("__pycache__"))
        tape = scratch / "tape.toml"
        text = (demo / "tape.toml").read_text(encoding="utf-8")
    tape.write_text(_without_pacing(text) if fast else text, encoding="utf-8")
    click.echo(
        "This is a demo. The model's words come from a tape, written by hand; nothing is sent to anyone.\n"
        "The loop, the tools and the files are real: a copy of a small project with a real bug, in\n"
        f"  {project}\n"
    )
    click.echo(click.style(f"❯ {PROMPT}", bold=True))
    anyio.run(_play, project, tape, scratch / "home", out)
    return _check(project)


async def _play(project: Path, tape: Path, home: Path, out: "StdoutWriter") -> None:
    from panpan.app import open_session
    from panpan.ui.line_face import LineFace

    face = LineFace(out, has_colour=out.is_terminal and "NO_COLOR" not in os.environ)
    opening = open_session(
        project,
        overrides={
            "model": f"cassette:{tape}",
            "permission.mode": "acceptEdits",
            "permission.allow": (f"Bash({TEST_COMMAND})",),
        },
        env=_environment(home),
    )
    async with opening as session, aclosing(session.submit(PROMPT)) as events:
        async for event in events:
            await face.show(event)


def _environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing of the user's settings counts, and `python3` is what runs panpan."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PANPAN_HOME": str(home), "PATH": path}


def _check(project: Path) -> int:
    """Run the tests once more, without the model, and say what came out."""
    tests = subprocess.run([sys.executable, "-m", "unittest"], cwd=project, capture_output=True, text=True, check=False)
    verdict = tests.stderr.strip().splitlines()[-1:] or ["no output"]
    click.echo(f"\nChecked apart from the model: {TEST_COMMAND} says {verdict[0]!r}.")
    if tests.returncode != 0:
        click.echo("The bug is still there.", err=True)
        return 1
    click.echo("With a key, the same works on your own code:  export ANTHROPIC_API_KEY=…  and  panpan")
    return 0


def _without_pacing(tape: str) -> str:
    return "\n".join(line for line in tape.splitlines() if not line.startswith(("chars_per_second", "pause_s")))
