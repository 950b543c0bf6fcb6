"""Finds processes that a program left running: all of them inherit a mark in the environment.

Reads /proc, so it is for Linux.
"""

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

_NAME = "PYTEST_TERMINAL_MARK"
"""Name of a variable that panpan passes on to commands; see `system/environment.py`."""


def new_mark() -> Mapping[str, str]:
    """Return a variable for the environment of one program, different from all others."""
    return {_NAME: uuid.uuid4().hex}


def left_with(mark: Mapping[str, str], *, within_s: float = 0) -> list[str]:
    """Return the commands that still run with this mark, after waiting at most `within_s` seconds for their end."""
    deadline = time.monotonic() + within_s
    while (found := [*pids_with(mark).values()]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def pids_with(mark: Mapping[str, str]) -> dict[int, str]:
    """Return the command lines of running processes with this mark, by their ids."""
    ((name, value),) = mark.items()
    wanted = f"{name}={value}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if command:  # a zombie has none
                    found[int(folder.name)] = command
        except OSError:
            continue  # it has ended, or belongs to another user
    return found
