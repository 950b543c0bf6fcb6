"""A Python of its own for a harness, which needs a newer one than panpan, or other packages."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.peers.installs import installed_once

ROOT = Path(__file__).parents[2]
INSTALL_S = 400


def scratch_python(factory: pytest.TempPathFactory, name: str, version: str, packages: Sequence[str]) -> Path:
    """Return a Python of a version with packages; the tests are skipped if it cannot be had."""
    folder = installed_once(factory, name, lambda folder: _install(folder, version, packages))
    return folder / "bin" / "python"


def _install(folder: Path, version: str, packages: Sequence[str]) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    python = folder / "bin" / "python"
    steps = (
        [uv, "venv", "-q", "--no-python-downloads", "--python", _interpreter(version), str(folder)],
        [uv, "pip", "install", "-q", "--python", str(python), *packages],
    )
    for argv in steps:
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{packages[0]} cannot be installed: {error}")
        if done.returncode != 0:
            pytest.skip(f"{packages[0]} cannot be had: {done.stderr.strip().splitlines()[-1:]}")


def _interpreter(version: str) -> str:
    """Return a Python of pyenv, whose shims uv takes for broken ones; else the version, for uv to find."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = sorted(root.glob(f"versions/{version}.*/bin/python"))
    return str(found[-1]) if found else version


def run_in(python: Path, script: str, *args: str, env: Mapping[str, str] | None = None) -> str:
    """Run a script beside this file with panpan's sources, end all that it started, and return what it printed."""
    mark = f"PEER_JOB={secrets.token_hex(8)}"
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NO_PROXY": "*", **(env or {})}
    try:
        done = subprocess.run(
            [str(python), str(Path(__file__).with_name(script)), *args],
            env=variables | dict([mark.split("=")]),
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    finally:
        _end_marked(mark)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _end_marked(mark: str) -> None:
    """End the processes that inherited a variable, such as the server that a killed job of Inspect leaves."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
