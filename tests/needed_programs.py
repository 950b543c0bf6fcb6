"""Programs that tests run and a machine may lack."""

import shutil

import pytest


def need(program: str) -> None:
    """Skip the test where `program` is not installed."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
