import subprocess
from pathlib import Path

import pytest

from panpan.system.git.git_places import GitIndex
from tests.needed_programs import need

NAMES = ("a.py", "sub/.env", "sub/deep/x", "long/" + "n" * 200, "uml\u00e4ut")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    need("git")
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True, timeout=30)
    return tmp_path.resolve()


def test_what_git_tracks_is_known(top: Path) -> None:
    index = GitIndex.around(top / "sub" / "deep")

    assert index is not None
    assert all(index.has(top / name) for name in NAMES)


def test_the_names_are_all_that_git_tracks(top: Path) -> None:
    (top / "later").write_text("x")
    subprocess.run(["git", "-C", str(top), "add", "-N", "later"], check=True, timeout=30)  # an entry with more flags
    index = GitIndex.around(top)

    assert index is not None
    assert sorted(index.names() or ()) == sorted([*NAMES, "later"])


@pytest.mark.parametrize(
    "content",
    [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\1", b"DIRC\0\0\0\4\0\0\0\0", b"XXXX\0\0\0\2\0\0\0\0",
     b"DIRC\0\0\0\2\0\0\0\0link\0\0\0\0", b"DIRC\0\0\0\2\0\0\0\1" + b"x" * 60 + b"\0\5a\0"],
)  # fmt: skip
def test_no_names_are_told_of_an_index_that_is_not_understood(content: bytes) -> None:
    assert GitIndex(Path("/"), content).names() is None


@pytest.mark.parametrize("name", [".env", "py", "a.p", "sub", "deep/x", "b.py", "../a.py"])
def test_what_only_looks_like_it_is_not_tracked(top: Path, name: str) -> None:
    index = GitIndex.around(top)

    assert index is not None
    assert not index.has(top / name)


def test_an_index_that_cannot_be_read_so_tells_nothing(top: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    git = ["git", "-C", str(top), "update-index", "--index-version", "4"]
    subprocess.run(git, check=True, capture_output=True, timeout=30)
    index = GitIndex.around(top)

    assert index is not None
    assert not index.has(top / "sub" / ".env")
    assert not index.has(Path("/elsewhere"))
    assert GitIndex.around(tmp_path_factory.mktemp("bare")) is None
