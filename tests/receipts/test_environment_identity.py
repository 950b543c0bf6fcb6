"""The environment of a command is told by its Python, its packages and its lock."""

import sys
import venv
from hashlib import sha256
from pathlib import Path

from panpan.receipts.digests import FileDigests
from panpan.receipts.environment_identity import Environments, packages_text
from panpan.receipts.receipt import EnvironmentIdentity
from tests.receipts.recorded import workspace_at


def make_environment(folder: Path, *packages: str) -> Path:
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    for package in packages:
        install(folder, package)
    return folder


def install(environment: Path, package: str) -> None:
    site = next(environment.glob("lib/python3.*/site-packages"))
    (site / f"{package}.dist-info").mkdir()


def identity(top: Path, environment: Path, environments: Environments | None = None) -> EnvironmentIdentity:
    found = environments or Environments([top], FileDigests())
    return found.identity(top, {"PATH": f"{environment}/bin:/usr/bin"})


def test_python_and_packages_are_told(tmp_path: Path) -> None:
    made = make_environment(tmp_path / "env", "NumPy-2.1", "six-1.17.0")
    found = identity(tmp_path, made)
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.interpreter == str(Path(sys.executable).resolve())
    assert found.packages_sha256 == sha256(b"numpy==2.1\nsix==1.17.0\n").hexdigest()


def test_packages_of_an_identity_are_listed(tmp_path: Path) -> None:
    made = make_environment(tmp_path / "env", "NumPy-2.1", "torch-2.0+cu118", "six-1.17.0")
    environments = Environments([tmp_path], FileDigests())
    found = identity(tmp_path, made, environments)
    packages = environments.packages(found.packages_sha256) or ()
    assert list(packages) == ["numpy==2.1", "six==1.17.0", "torch==2.0+cu118"]
    assert sha256(packages_text(packages)).hexdigest() == found.packages_sha256
    assert environments.packages("0" * 64) is None


def test_folders_with_odd_names_are_no_packages(tmp_path: Path) -> None:
    """A list of packages is read by pip, for which each line may be an option."""
    odd = ("a-1\n--index-url=x", "-r x-1", "~umpy-2.1", "b c-1", "b-1 @ file", "\u0430-1", "six-1.17.0")
    made = make_environment(tmp_path / "env", *odd)
    environments = Environments([tmp_path], FileDigests())
    found = identity(tmp_path, made, environments)
    assert environments.packages(found.packages_sha256) == ["six==1.17.0"]


def test_installing_a_package_changes_the_identity(tmp_path: Path) -> None:
    made = make_environment(tmp_path / "env")
    environments = Environments([tmp_path], FileDigests())
    before = identity(tmp_path, made, environments)
    assert identity(tmp_path, made, environments) == before
    install(made, "six-1.17.0")
    assert identity(tmp_path, made, environments) != before


def test_nearest_lock_counts(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "uv.lock").write_text("1")
    environments = Environments([tmp_path], FileDigests())
    found = environments.identity(tmp_path / "sub" / "deep", {})
    assert (found.lock, found.lock_sha256) == ("uv.lock", sha256(b"1").hexdigest())
    (tmp_path / "sub" / "poetry.lock").write_text("2")
    assert environments.identity(tmp_path / "sub" / "deep", {}).lock == "sub/poetry.lock"
    assert environments.identity(tmp_path.parent, {}).lock == ""


def test_missing_python_is_not_known(tmp_path: Path) -> None:
    found = Environments([tmp_path], FileDigests()).identity(tmp_path, {"PATH": str(tmp_path)})
    assert found == EnvironmentIdentity()


def test_version_behind_a_shim_of_pyenv_is_told(tmp_path: Path) -> None:
    pyenv = tmp_path / "pyenv"
    (pyenv / "shims").mkdir(parents=True)
    (pyenv / "shims" / "python").write_text("#!/bin/sh\n")
    (pyenv / "shims" / "python").chmod(0o755)
    for version in ("3.9.1", "3.10.2"):
        folder = pyenv / "versions" / version
        (folder / "lib" / f"python{version.rpartition('.')[0]}" / "site-packages").mkdir(parents=True)
        (folder / "bin").mkdir()
        (folder / "bin" / "python").touch()
    (pyenv / "version").write_text("3.9.1\n")
    environments = Environments([tmp_path], FileDigests())
    path = {"PATH": str(pyenv / "shims")}
    assert environments.identity(tmp_path, path).interpreter == str(pyenv / "versions/3.9.1/bin/python")
    (tmp_path / ".python-version").write_text("3.10.2\n")
    assert environments.identity(tmp_path, path).interpreter == str(pyenv / "versions/3.10.2/bin/python")
    assert environments.identity(tmp_path, {**path, "PYENV_VERSION": "3.9.1"}).version == "3.9"
    assert environments.identity(tmp_path, {**path, "PYENV_VERSION": "../../x"}) == EnvironmentIdentity()


async def test_environment_that_was_used_counts(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        make_environment(work.top / ".venv", "six-1.17.0")
        receipt = await work.run(".venv/bin/python -c 1", variables={"PATH": "/usr/bin:/bin"})
        assert receipt.environment.packages_sha256 == sha256(b"six==1.17.0\n").hexdigest()
        assert receipt.inputs == ()


async def test_other_packages_make_a_receipt_stale(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        environment = make_environment(work.top / ".venv", "six-1.17.0")
        receipt = await work.run(".venv/bin/python -c 1", variables={"PATH": "/usr/bin:/bin"})
        assert (await work.recorder.freshness(receipt)).state == "fresh"
        install(environment, "six-1.16.0")
        found = await work.recorder.freshness(receipt)
        assert (found.state, list(found.changed)) == ("stale", ["installed packages"])
