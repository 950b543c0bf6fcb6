"""Folders that a box still needs, also where a process in it sees fewer than the others."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from panpan.system.sandbox.bubblewrap import mount_points
from tests.needed_programs import need

# Lays something over a folder, starts a child, and goes with its root below another folder; the child has the higher
# number, so that the first process of the namespace is the one that does not see it.
HIDES = """
import os, subprocess, sys, time
over, jail = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "none", over], check=True)
if os.fork():
    os.chroot(jail)
    print("ready", flush=True)
time.sleep(600)
"""


def test_process_that_sees_less_hides_nothing(tmp_path: Path) -> None:
    need("unshare")
    if os.geteuid() != 0:
        pytest.skip("only root changes its root without a namespace that has its own view of it")
    over, jail, free = tmp_path / "over", tmp_path / "jail", tmp_path / "free"
    for folder in (over, jail, free):
        folder.mkdir()
    around = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command = [*around, sys.executable, "-c", HIDES, str(over), str(jail)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            assert mount_points({over, free}) == {over}
        finally:
            process.kill()
    deadline = time.monotonic() + 20
    while mount_points({over, free}):  # the namespace goes a moment after the program that made it
        assert time.monotonic() < deadline
