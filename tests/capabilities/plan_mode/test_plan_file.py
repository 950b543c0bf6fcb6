"""The file of a plan: private, with a name of its own, and never in the place of something else."""

import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.plan_mode.plan_mode import find_plan_file, new_plan_file, read_plan, write_plan
from panpan.core.tool import SeenFiles
from panpan.errors import ToolError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "plans"


def test_plan_file_is_private_with_a_sayable_name(folder: Path) -> None:
    path = new_plan_file(folder)

    assert re.fullmatch(r"[a-z]+-[a-z]+-[a-z]+\.md", path.name)
    assert path.read_bytes() == b""
    assert [stat.S_IMODE(place.stat().st_mode) for place in (path, folder)] == [0o600, 0o700]
    assert find_plan_file(folder, path.name) == path


def test_plan_file_never_replaces_another(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.choice", lambda words: words[0])
    first = new_plan_file(folder)
    first.write_text("mine")

    others = {new_plan_file(folder) for _ in range(5)}

    assert (first.read_text(), len(others - {first})) == ("mine", 5)
    assert all(find_plan_file(folder, path.name) == path for path in others)


def test_plan_folder_may_be_a_link(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")

    assert new_plan_file(folder).parent == tmp_path / "elsewhere"


def test_plan_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")

    with pytest.raises(ToolError, match="plan file cannot be made"):
        new_plan_file(tmp_path / "home" / "plans")


@pytest.mark.parametrize(
    "name",
    [
        "../settings.toml",
        "settings.toml",
        "a-b-c.md/../../settings.toml",
        "/etc/passwd",
        "",
        "a-b-c.md\n",
        "link-to-it.md",
        "no-such-plan.md",
        "a-folder-here.md",
    ],
)
def test_plan_named_by_a_log_is_found_or_none(folder: Path, name: str) -> None:
    new_plan_file(folder)
    (folder.parent / "settings.toml").write_text("")
    (folder / "settings.toml").write_text("")
    (folder / "link-to-it.md").symlink_to(folder.parent / "settings.toml")
    (folder / "a-folder-here.md").mkdir()

    assert find_plan_file(folder, name) is None


@given(name=st.text())
def test_plan_named_by_a_log_is_never_outside(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = find_plan_file(tmp_path_factory.getbasetemp(), name)

    assert path is None or path.parent == tmp_path_factory.getbasetemp()


def test_plan_round_trips_and_stays_private(folder: Path) -> None:
    path, seen = new_plan_file(folder), SeenFiles()
    seen.add(path, b"")

    write_plan(path, "the plan", seen)

    assert (read_plan(path, seen), stat.S_IMODE(path.stat().st_mode)) == ("the plan\n", 0o600)


def test_plan_unread_by_the_model_is_not_replaced(folder: Path) -> None:
    path, seen = new_plan_file(folder), SeenFiles()
    seen.add(path, b"")
    path.write_text("the user's own")

    with pytest.raises(ToolError, match="not read"):
        write_plan(path, "the model's", seen)
    assert path.read_text() == "the user's own"

    write_plan(path, "the user's next", None)
    with pytest.raises(ToolError, match="not read"):
        write_plan(path, "the model's", seen)
    read_plan(path, seen)
    write_plan(path, "the model's", seen)
    assert path.read_text() == "the model's\n"


def test_deleted_plan_file_is_made_again(folder: Path) -> None:
    path, seen = new_plan_file(folder), SeenFiles()
    path.unlink()

    write_plan(path, "the plan", seen)

    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("the plan\n", 0o600)


def test_plan_file_that_became_a_link_is_not_used(folder: Path) -> None:
    path, target = new_plan_file(folder), folder.parent / "settings.toml"
    target.write_text("secret")
    path.unlink()
    path.symlink_to(target)

    with pytest.raises(ToolError, match="link"):
        read_plan(path, SeenFiles())
    with pytest.raises(ToolError, match="link"):
        write_plan(path, "x", None)
    assert target.read_text() == "secret"


def test_plan_file_that_is_no_text_is_reported(folder: Path) -> None:
    path = new_plan_file(folder)
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ToolError, match="not UTF-8"):
        read_plan(path, SeenFiles())
