import os
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from panpan.system.processes.process_table import ProcessTree
from panpan.system.sandbox.profile import read_only, workspace_write
from tests.system.backends import until
from tests.system.sandbox.boxes import ENV, Box, captured, names, running, tree

WRITES_OUTSIDE = {
    "write": "echo x > $1/file",
    "append": "echo x >> $1/file",
    "truncate": "truncate -s 0 $1/file",
    "new file": "echo x > $1/new",
    "new folder": "mkdir $1/new",
    "new link": "ln -s /etc $1/new",
    "new pipe": "mkfifo $1/new",
    "delete": "rm -f $1/file",
    "delete folder": "rmdir $1/folder",
    "move in": "echo x > src/x; mv src/x $1/x",
    "move out": "mv $1/file src/file",
    "rename": "mv $1/file $1/other",
    "through a link": "ln -s $1 src/link; echo x > src/link/file; echo x > src/link/new",
    "through a link to a file": "ln -s $1/file src/link; echo x > src/link",
    "through a hard link": "ln $1/file src/link; echo x > src/link",
    "through dots": "echo x > src/../../outside/file",
    "through its own root": "echo x > /proc/self/root$1/file",
    "through its own folder": "echo x > /proc/self/cwd/../outside/file",
    "through a process outside": "echo x > /proc/$2/root$1/file; echo x > /proc/$2/cwd/new",
    "through the thread of another": "echo x > /proc/$2/task/$2/root$1/file",
    "through a folder that was open": "cd $1; echo x > file; echo x > new",
    "with a swap": "echo x > src/x; mv --exchange src/x $1/file || mv -f src/x $1/file",
    "the folder above": "mv ../workspace ../elsewhere; mv ../outside ../elsewhere; touch ../new",
}


async def test_files_outside_never_change(box: Box) -> None:
    before, beside = tree(box.outside), names(box.outside.parent)
    tidy = 'rm -rf src; mkdir src; echo "x = 1" >src/module.py'

    await box.run_each(WRITES_OUTSIDE.values(), box.outside, os.getpid(), tidy=tidy)

    assert tree(box.outside) == before
    assert names(box.outside.parent) == beside


async def test_workspace_can_be_changed(box: Box) -> None:
    script = "cd src && echo y > new && mkdir -p a/b && mv new a/b && echo z >> module.py && ln -s a c"
    links = "" if any("hard links" in limit for limit in box.sandbox.limits) else "&& ln a/b/new d && rm d"

    ended = await box.run(f"{script} {links} && chmod 700 a && mv a/b e && rmdir a")

    assert ended.stderr == b""
    assert ended.exit_code == 0
    assert (box.workspace / "src" / "e" / "new").read_text() == "y\n"
    assert (box.workspace / "src" / "module.py").read_text() == "x = 1\nz\n"


async def test_read_only_command_changes_nothing(box: Box) -> None:
    before = tree(box.workspace) | tree(box.outside)
    script = "for at in $1 $2; do echo x > $at/new; mkdir $at/folder; chmod 0 $at/*; touch -d 2001-01-01 $at/*; done"

    ended = await box.run(f"{script}; cat src/module.py", box.workspace, box.outside, profile=read_only())

    assert tree(box.workspace) | tree(box.outside) == before
    assert ended.stdout == b"x = 1\n"


async def test_mode_and_owner_outside_stay_or_the_limit_is_named(box: Box) -> None:
    if any("mode, owner" in limit for limit in box.sandbox.limits):
        pytest.skip("a limit of this sandbox, which it tells")
    before = tree(box.outside)

    await box.run("chmod 777 $1 $1/file; chown 1 $1/file; touch -d 2001-01-01 $1/file", box.outside)

    assert tree(box.outside) == before


async def test_more_folders_and_single_files_can_be_opened(box: Box) -> None:
    profile = box.profile.also_writing(box.outside / "file")

    ended = await box.run("echo x > $1/file; echo x > $1/new; mv $1/file $1/y", box.outside, profile=profile)

    assert (box.outside / "file").read_text() == "x\n"
    assert names(box.outside) == ["file", "folder"]
    assert ended.exit_code != 0


