"""Packages that others wrote, installed once in a run: the first worker that needs them does it, the others wait."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

READY = "ready"


def installed_once(factory: pytest.TempPathFactory, name: str, install: Callable[[Path], object]) -> Path:
    """Return a folder that all workers share, after one of them filled it.

    Args:
        factory: That of the run.
        name: The folder's name.
        install: Fills a new folder, or skips; the tests of every worker are skipped then, with its reason.
    """
    ours = factory.getbasetemp()
    root = ours.parent if "PYTEST_XDIST_WORKER" in os.environ else ours
    folder = root / name
    with (root / f"{name}.outcome").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if not (outcome := file.read()):
            folder.mkdir()
            outcome = _outcome(install, folder)
            file.write(outcome)
    if outcome != READY:
        pytest.skip(outcome)
    return folder


def _outcome(install: Callable[[Path], object], folder: Path) -> str:
    try:
        install(folder)
    except pytest.skip.Exception as skipped:
        return str(skipped) or "skipped"
    return READY
