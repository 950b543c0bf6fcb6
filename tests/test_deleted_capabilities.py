"""The delete test: panpan without a capability's folder and its line in `app.py` still opens a session and works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package_copy import ROOT, linked_copy, rewrite

FOLDERS = {path.parent.name for path in ROOT.glob("panpan/capabilities/*/__init__.py")}
NEEDED = {"cassettes"}
"""Capabilities that more than `app.py` imports; `scripts/house_figures.py` counts the others."""

TASK = """
import sys, anyio, pathlib
from panpan.api import open_session

async def main():
    root = pathlib.Path(sys.argv[1])
    env = {"HOME": str(root), "PANPAN_HOME": str(root / "home"), "PATH": "/usr/bin:/bin"}
    model = {"model": f"cassette:{root / 'tape.toml'}"}
    async with open_session(root / "project", env=env, overrides=model) as session:
        async for event in session.submit("read a.txt"):
            pass
        print("\\n".join(message.text for message in session.conversation.messages if hasattr(message, "text")))

anyio.run(main)
"""


def without(capability: str, folder: Path) -> Path:
    """Make a copy of the package without a capability: its folder, and its two lines in `app.py`."""
    linked_copy(folder, without=f"panpan/capabilities/{capability}")
    app = folder / "panpan" / "app.py"
    text = app.read_text(encoding="utf-8")
    (name,) = re.findall(rf"^from panpan\.capabilities\.{capability}\.capability import (\w+)$", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if f"capabilities.{capability}." not in line and line != f"    {name},"]
    rewrite(app, "\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("capability", sorted(FOLDERS - NEEDED))
def test_session_works_without_a_capability(capability: str, tmp_path: Path) -> None:
    copy = without(capability, tmp_path / "copy")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("one two three\n")
    reads = 'tool_use = [{ name = "Read", input = { file_path = "a.txt" } }]'
    if capability == "files":  # which has Read
        reads = 'tool_use = [{ name = "Bash", input = { command = "cat a.txt", description = "Read it" } }]'
    (tmp_path / "tape.toml").write_text(f'version = 1\n[[reply]]\n{reads}\n[[reply]]\ntext = "done"\n')

    done = subprocess.run(
        [sys.executable, "-c", TASK, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(copy)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "one two three" in done.stdout
    assert done.stdout.rstrip().endswith("done")
