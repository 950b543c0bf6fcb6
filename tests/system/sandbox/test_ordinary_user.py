"""The other tests' results for an ordinary user, where root runs the tests, as in containers."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest

from tests.needed_programs import need

REPOSITORY = Path(__file__).parents[3]
LIBRARIES = Path(anyio.__file__).parents[1]
NOBODY = "65534"

CODE = """
import os, subprocess, sys
from pathlib import Path
sys.path[:0] = sys.argv[1].split(":")
from panpan.system.sandbox.bubblewrap import Bubblewrap
from panpan.system.sandbox.landlock import Landlock, landlock_version
from panpan.system.sandbox.profile import workspace_write

workspace = Path(sys.argv[2])
sandbox = Bubblewrap("/usr/bin/bwrap", has_user_namespace=True) if sys.argv[3] == "bubblewrap" else Landlock(
    landlock_version())
script = "for at in src .git ../beside; do echo x > $at/new; done; mkdir .panpan; id -u; grep CapEff /proc/self/status"
with sandbox.wrap(["/bin/sh", "-c", script], workspace_write([workspace]), workspace) as boxed:
    ended = subprocess.run(boxed.argv, pass_fds=boxed.pass_fds)
sys.exit(ended.returncode)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.mark.parametrize("kind", ["bubblewrap", "Landlock"])
def test_ordinary_user_is_kept_in_bounds_too(kind: str, open_folder: Path) -> None:
    need("setpriv")
    need("/usr/bin/python3")
    need("/usr/bin/bwrap")
    if os.geteuid() != 0:
        pytest.skip("all other tests run as an ordinary user")
    folders = [open_folder / "workspace" / "src", open_folder / "workspace" / ".git", open_folder / "beside"]
    for folder in folders:
        folder.mkdir(parents=True)
        os.chown(folder, int(NOBODY), int(NOBODY))
    os.chown(open_folder / "workspace", int(NOBODY), int(NOBODY))
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "/usr/bin/python3", "-B", "-c"]
    argv = [*as_nobody, CODE, f"{REPOSITORY}:{LIBRARIES}", str(open_folder / "workspace"), kind]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")

    if "ModuleNotFoundError" in ended.stderr:
        pytest.skip("other users cannot read panpan or its libraries here")
    if "user namespace" in ended.stderr or "No permissions" in ended.stderr:
        pytest.skip(ended.stderr)
    assert ended.stdout.split() == [NOBODY, "CapEff:", "0" * 16], ended.stderr
    assert (folders[0] / "new").exists()
    assert [sorted(path.name for path in folder.iterdir()) for folder in folders[1:]] == [[], []]
    assert not list((open_folder / "workspace").glob(".panpan/*"))
