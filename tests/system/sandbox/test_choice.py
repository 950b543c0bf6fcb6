import shutil
from pathlib import Path

import pytest

from panpan.system.sandbox.bubblewrap import Bubblewrap
from panpan.system.sandbox.choice import SandboxChoice, find_sandbox
from panpan.system.sandbox.landlock import Landlock, landlock_version
from tests.needed_programs import need
from tests.system.backends import on_both_backends, run_on

# What follows the last `--` of the arguments is the command.
RUNS_ALL = '#!/bin/bash\nwhile [[ $1 != -- ]]; do shift; done; shift; exec "$@"\n'


def bwrap(folder: Path, text: str) -> str:
    folder.mkdir()
    program = folder / "bwrap"
    program.write_text(text)
    program.chmod(0o755)
    return str(folder)


@on_both_backends
def test_bubblewrap_comes_first(backend: str) -> None:
    need("bwrap")

    async def main() -> None:
        choice = await find_sandbox()

        if choice.passed_over:
            pytest.skip(choice.passed_over[0])
        assert isinstance(choice.sandbox, Bubblewrap)

    run_on(backend, main)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "#!/bin/sh\necho first >&2; echo 'bwrap: No permissions to create a new namespace' >&2; exit 1\n",
            "bwrap: No",
        ),
        ("#!/bin/sh\nexit 9\n", "it ended with exit code 9"),
        (RUNS_ALL, "it starts here, but does not keep a command from writing"),
        ("no program\n", "exit code|not found|cannot"),
    ],
    ids=["refused", "failed", "does not hold", "broken"],
)
async def test_failing_bubblewrap_is_skipped_once(tmp_path: Path, text: str, reason: str) -> None:
    choice = await find_sandbox(places=bwrap(tmp_path / "bin", text))

    assert choice.sandbox is None or choice.sandbox.name == "Landlock"
    about_bubblewrap = [passed for passed in choice.passed_over if "bubblewrap" in passed]
    assert len(about_bubblewrap) == 1
    assert pytest.importorskip("re").search(reason, about_bubblewrap[0])


async def test_landlock_is_the_fallback_and_the_package_is_named(tmp_path: Path) -> None:
    choice = await find_sandbox(places=str(tmp_path))

    assert "install the package bubblewrap" in choice.passed_over[0]
    if landlock_version() >= 3:
        assert isinstance(choice.sandbox, Landlock)
        assert len(choice.passed_over) == 1


@pytest.mark.parametrize("version", [0, 1, 2])
def test_missing_or_old_landlock_is_reported(version: int) -> None:
    with pytest.raises(Exception, match=f"version {version} of Landlock, and 3" if version else "no Landlock"):
        Landlock(version)


def test_landlock_limits_of_an_old_kernel_are_all_named() -> None:
    assert any("signals" in limit for limit in Landlock(5).limits)
    assert not any("signals" in limit for limit in Landlock(6).limits)


def test_choice_without_a_sandbox_is_none() -> None:
    assert SandboxChoice(None).sandbox is None
    assert shutil.which("bwrap", path="/nowhere") is None
