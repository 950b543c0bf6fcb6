"""Checksums of data are taken once, and what is not read whole is never called compared."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from panpan.repro.checking.data_files import Limits, check_data, identity_of, led_outside, not_whole
from panpan.repro.checking.results import DataCheck
from panpan.repro.claims.claim import Data

CONTENT = b"1 2 3\n"
DIGEST = sha256(CONTENT).hexdigest()


class Files:
    """A folder with data.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.cache = self.folder / "data-digests.json"

    def put(self, name: str, content: bytes = CONTENT) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def check(self, path: str, sha: str = "", **limits: Any) -> DataCheck:
        return check_data([Data(path=path, sha256=sha)], self.folder, self.cache, Limits(**limits))[0]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_data_with_the_stated_checksum_is_no_problem(files: Files) -> None:
    files.put("a.csv")

    check = files.check("a.csv", DIGEST)

    assert (check.problem, check.found is not None and check.found.sha256) == ("", DIGEST)


@pytest.mark.parametrize(
    ("path", "sha", "problem"),
    [
        (
            "a.csv",
            "0" * 64,
            f"a.csv has the SHA-256 {DIGEST[:12]}…, and 000000000000… is stated; it is another version",
        ),
        ("gone.csv", DIGEST, "gone.csv is missing"),
        ("../a.csv", DIGEST, "../a.csv is no path in the repository; correct it"),
        ("/etc/hostname", "", "/etc/hostname is no path in the repository; correct it"),
        ("folder", DIGEST, "folder is a folder, and the stated checksum is one of a file; it is not compared"),
    ],
)
def test_problem_of_data_is_a_sentence(files: Files, path: str, sha: str, problem: str) -> None:
    files.put("a.csv")
    files.put("folder/b.csv")

    assert files.check(path, sha).problem == problem


def test_large_data_is_digested_by_parts_and_not_compared(files: Files) -> None:
    files.put("a.csv")

    check = files.check("a.csv", DIGEST, stated=3)

    assert check.found is not None
    assert check.found.how == "parts"
    assert check.problem == "a.csv (6 bytes) was not read whole, so it is not compared with the stated checksum"


@pytest.mark.parametrize("sha", ["", DIGEST])
def test_data_of_300_gb_costs_no_time_and_is_told(files: Files, sha: str) -> None:
    files.put("a.bin")
    os.truncate(files.folder / "a.bin", 300_000_000_000)

    check = check_data([Data(path="a.bin", sha256=sha)], files.folder, files.cache)[0]

    assert not_whole(check) == "a.bin (300 GB) is not read whole; its checksum is of its size and parts"
    assert ("is not compared with the stated checksum" in check.problem) == bool(sha)


def test_folder_is_digested_file_by_file_up_to_its_limits(files: Files) -> None:
    for name in ("data/a", "data/b/c", "data/d"):
        files.put(name)

    whole = files.check("data")
    parts = files.check("data", folder=8, files=2)

    assert [one.path for one in whole.files] == ["data/a", "data/d", "data/b/c"]
    assert {one.how for one in whole.files} == {"whole"}
    assert [one.how for one in parts.files] == ["whole", "parts"]
    assert parts.found is not None
    assert parts.found.how == "parts", "one of three is not named"


def test_checksum_of_an_unchanged_file_is_not_taken_again(files: Files) -> None:
    files.put("a.csv")
    files.check("a.csv")
    told = files.cache.read_text()
    assert DIGEST in told
    files.cache.write_text(told.replace(DIGEST, "f" * 64))  # so that the test sees where the digest comes from

    again = files.check("a.csv")
    files.put("a.csv", b"4 5 6\n")
    changed = files.check("a.csv")

    assert again.found is not None
    assert again.found.sha256 == "f" * 64
    assert changed.found is not None
    assert changed.found.sha256 == sha256(b"4 5 6\n").hexdigest()


def test_identity_differs_when_a_file_of_a_folder_does(files: Files) -> None:
    files.put("data/a")
    before = identity_of([files.check("data")], files.folder)
    assert identity_of([files.check("data")], files.folder) == before

    files.put("data/a", b"changed")

    assert identity_of([files.check("data")], files.folder) != before


@pytest.mark.parametrize("path", ["data", "data/a.bin"])
def test_identity_follows_data_that_is_not_read_whole(files: Files, path: str) -> None:
    """A byte between the parts of a large file, and a file beyond those that are named."""
    files.put("data/a.bin", b"0" * 2_000_000)
    files.put("data/b.bin")
    for name in ("a.bin", "b.bin"):
        os.utime(files.folder / "data" / name, (0, 0))  # the clocks of file systems tick slowly

    def identity() -> str:
        return identity_of([files.check(path, whole=1_000_000, files=1)], files.folder)

    before = identity()
    assert identity() == before
    with (files.folder / path if path != "data" else files.folder / "data/b.bin").open("r+b") as file:
        file.seek(700_001 if path != "data" else 0)
        file.write(b"1")
    assert identity() != before


def test_data_behind_a_link_out_of_the_repository_is_told(files: Files, tmp_path: Path) -> None:
    inner = Files(tmp_path / "paper")
    inner.put("own.csv")
    files.put("letters/a.txt")
    (inner.folder / "data").symlink_to("../letters")

    assert led_outside(inner.check("own.csv"), inner.folder) == ""
    assert led_outside(inner.check("gone"), inner.folder) == ""
    said = led_outside(inner.check("data"), inner.folder)
    assert said == f"data leads to {files.folder / 'letters'}; the results name the files there"


def test_damaged_cache_counts_for_nothing(files: Files) -> None:
    files.put("a.csv")
    files.cache.write_text('{"files": 5')

    assert files.check("a.csv", DIGEST).problem == ""
