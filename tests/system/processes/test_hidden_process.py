"""Processes that panpan starts cannot read its environment. Root could, so as root `nobody` runs these tests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest

from panpan.system.processes.process_table import MARKS_VARIABLE
from tests.needed_programs import need

SOURCES = f"{Path(__file__).parents[3]}:{Path(anyio.__file__).parents[1]}"
NOBODY = "65534"

CODE = """
import fcntl, os, subprocess, sys
from panpan.system.processes.own_process import hide_process
hide_process(os.environ)
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
subprocess.run(["/bin/sh", "-c", "cat /proc/$PPID/environ | tr '\\\\0' '\\\\n' | grep KEY"])
look = '''
import os, sys
from panpan.system.files.file_lock import lock_holder
holder = lock_holder(os.open(sys.argv[1], os.O_RDONLY))
print(holder is not None and holder.pid == os.getppid())
'''
subprocess.run([sys.executable, "-B", "-c", look, sys.argv[1]])
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach and write to."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name).resolve()


def told(folder: Path, **env: str) -> tuple[list[str], str]:
    """Return what the children of a panpan of an ordinary user print, and what goes wrong."""
    need("setpriv")
    need("/usr/bin/python3")
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    python = "/usr/bin/python3" if as_nobody else sys.executable
    ended = subprocess.run(
        [*as_nobody, python, "-B", "-u", "-c", CODE, str(folder / "locked")],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES, "KEY": "secret", **env},
    )
    if "ModuleNotFoundError" in ended.stderr:
        pytest.skip("other users cannot read panpan or its libraries here")
    return ended.stdout.splitlines(), ended.stderr


def test_commands_cannot_read_the_environment_of_panpan(open_folder: Path) -> None:
    lines, errors = told(open_folder)

    assert lines == ["True"], errors  # who owns a lock is known still
    assert "Permission denied" in errors


def test_a_panpan_of_another_one_stays_visible(open_folder: Path) -> None:
    lines, errors = told(open_folder, **{MARKS_VARIABLE: "0" * 32})

    assert lines == ["KEY=secret", "True"], errors
