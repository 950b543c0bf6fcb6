"""The wheel is whole: it installs into an empty environment, and the main job runs there."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_holds_the_files_that_panpan_reads(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    texts = {str(path.relative_to(ROOT)) for path in (ROOT / "panpan").rglob("*.md")}
    data = {str(path.relative_to(ROOT)) for path in (ROOT / "panpan").rglob("*.toml")}
    cassettes = {str(path.relative_to(ROOT)) for path in (ROOT / "panpan").rglob("*.jsonl")}
    agents = {f"panpan/_shipped/agents/{path.name}" for path in (ROOT / "agents").glob("*.md")}
    page = {str(path.relative_to(ROOT)) for path in (ROOT / "panpan/faces/server/page").iterdir()}
    assert texts | data | cassettes | agents | page <= names
    assert "panpan/config/models.json" in names
    (entry_points,) = [name for name in names if name.endswith("/entry_points.txt")]
    assert "[pytest11]\npanpan = panpan.testing.plugin" in zipfile.ZipFile(wheel).read(entry_points).decode()
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "scripts/"))]


@pytest.mark.timeout(600)
def test_wheel_installs_and_runs_the_demo(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env")
    binaries = tmp_path / "env" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "--disable-pip-version-check"]
    # compiled is only what runs below: that takes two seconds, and all of it ten
    install = [*pip, "install", "-q", "--no-compile", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}

    done = subprocess.run(
        [binaries / "panpan", "demo", "--fast"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "says 'OK'" in done.stdout

    agents = subprocess.run(
        [binaries / "panpan", "agents", "list"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    shipped = {path.stem for path in (ROOT / "agents").glob("*.md")}
    assert {line.split()[0] for line in agents.stdout.splitlines()} == shipped
