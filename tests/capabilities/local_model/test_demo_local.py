"""The demo of the embedded model: its verdict, and its project."""

from pathlib import Path

import pytest

from panpan.capabilities.local_model.demo import BUG, NEW_NAME, OLD_NAME, PROMPTS, is_not_renamed
from panpan.cli.demo_command import check, copy_project
from panpan.cli_kit.demo import TEST_COMMAND


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path, BUG)


def rename(path: Path) -> None:
    path.write_text(path.read_text().replace(OLD_NAME, NEW_NAME))


def test_demo_project_is_repaired_and_its_tests_pass(project: Path, tmp_path: Path) -> None:
    with_bug = copy_project(tmp_path / "other", {})

    assert check(project) == 0
    assert check(with_bug) == 1
    assert OLD_NAME in PROMPTS[0]
    assert NEW_NAME in PROMPTS[0]
    assert TEST_COMMAND in PROMPTS[1]


def test_demo_accepts_a_function_renamed_everywhere(project: Path) -> None:
    rename(project / "schedule.py")
    rename(project / "test_schedule.py")

    assert is_not_renamed(project) == ""
    assert check(project, is_not_renamed) == 0


def test_demo_allows_the_old_name_in_prose(project: Path) -> None:
    for name in ("schedule.py", "test_schedule.py"):
        rename(project / name)
        (project / name).write_text(f"# was called {OLD_NAME}\n{(project / name).read_text()}")

    assert is_not_renamed(project) == ""


def test_demo_rejects_unchanged_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(project, is_not_renamed) == 1
    assert "The work is not done: schedule.py still calls the function learning_rate." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["schedule.py", "test_schedule.py"])
def test_demo_rejects_one_file_of_two(project: Path, name: str) -> None:
    rename(project / name)
    other = {"schedule.py", "test_schedule.py"} - {name}

    assert is_not_renamed(project) == f"{other.pop()} still calls the function {OLD_NAME}"


@pytest.mark.parametrize("text", [None, "", "def :\n", "\0", "x = 1\n"])
def test_demo_rejects_a_missing_or_broken_file(project: Path, text: str | None) -> None:
    rename(project / "schedule.py")
    rename(project / "test_schedule.py")
    (project / "test_schedule.py").unlink()
    if text is not None:
        (project / "test_schedule.py").write_text(text)

    assert is_not_renamed(project) == f"test_schedule.py has no function {NEW_NAME}"


def test_demo_rejects_an_alias(project: Path) -> None:
    rename(project / "test_schedule.py")
    schedule = project / "schedule.py"
    schedule.write_text(f"{schedule.read_text()}\n\n{NEW_NAME} = {OLD_NAME}\n")

    assert is_not_renamed(project) == f"schedule.py still calls the function {OLD_NAME}"