@pytest.fixture
def protected(box: Box) -> Path:
    """Fill the workspace with places that stay as they are."""
    for name in (".git/hooks/pre-commit", ".git/config", ".panpan/settings.toml", ".github/workflows/ci.yml", ".envrc"):
        path = box.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as it was\n")
    nested = box.workspace / "src" / "nested" / ".git" / "config"
    nested.parent.mkdir(parents=True)
    nested.write_text("as it was\n")
    return box.workspace


CHANGES_PROTECTED = {
    "write": "for at in .git/config .envrc .github/workflows/ci.yml src/nested/.git/config; do echo x > $at; done",
    "new": "echo x > .git/hooks/post-checkout; mkdir .git/new; ln -s /bin/true .git/hooks/x; echo > .github/new",
    "delete": "rm -rf .git .panpan .github .envrc",
    "move away": "mv .git .g; mv .panpan .p; mv .github .gh; mv .envrc .e; mkdir .git .panpan; echo x > .envrc",
    "move in": "echo x > src/x; mv -f src/x .git/config; mkdir src/y; mv src/y .git/hooks/y",
    "hard link out": "ln .git/config src/c; echo x > src/c; ln .envrc src/e; echo x > src/e",
    "hard link in": "echo x > src/x; ln src/x .git/hooks/post-checkout",
    "through a link": "ln -s ../.git src/g; echo x > src/g/config; echo x > src/g/hooks/new",
    "the workspace itself": "mv $1 $1-moved; mkdir -p $1/.git; echo x > $1/.git/config",
    "another root": "echo x > /proc/self/root$1/.git/config; echo x > /proc/self/cwd/.git/config",
    "mounts": "mount -o remount,bind,rw $1/.git; umount $1/.git; mount --bind $1/src $1/.git; echo x > .git/config",
    "mounts of its own": "unshare -rm sh -c 'umount $0/.git; mount -o remount,bind,rw $0/.git; echo > .git/config' $1",
    "the folder above": "mv src/nested src/other; echo x > src/other/.git/config; mv src/other src/nested",
}


async def test_protected_places_stay_unchanged(box: Box, protected: Path) -> None:
    def kept() -> dict[str, tuple[int, int, bytes]]:
        hidden = {name: found for name, found in tree(protected).items() if "/." in f"/{name}"}
        return {name: found for name, found in hidden.items() if name.split("/")[0] not in (".g", ".p", ".gh", ".e")}

    before = kept()

    await box.run_each(CHANGES_PROTECTED.values(), protected, tidy="rm -rf src/[a-z]")
    await box.sandbox.tidy()

    assert kept() == before


