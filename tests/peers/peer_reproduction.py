"""A toy paper with a planted fault, reproduced with the embedded model, which chooses the places of its numbers.

A place that so small a model does not find leaves its claim not run, which is a right end, too. A wrong verdict is not.
The model is never fetched here, since it is 1.1 GB.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.local_model.weight_store import (
    QWEN_CODER_1_5B,
    WeightStore,
    models_folder,
    require_machine,
)
from panpan.errors import ConfigError
from tests.repro.toy_papers import toy_repository

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.xdist_group("model")]


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Return the environment of a panpan that finds the weights of this machine, and has a home of its own."""
    try:
        require_machine()
    except ConfigError as error:
        pytest.skip(str(error))
    folder = models_folder(os.environ)
    if not WeightStore(folder, QWEN_CODER_1_5B).is_ready:
        pytest.skip(f"{QWEN_CODER_1_5B.name} is not set up, and is not fetched for this; run: panpan local setup")
    cache = tmp_path / "cache" / "panpan"
    cache.mkdir(parents=True)
    (cache / "models").symlink_to(folder)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PANPAN_HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(cache.parent),
    }


def test_small_model_never_makes_a_right_number_deviate(environment: Mapping[str, str], tmp_path: Path) -> None:
    toy_repository("robust-means", tmp_path)
    command = [sys.executable, "-m", "panpan", "reproduce", "robust-means", "--model", "local", "--yes", "--seeds", "5"]

    done = subprocess.run(
        [*command, "-f", "json"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1_700
    )

    assert done.returncode == 0, done.stderr
    judged: list[Mapping[str, Any]] = json.loads(done.stdout)["check"]["judgements"]
    found = {one["claim"]["row"]: one for one in judged}
    print(done.stderr)  # noqa: T201 - how far so small a model comes
    print({row: (one["verdict"], one["claim"]["command"]) for row, one in found.items()})  # noqa: T201
    assert {row: one["claim"]["value"] for row, one in found.items()} == {
        "trimmed mean": "3.50",
        "bootstrap mean": "3.502",
        "network": "3.71",
    }
    assert all(one["claim"]["tolerance"]["absolute"] is None for one in judged)
    assert found["trimmed mean"]["verdict"] == "reproduced"
    assert found["bootstrap mean"]["verdict"] in ("within spread", "not run"), "3.502 is the number of another seed"
    assert found["network"]["verdict"] == "not run"
