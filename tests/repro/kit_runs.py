"""Kits of toys, and runs of their scripts in an empty environment."""

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import anyio

from panpan.repro.checking.results import CheckReport, InstalledPackages
from panpan.repro.claims.claim import Claims
from panpan.repro.kit.write_kit import write_kit
from tests.repro.toy_kits import check_of, git, reproduction, toy_project

SYSTEM = "/usr/local/bin:/usr/bin:/bin"


def write(check: CheckReport, top: Path, **facts: Any) -> Path:
    return anyio.run(write_kit, check, reproduction(top / "r", top / "source", **facts), top / "kit")


def run(kit: Path, *words: str, shell: str = "sh", path: str = SYSTEM) -> subprocess.CompletedProcess[str]:
    """Run the script as `env -i` does, with an empty home."""
    home = kit.parent / "home"
    home.mkdir(exist_ok=True)
    argv = [shell, str(kit / "reproduce.sh"), *words]
    return subprocess.run(
        argv, cwd="/", env={"HOME": str(home), "PATH": path}, capture_output=True, text=True, timeout=100, check=False
    )


def verdicts(work: Path) -> dict[str, str]:
    return {one["id"]: one["verdict"] for one in json.loads((work / "results.json").read_text())["claims"]}


def short(check: CheckReport) -> CheckReport:
    """Return a check of the first claim alone, which has one run."""
    return check.model_copy(update={"judgements": check.judgements[:1]})


def kit_with_lock(top: Path, version: str = "1.0") -> Path:
    """Return a kit whose command needs a package, which lies beside it, so that no index is needed.

    The lock allows several versions, and only the oldest has the paper's number.

    Args:
        top: An empty folder.
        version: Version that the runs of the check had.
    """
    toy_project(top / "source")
    (top / "source/experiment.py").write_text("import toyverse; print('mean:', toyverse.MEAN)")
    (top / "wheels").mkdir()
    toy_wheel(top / "wheels")
    toy_wheel(top / "wheels", "2.0", mean=9.5)
    lock = f"--no-index\n--find-links {top / 'wheels'}\ntoyverse\n"
    (top / "source/requirements.txt").write_text(lock)
    git(top / "source", "add", ".")
    git(top / "source", "commit", "-qm", "use a package")
    claims = Claims.model_validate({"environment": {"kind": "uv"}})
    check = short(check_of(git(top / "source", "rev-parse", "HEAD")))
    environments = (InstalledPackages(sha256="c" * 64, packages=(f"toyverse=={version}",)),)
    return write(check.model_copy(update={"environments": environments}), top, claims=claims)


def toy_wheel(folder: Path, version: str = "1.0", mean: float = 2.5) -> None:
    """Write a package with a number into a folder."""
    path = folder / f"toyverse-{version}-py3-none-any.whl"
    info = f"toyverse-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("toyverse.py", f"MEAN = {mean}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: toyverse\nVersion: {version}\n")
        tags = "Root-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: toys\n{tags}")
        wheel.writestr(f"{info}/RECORD", f"toyverse.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