UNMOUNTS = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
place = sys.argv[1].encode()
print(libc.unshare(0x10020000))  # CLONE_NEWUSER | CLONE_NEWNS
libc.umount2(place, 2)
libc.mount(None, place, None, 0x1020, None)  # MS_REMOUNT | MS_BIND
libc.mount(b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
libc.umount2(place, 2)
open(sys.argv[1] + "/config", "w").write("changed")
"""


async def test_powers_in_an_own_user_namespace_open_nothing(box: Box, protected: Path) -> None:
    ended = await box.python(UNMOUNTS, protected / ".git")

    assert (protected / ".git" / "config").read_text() == "as it was\n"
    assert b"Error" in ended.stderr


MAKES = (
    "mkdir $1; echo x > $1/config", "mkdir src/x; mv src/x $1", "ln -s src $1",
    "rmdir $1; mkdir $1; echo x > $1/c",
)  # fmt: skip


@pytest.mark.parametrize("name", [".git", ".panpan", ".vscode"])
async def test_protected_missing_place_cannot_be_made(box: Box, name: str) -> None:
    before = tree(box.workspace)

    await box.run_each(MAKES, name, tidy="rm -rf src/x")
    await box.sandbox.tidy()

    assert not (box.workspace / name).exists()
    assert set(tree(box.workspace)) == set(before)


async def test_leftover_process_keeps_its_protection_until_it_ends(box: Box) -> None:
    session = ProcessTree()
    tries = "until test -e src/go-on; do sleep 0.01; done; mkdir -p .panpan/x; echo x > .panpan/y; echo > src/tried"
    script = f"exec >/dev/null 2>&1; ({tries}) &"
    with box.sandbox.wrap(["/bin/bash", "-c", script], box.profile, box.workspace) as wrapped:
        async with aclosing(running(wrapped, cwd=box.workspace, env=session.marked(ENV), timeout_s=20)) as items:
            async for _ in items:
                pass

    await box.sandbox.tidy()
    (box.workspace / "src" / "go-on").touch()
    await until((box.workspace / "src" / "tried").exists)
    made_meanwhile = list(box.workspace.glob(".panpan/*"))
    await session.end(0.1)
    await box.sandbox.tidy()

    assert made_meanwhile == []
    assert names(box.workspace) == ["src"]


async def test_tidying_removes_only_its_own_empty_places(box: Box) -> None:
    (box.workspace / ".panpan").mkdir()
    await box.run("true")
    (box.workspace / ".git").mkdir(exist_ok=True)
    (box.workspace / ".git" / "config").write_text("made meanwhile, outside")

    await box.sandbox.tidy()

    assert (box.workspace / ".panpan").is_dir()
    assert (box.workspace / ".git" / "config").exists()


async def test_protected_link_does_not_open_its_target(box: Box) -> None:
    (box.workspace / "real").mkdir()
    (box.workspace / "real" / "config").write_text("as it was\n")
    (box.workspace / ".git").symlink_to("real")

    await box.run("echo x > .git/config; echo x > .git/new")

    assert (box.workspace / "real" / "config").read_text() == ("as it was\n")
    assert set(tree(box.workspace / "real")) == {"config"}


async def test_folder_within_a_protected_one_can_be_opened(box: Box) -> None:
    tree_of_work = box.workspace / ".panpan" / "trees" / "one"
    tree_of_work.mkdir(parents=True)
    profile = workspace_write([box.workspace, tree_of_work])

    await box.run(
        "echo x > $1/new; mkdir $1/src; echo x > $1/src/new; echo x > $1/../new", tree_of_work, profile=profile
    )

    assert not (tree_of_work.parent / "new").exists()
    if box.sandbox.name != "Landlock":  # which makes nothing new where a protected place lies
        assert (tree_of_work / "src" / "new").read_text() == "x\n"


async def test_link_that_replaced_a_folder_opens_nothing(box: Box) -> None:
    argv = ["/bin/sh", "-c", "echo x > $0/new", str(box.outside)]

    with box.sandbox.wrap(argv, box.profile, box.workspace) as wrapped:
        (box.workspace / "src").rename(box.workspace / "away")
        (box.workspace / "src").symlink_to(box.outside)
        await captured(wrapped, cwd=box.workspace)

    assert not (box.outside / "new").exists()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A workspace in shared memory."""
    if not Path("/dev/shm").is_dir():
        pytest.skip("there is no /dev/shm")
    with TemporaryDirectory(dir="/dev/shm") as name:
        Path(name, "src").mkdir()
        yield Path(name)


async def test_workspace_in_shared_memory_works(box: Box, shared: Path) -> None:
    with box.sandbox.wrap(["/bin/sh", "-c", "echo x > src/new"], workspace_write([shared]), shared) as wrapped:
        ended = await captured(wrapped)
    await box.sandbox.tidy()

    assert ended.exit_code == 0
    assert set(tree(shared)) == {"src", "src/new"}


async def test_workspace_in_shared_memory_can_be_looked_at(box: Box, shared: Path) -> None:
    with box.sandbox.wrap(["/bin/sh", "-c", "ls; echo x > src/new"], read_only(), shared) as wrapped:
        ended = await captured(wrapped)

    assert ended.stdout == b"src\n"
    assert set(tree(shared)) == {"src"}
