"""Settings for all tests: a slow machine fails none, and failures in CI can be reproduced."""

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.fakes.project import Project

EXAMPLES = 35
"""Examples of each property without a number of its own; they are random, except in CI."""

settings.register_profile(
    "panpan",
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a slow machine says nothing about a test
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.load_profile("panpan")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Make the garbage collector skip the tests themselves: they are millions of objects, and stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def project(tmp_path: Path) -> "Project":
    """A project of the test's own, in which it can run sessions."""
    from tests.fakes.project import Project  # most tests need none of panpan's sessions

    return Project(tmp_path)
