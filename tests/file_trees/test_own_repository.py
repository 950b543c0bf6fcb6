"""Nothing but panpan's own settings counts in a repository of its own."""

import os
import time
from pathlib import Path
from threading import Barrier, Thread

import pytest

from panpan.errors import ToolError
from panpan.file_trees.own_repository import OwnRepository, TooMuchError
from panpan.file_trees.snapshot import commit_of
from tests.system.backends import on_both_backends, run_on


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def repository(tmp_path: Path, work: Path) -> OwnRepository:
    made = OwnRepository(tmp_path / "home" / "kept", work)
    made.prepare()
    return made


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def kept(repository: OwnRepository, path: str) -> bytes:
    """Add a file, and return what the repository holds of it."""
    await repository.run("update-index", "--add", "-z", "--stdin", stdin=os.fsencode(path) + b"\0")
    return await repository.run("cat-file", "blob", f":{path}")


async def test_added_tree_is_the_one_that_git_makes(repository: OwnRepository, tmp_path: Path) -> None:
    paths = ["a", "a-b", "a.c/x", "ab/y", "ab.d", "b/c/d", "b/c.txt", "b/c/e/f", "ü", os.fsdecode(b"\xff/g")]
    oid = repository.add_object("blob", b"x")
    files = {path: ("100755" if path == "ab.d" else "100644", oid) for path in paths}
    lines = b"".join(f"{mode} {oid}\t".encode() + os.fsencode(path) + b"\0" for path, (mode, oid) in files.items())
    index = tmp_path / "index"
    await repository.run("update-index", "-z", "--index-info", index=index, stdin=lines)

    assert repository.add_tree(files) == await repository.write_tree(index)
    assert repository.add_tree({}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_loose_object_is_read_only_as_what_it_is(repository: OwnRepository) -> None:
    oid = repository.add_object("commit", b"message\0")
    assert repository.read_loose("commit", oid) == b"message\0"
    assert repository.read_loose("blob", oid) is None
    assert repository.read_loose("commit", "0" * 40) is None
    place = repository.folder / "objects" / oid[:2] / oid[2:]
    place.chmod(0o600)
    place.write_bytes(b"damaged")
    assert repository.read_loose("commit", oid) is None


async def test_reference_is_read_also_when_git_has_packed_it(repository: OwnRepository) -> None:
    oid = repository.add_object("commit", commit_of(repository.add_tree({}), None, b"message"))
    repository.point("refs/sessions/one", oid)
    before = repository.read_reference("refs/sessions/one")
    await repository.run("pack-refs", "--all", "--prune")

    assert not (repository.folder / "refs/sessions/one").exists()
    assert (before, repository.read_reference("refs/sessions/one")) == (oid, oid)
    assert repository.read_reference("refs/sessions/two") is None


@on_both_backends
def test_repository_keeps_bytes(repository: OwnRepository, work: Path, backend: str) -> None:
    (work / "a").write_bytes(b"\r\n\x00\xff")

    async def main() -> None:
        assert await kept(repository, "a") == b"\r\n\x00\xff"

    run_on(backend, main)
    assert (repository.folder.stat().st_mode & 0o777, repository.folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)


async def test_repository_ignores_configuration_and_variables(
    repository: OwnRepository, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    evil.chmod(0o755)
    (tmp_path / ".gitconfig").write_text(
        f'[core]\n autocrlf = true\n fsmonitor = {evil}\n hooksPath = {tmp_path}\n[filter "evil"]\n clean = {evil}\n'
        f" required = true\n"
    )
    (work / ".gitattributes").write_text("* text filter=evil ident\n")
    (work / "a").write_bytes(b"$Id: 1 $\r\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))

    assert await kept(repository, "a") == b"$Id: 1 $\r\n"
    assert not ran.exists()
    assert names_in(tmp_path) == [".gitconfig", "evil", "home", "work"]


async def test_repository_in_the_folder_is_not_asked(repository: OwnRepository, work: Path) -> None:
    (work / ".git").write_text("gitdir: /nowhere\n")
    (work / "a").write_bytes(b"a\n")

    assert await kept(repository, "a") == b"a\n"


async def test_object_added_without_git_equals_gits(repository: OwnRepository, tmp_path: Path) -> None:
    oids = [repository.add_object("blob", b"content\x00\n") for _ in range(2)]

    assert await repository.run("cat-file", "blob", oids[0]) == b"content\x00\n"
    assert oids[0] == oids[1]
    assert await repository.run("fsck", "--strict") == f"dangling blob {oids[0]}\n".encode()
    (folder,) = [path for path in (repository.folder / "objects").iterdir() if len(path.name) == 2]
    assert names_in(folder) == [oids[0][2:]]


async def test_warnings_of_git_are_passed_on(repository: OwnRepository, work: Path) -> None:
    (work / "a").write_bytes(b"a\n")
    told: list[bytes] = []
    await repository.run("rm", "--cached", "-r", "--ignore-unmatch", "a", note_warnings=told.append)
    await repository.run("update-index", "--add", "a", ".git/config", note_warnings=told.append)

    assert told == [b"", b"Ignoring path .git/config\n"]


async def test_error_has_the_words_of_git(repository: OwnRepository) -> None:
    with pytest.raises(ToolError, match="git cat-file failed: fatal: "):
        await repository.run("cat-file", "blob", "nothing")


async def test_oversized_output_is_an_error_of_its_own(repository: OwnRepository) -> None:
    with pytest.raises(TooMuchError, match="printed more than 5 bytes"):
        await repository.run("version", max_bytes=5)


async def test_reference_keeps_its_target(repository: OwnRepository) -> None:
    made = await repository.run("hash-object", "-w", "--stdin", stdin=b"kept\n")
    repository.point("refs/sessions/one", made.decode().strip())
    await repository.run("gc", "--quiet", "--prune=now")

    assert await repository.run("cat-file", "blob", "refs/sessions/one") == b"kept\n"


def test_leftovers_of_a_killed_git_are_removed_once_old(repository: OwnRepository) -> None:
    packs = repository.folder / "objects" / "pack"
    packs.mkdir()
    for name, age_s in (("tmp_pack_old", 100_000), ("tmp_pack_new", 10), ("pack-1.pack", 100_000)):
        (packs / name).write_bytes(b"x")
        os.utime(packs / name, (time.time() - age_s,) * 2)
    repository.prepare()

    assert sorted(path.name for path in packs.iterdir()) == ["pack-1.pack", "tmp_pack_new"]


def test_prepare_and_add_object_in_several_threads_at_once(tmp_path: Path) -> None:
    failures = list[Exception]()
    for number in range(20):
        barrier, folder = Barrier(4), tmp_path / f"kept{number}"

        def begin(barrier: Barrier = barrier, folder: Path = folder) -> None:
            own = OwnRepository(folder, tmp_path)
            barrier.wait()
            try:
                own.prepare()
                own.add_object("blob", b"the same content")
            except OSError as error:
                failures.append(error)

        threads = [Thread(target=begin) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [path for path in folder.rglob("*") if path.name.endswith(".lock")] == []

    assert failures == []
