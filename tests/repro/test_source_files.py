"""Files of a repository as a check runs them: commit, changes, and what becomes a link."""

from pathlib import Path

import pytest

from panpan.repro.checking.source_files import SourceFiles, look_at_source
from tests.fakes.campaign import git, make_repository


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "paper"


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


async def look(folder: Path, *data: str) -> SourceFiles:
    return await look_at_source(folder, folder / "repro-results", data)


async def test_identity_of_a_clean_repository_is_its_commit(folder: Path) -> None:
    commit = make_repository(folder)
    (folder / "claims.toml").write_text("changed")
    (folder / "repro-results").mkdir()
    (folder / "repro-results" / "check.json").write_text("{}")

    found = await look(folder)

    assert (found.commit, found.identity, found.is_changed) == (commit, commit, False)
    assert (found.linked, found.left_out) == ((), ("repro-results",))


async def test_identity_follows_changes_that_are_not_committed(folder: Path) -> None:
    make_repository(folder)
    (folder / "new.py").write_text("1")
    one = await look(folder)
    (folder / "new.py").write_text("22")
    other = await look(folder)

    assert (one.is_changed, other.is_changed) == (True, True)
    assert len({one.identity, other.identity, one.commit}) == 3


async def test_data_that_git_does_not_have_whole_becomes_a_link(folder: Path) -> None:
    make_repository(folder, {".gitignore": "*.bin\n", "data/README": "r", "data/big.bin": "b", "small/a.csv": "1"})
    (folder / "one.bin").write_text("b")

    found = await look(folder, "data", "small", "small/a.csv", "one.bin", "data/big.bin", "gone")

    assert sorted(found.linked) == ["data", "one.bin"]


async def test_link_on_the_way_to_data_becomes_the_link(folder: Path, tmp_path: Path) -> None:
    make_repository(folder)
    put(tmp_path / "shared", "raw/a.csv", "1")
    (folder / "data").symlink_to("../shared")

    found = await look(folder, "data/raw", "data/gone")

    assert found.linked == ("data",)


async def test_submodule_becomes_a_link(folder: Path) -> None:
    make_repository(folder)
    make_repository(folder / "libs" / "other")
    (folder / "empty").mkdir()
    git(folder / "empty", "init", "-q")

    assert "libs/other" in (await look(folder)).linked


async def test_change_within_a_submodule_is_one(folder: Path) -> None:
    make_repository(folder)
    make_repository(folder / "libs" / "other")
    git(folder, "add", "libs/other")
    git(folder, "commit", "-qm", "add")
    one = await look(folder)
    put(folder, "libs/other/new.py", "1")
    other = await look(folder)
    put(folder, "libs/other/new.py", "22")
    last = await look(folder)

    assert [one.is_changed, other.is_changed, last.is_changed] == [False, True, True]
    assert len({one.identity, other.identity, last.identity}) == 3


async def test_file_that_git_takes_for_unchanged_is_one(folder: Path) -> None:
    make_repository(folder, {"run.py": "1"})
    git(folder, "update-index", "--assume-unchanged", "run.py")
    put(folder, "run.py", "1")
    one = await look(folder)
    put(folder, "run.py", "22")
    other = await look(folder)

    assert (one.is_changed, other.is_changed) == (True, True)
    assert one.identity != other.identity


async def test_folder_that_a_repository_ignores_is_in_none(folder: Path) -> None:
    make_repository(folder.parent / "outer", {".gitignore": "paper/\n"})
    inner = folder.parent / "outer" / "paper"
    put(inner, "run.py", "1")
    one = await look(inner)
    put(inner, "run.py", "22")
    other = await look(inner)

    assert (one.commit, one.is_changed) == ("", True)
    assert one.identity != other.identity


async def test_folder_without_git_has_no_commit(folder: Path) -> None:
    put(folder, "run.py", "1")
    put(folder, "data/a", "1")
    one = await look(folder, "data")
    put(folder, "repro-results/check.json", "{}")
    put(folder, "data/a", "22")
    other = await look(folder, "data")

    assert (one.commit, one.is_changed, one.linked) == ("", True, ("data",))
    assert one.left_out == ("repro-results",)
    assert one.identity == other.identity, "data and results are told by their own digests"
