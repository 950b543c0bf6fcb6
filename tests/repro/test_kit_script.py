"""reproduce.sh: it runs in an empty environment, with a POSIX shell and the system's python3."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from panpan.repro.claims.claim import Claims
from panpan.repro.kit.script import ScriptFacts, script
from tests.needed_programs import need
from tests.repro.kit_runs import SYSTEM, kit_with_lock, run, short, verdicts, write
from tests.repro.toy_kits import check_of, git, toy_data, toy_project, write_toys


@pytest.fixture(autouse=True)
def system_python() -> None:
    if shutil.which("python3", path=SYSTEM) is None:
        pytest.skip("the system has no python3")


EXPECTED = {"mean": "reproduced", "accuracy": "within spread", "f1": "deviates", "time": "not run"}


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_script_judges_as_the_check_did(shell: str, tmp_path: Path) -> None:
    need(shell)
    kit = write(check_of(toy_project(tmp_path / "source")), tmp_path)
    done = run(kit, shell=shell)

    assert (done.returncode, done.stderr) == (1, "")  # the typing error in f1
    assert verdicts(kit / "work") == EXPECTED
    assert "accuracy  81.2   80.0 to 82.0, 3 runs  within spread  within spread" in done.stdout
    assert list((tmp_path / "home").iterdir()) == []


def test_script_ends_with_0_where_nothing_deviates(tmp_path: Path) -> None:
    kit = write(short(check_of(toy_project(tmp_path / "source"))), tmp_path)

    assert run(kit).returncode == 0
    assert verdicts(kit / "work") == {"mean": "reproduced"}


def test_kit_in_a_folder_with_blanks_and_quotes_runs(tmp_path: Path) -> None:
    top = tmp_path / "a b'c\"$d"
    kit = write(short(check_of(toy_project(top / "source"))), top)

    assert run(kit, "-w", str(top / "-w ork")).returncode == 0
    assert verdicts(top / "-w ork") == {"mean": "reproduced"}


def test_commands_are_quoted_and_run_as_they_are(tmp_path: Path) -> None:
    check = check_of(toy_project(tmp_path / "source"))
    line = "printf 'mean: %s\\n' \"it's $((1 + 1))\" 'mean: 2'\nprintf 'mean: 2.5\\n' # {seed} $(exit 3) `exit 4`"
    one = check.judgements[0]
    changed = one.model_copy(update={"claim": one.claim.model_copy(update={"command": line})})
    kit = write(check.model_copy(update={"judgements": (changed,)}), tmp_path)
    done = run(kit)

    assert (done.returncode, done.stderr) == (0, "")
    assert (kit / "work/results/001/output.txt").read_text() == "mean: it's 2\nmean: mean: 2\nmean: 2.5\n"


def test_failed_command_is_not_run_and_no_deviation(tmp_path: Path) -> None:
    toy_project(tmp_path / "source")
    (tmp_path / "source/experiment.py").write_text("import sys; print('mean: 2.5'); sys.exit(7)")
    git(tmp_path / "source", "commit", "-qam", "broken")
    kit = write(short(check_of(git(tmp_path / "source", "rev-parse", "HEAD"))), tmp_path)
    done = run(kit)

    assert done.returncode == 0
    assert set(verdicts(kit / "work").values()) == {"not run"}
    assert "mean: the command failed with exit code 7" in done.stdout


def test_files_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    toy_project(tmp_path / "source")
    lines = "import pathlib, sys\nif sys.argv[1] == '0':\n    pathlib.Path('table.csv').write_text('a')\n"
    (tmp_path / "source/experiment.py").write_text(
        f"{lines}assert sys.argv[1] == '0' or not pathlib.Path('table.csv').exists()"
    )
    git(tmp_path / "source", "commit", "-qam", "leave a file")
    kit = write(check_of(git(tmp_path / "source", "rev-parse", "HEAD")), tmp_path)
    run(kit)

    assert [(kit / f"work/results/00{number}/exit").read_text() for number in (1, 2, 3)] == ["0\n"] * 3


def test_timeout_ends_a_run(tmp_path: Path) -> None:
    need("timeout")
    check = check_of(toy_project(tmp_path / "source"))
    one = check.judgements[0]
    fields = {"command": "echo begun {seed}; sleep 60", "timeout_s": 1.0}
    changed = one.model_copy(update={"claim": one.claim.model_copy(update=fields)})
    kit = write(check.model_copy(update={"judgements": (changed,)}), tmp_path)
    run(kit)

    assert (kit / "work/results/001/exit").read_text() == "124\n"


def test_data_is_linked_and_compared(tmp_path: Path) -> None:
    kit = write(short(check_of(toy_project(tmp_path / "source", has_data=False), [toy_data()])), tmp_path)
    missing = run(kit)
    assert missing.returncode == 2
    assert "data/toys.csv is missing" in missing.stdout
    assert "name the folder that holds it with -d" in missing.stderr

    write_toys(tmp_path / "mine")
    assert run(kit, "-d", str(tmp_path / "mine"), "-w", str(tmp_path / "one")).returncode == 0
    assert verdicts(tmp_path / "one") == {"mean": "reproduced"}

    write_toys(tmp_path / "mine", "1\n2\n3\n5\n")
    other = run(kit, "-d", str(tmp_path / "mine"), "-w", str(tmp_path / "two"))
    assert "data/toys.csv is not the file of the check" in other.stdout
    assert verdicts(tmp_path / "two")["mean"] == "not reproducible"


def test_setup_runs_before_each_command(tmp_path: Path) -> None:
    toy_project(tmp_path / "source", has_data=False)
    claims = Claims.model_validate(
        {"environment": {"setup": "mkdir data && printf '1\\n4\\n' >data/toys.csv; echo mean: 9"}}
    )
    kit = write(check_of(git(tmp_path / "source", "rev-parse", "HEAD")), tmp_path, claims=claims)

    assert run(kit).returncode == 1
    assert verdicts(kit / "work") == EXPECTED


def test_work_folder_must_be_empty(tmp_path: Path) -> None:
    kit = write(check_of(toy_project(tmp_path / "source")), tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").touch()
    done = run(kit, "-w", str(tmp_path / "full"))

    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]


def test_missing_python_is_told(tmp_path: Path) -> None:
    kit = write(check_of(toy_project(tmp_path / "source")), tmp_path)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("sh", "dirname", "cat", "mkdir"):
        (bin_ / name).symlink_to(shutil.which(name, path=SYSTEM) or "")
    done = run(kit, shell=str(bin_ / "sh"), path=str(bin_))

    assert (done.returncode, done.stderr) == (2, "reproduce.sh: python3 is missing; install it\n")


def test_satisfied_lock_installs_nothing(tmp_path: Path) -> None:
    commit = toy_project(tmp_path / "source")
    (tmp_path / "source/requirements.txt").write_text("# nothing is needed\n")
    kit = write(short(check_of(commit)), tmp_path, claims=Claims.model_validate({"environment": {"kind": "uv"}}))

    assert run(kit).returncode == 0
    assert verdicts(kit / "work") == {"mean": "reproduced"}
    assert not (kit / "work/venv").exists()


def test_project_with_a_lock_of_uv_is_synced(tmp_path: Path) -> None:
    source = tmp_path / "source"
    toy_project(source)
    (source / "pyproject.toml").write_text('[project]\nname = "toys"\nversion = "1"\nrequires-python = ">=3.9"\n')
    (source / "uv.lock").write_text(
        'version = 1\nrequires-python = ">=3.9"\n\n[[package]]\nname = "toys"\nversion = "1"\n'
        'source = { virtual = "." }\n'
    )
    git(source, "add", ".")
    git(source, "commit", "-qm", "lock")
    claims = Claims.model_validate({"environment": {"kind": "uv"}})
    kit = write(short(check_of(git(source, "rev-parse", "HEAD"))), tmp_path, claims=claims)
    assert run(kit).stderr == "reproduce.sh: uv is missing, which installs the packages of uv.lock; install it\n"

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/uv").symlink_to(Path(sys.executable).with_name("uv"))
    done = run(kit, "-w", str(tmp_path / "w"), path=f"{tmp_path}/bin:{SYSTEM}")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "w/venv/bin/python").exists()


def test_sources_at_an_address_are_cloned(tmp_path: Path) -> None:
    need("git")
    commit = toy_project(tmp_path / "source")
    kit = write(short(check_of(commit)), tmp_path)
    (kit / "source.tar.gz").unlink()
    facts = ScriptFacts(title="toys", address=str(tmp_path / "source"), commit=commit)
    (kit / "reproduce.sh").write_text(script(json.loads((kit / "check.json").read_text()), facts))

    assert run(kit).returncode == 0
    assert verdicts(kit / "work") == {"mean": "reproduced"}


def test_lock_is_installed_by_uv_into_an_environment(tmp_path: Path) -> None:
    """`make test-peers` does the same with pip."""
    done, found = _with_uv(kit_with_lock(tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    assert found == {"mean": "reproduced"}
    assert "packages that differ" not in done.stdout


def test_packages_that_cannot_be_had_are_told(tmp_path: Path) -> None:
    done, found = _with_uv(kit_with_lock(tmp_path, "0.9"))

    assert (done.returncode, done.stderr) == (0, "")
    assert found == {"mean": "not reproducible"}
    assert "\npackages that differ from those of the check: toyverse 2.0 instead of 0.9\n" in done.stdout


def _with_uv(kit: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """Run a kit where uv is, and return its end and the verdicts."""
    programs = kit.parent / "bin"
    programs.mkdir()
    (programs / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    return run(kit, path=f"{programs}:{SYSTEM}"), verdicts(kit / "work")


def test_script_is_valid_for_posix_shells(tmp_path: Path) -> None:
    """`dash -n` reads all of it; the rest is what only shells with more than POSIX take."""
    kit = write(check_of(toy_project(tmp_path / "source"), [toy_data()]), tmp_path)
    text = (kit / "reproduce.sh").read_text()

    assert subprocess.run(["sh", "-n", str(kit / "reproduce.sh")], capture_output=True, check=True).stderr == b""
    assert [word for word in ("[[", "function ", "local ", "source ", "<(", "&>", "echo ") if word in text] == []
    assert os.access(kit / "reproduce.sh", os.X_OK)
