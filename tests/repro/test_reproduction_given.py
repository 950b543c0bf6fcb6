"""Repositories, folders and papers as users name them on the command line."""

from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.repro.journey.given import read_given, read_paper, read_repository
from panpan.repro.journey.reproduction_folder import JourneyState, ReproductionFolder
from panpan.system.git.fetching import GitAddress


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ada/toys", GitAddress("https://github.com/ada/toys")),
        ("https://example.org/toys.git#v1", GitAddress("https://example.org/toys.git", "v1")),
        ("git@example.org:ada/toys.git", GitAddress("git@example.org:ada/toys.git")),
        ("git+file:///srv/toys", GitAddress("file:///srv/toys")),
    ],
)
def test_address_is_a_repository(tmp_path: Path, text: str, address: GitAddress) -> None:
    given = read_given(text, tmp_path)

    assert (given.kind, given.address, given.folder_name) == ("repository", address, "toys-reproduction")


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        ("https://arxiv.org/abs/2405.00001", "https://arxiv.org/pdf/2405.00001", "2405.00001-reproduction"),
        ("arxiv:2405.00001", "https://arxiv.org/pdf/2405.00001", "2405.00001-reproduction"),
        ("arXiv:math.GT/0309136", "https://arxiv.org/pdf/math.GT/0309136", "0309136-reproduction"),
        ("https://example.org/a/paper.pdf?x=1", "https://example.org/a/paper.pdf?x=1", "paper-reproduction"),
        ("https://example.org/toys.html", "https://example.org/toys.html", "toys.html-reproduction"),
    ],
)
def test_address_of_a_paper_is_a_paper(tmp_path: Path, text: str, url: str, name: str) -> None:
    given = read_given(text, tmp_path)

    assert (given.kind, given.url, given.folder_name) == ("paper", url, name)


def test_folders_and_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys.pdf").write_bytes(b"%PDF-1.4")
    begun = ReproductionFolder(tmp_path / "elsewhere")
    begun.path.mkdir()
    begun.write_state(JourneyState())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "state.json").write_text('{"epoch": 3}')

    kinds = {name: read_given(name, tmp_path).kind for name in ("toys", "toys.pdf", "elsewhere", "other")}

    assert kinds == {"toys": "folder", "toys.pdf": "paper", "elsewhere": "begun", "other": "folder"}


@pytest.mark.parametrize(
    "text", ["", "nothing here", "missing.pdf", "arxiv:toys", "--upload-pack=x", "https://example.org/x#-y"]
)
def test_anything_else_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        read_given(text, tmp_path)


def test_paper_of_another_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "paper.docx").write_bytes(b"PK")

    with pytest.raises(ConfigError, match=r"\.pdf"):
        read_paper("paper.docx", tmp_path)


def test_paper_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "toys.pdf").write_bytes(b"%PDF-1.4")

    with pytest.raises(ConfigError, match="--repo"):
        read_repository("toys.pdf", tmp_path)


def test_name_of_a_folder_has_no_odd_characters(tmp_path: Path) -> None:
    odd = tmp_path / "a paper; rm -rf \x1b[31m"
    odd.mkdir()

    assert read_given(odd.name, tmp_path).folder_name == "a-paper-rm--rf-31m-reproduction"
