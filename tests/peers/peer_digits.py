"""Numbers that the documentation of scikit-learn publishes, reproduced as a user does; docs/reproduction.md shows it.

The package comes from the registry, into an environment that all runs share. On the page each run has one of its own,
for which the sandbox needs the network.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.peers.scratch_python import INSTALL_S, scratch_python

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "tests" / "repro" / "digits"
HELD_OUT = "table-2/40-%-held-out"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scratch_python(tmp_path_factory, "digits", "3.11", (DIGITS / "requirements.txt").read_text().split())


@pytest.mark.timeout(INSTALL_S + 300)
def test_published_numbers_of_scikit_learn_hold(python: Path, tmp_path: Path) -> None:
    claims = shutil.copytree(DIGITS, tmp_path / "digits") / "claims.toml"
    claims.write_text(claims.read_text().replace('kind = "uv"', 'kind = "none"'))

    one, of_one = _reproduce(python, tmp_path, seeds=1)
    three, of_three = _reproduce(python, tmp_path, seeds=3)

    assert (one.returncode, three.returncode) == (1, 0), one.stderr + three.stderr
    assert "2 of 4 ran before, with the same files" in three.stderr
    assert len(of_one) == len(of_three) == 12
    assert {id_ for id_, judged in of_one.items() if judged["verdict"] != "reproduced"} == {HELD_OUT}
    assert {id_ for id_, judged in of_three.items() if judged["verdict"] != "reproduced"} == {HELD_OUT}
    assert (of_one[HELD_OUT]["verdict"], of_three[HELD_OUT]["verdict"]) == ("deviates", "within spread")
    assert of_one[HELD_OUT]["hints"] == ["0.9667 was cut off after the last digit instead of rounded"]
    row = _reproduce_without_panpan(python, tmp_path / "digits-reproduction" / "kit")
    assert row == f"{HELD_OUT} 0.96 0.9667 to 0.9833, 3 runs within spread within spread"
    page = (ROOT / "docs" / "reproduction.md").read_text()
    for done in (one, three):
        shown = [line for line in done.stdout.splitlines() if line.startswith(("verdict", "within", "deviates"))]
        assert len(shown) == 2
        assert all(line in page for line in shown)


def _reproduce(python: Path, folder: Path, *, seeds: int) -> tuple[subprocess.CompletedProcess[str], Mapping[str, Any]]:
    """Run the command of the page, and return the judgements by the claims' ids."""
    argv: Sequence[str] = ("panpan", "reproduce", "digits", "--no-model", "--yes", "--trust", "--seeds", str(seeds))
    done = subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=folder,
        env=_variables(python, folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    check = json.loads((folder / "digits-reproduction" / "check.json").read_text())
    return done, {judged["claim"]["id"]: judged for judged in check["judgements"]}


def _reproduce_without_panpan(python: Path, kit: Path) -> str:
    """Run the script of a kit, and return its row of the number that is not reproduced."""
    done = subprocess.run(
        ["sh", "reproduce.sh"],
        cwd=kit,
        env=_variables(python, kit),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith(f"{HELD_OUT} ")]
    return " ".join(row.split())


def _variables(python: Path, home: Path) -> Mapping[str, str]:
    return {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "PANPAN_HOME": str(home / ".panpan"),
    }
