"""What holds for all tests: a slow machine is no failure, and a failure of CI can be had again."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = 50
"""Of each property that names no number; they are others in each run but those of CI."""

settings.register_profile(
    "panpan",
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a machine that stands still says nothing about a test
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.load_profile("panpan")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the tests themselves: they are millions of objects, and stay to the end."""
    gc.collect()
    gc.freeze()
