"""Tests of the sandbox of one session's commands."""

import os
import resource
from collections.abc import Collection, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from panpan.errors import PanpanError, ToolError
from panpan.system.environment import child_environment
from panpan.system.processes.process import Captured, capture
from panpan.system.sandbox.choice import SandboxChoice
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox, PlaceClaims
from panpan.system.sandbox.profile import Sandbox, empty_places, folder_to_open
from tests.system.backends import until
from tests.system.sandbox.boxes import Box, made, names


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "place"


@pytest.fixture
def mine(tmp_path: Path) -> PlaceClaims:
    return PlaceClaims(tmp_path / "claims")


@pytest.fixture
def theirs(tmp_path: Path) -> PlaceClaims:
    return PlaceClaims(tmp_path / "claims")


def test_claimed_place_is_nobody_elses_alone(mine: PlaceClaims, theirs: PlaceClaims, place: Path) -> None:
    mine.hold([place])
    with theirs.alone([place]) as free:
        assert free == set()
    mine.let_go([place])

    with theirs.alone([place]) as free:
        assert free == {place}


def test_hold_reports_earlier_claims(mine: PlaceClaims, theirs: PlaceClaims, place: Path) -> None:
    assert mine.hold([place]) == set()
    assert theirs.hold([place, place.with_name("other")]) == {place}


def test_place_is_claimed_until_the_last_holder_lets_go(mine: PlaceClaims, theirs: PlaceClaims, place: Path) -> None:
    mine.hold([place])
    mine.hold([place])
    mine.let_go([place])

    with theirs.alone([place]) as free:
        assert free == set()


def test_ended_session_claims_nothing(mine: PlaceClaims, theirs: PlaceClaims, place: Path) -> None:
    mine.hold([place])
    mine.hold([place])
    mine.close()
    mine.let_go([place])  # of a box that was left later

    with theirs.alone([place]) as free:
        assert free == {place}


def test_endless_removal_times_out_and_leaves_no_claim(mine: PlaceClaims, tmp_path: Path, place: Path) -> None:
    theirs = PlaceClaims(tmp_path / "claims", wait_s=0.0)
    other = place.with_name("other")

    with mine.alone([place]), pytest.raises(ToolError, match="another panpan has kept"):
        theirs.hold([other, place])

    with mine.alone([place, other]) as free:
        assert free == {place, other}


def test_claims_without_a_writable_folder_block_nobody(tmp_path: Path, place: Path) -> None:
    (tmp_path / "file").touch()

    for claims in (PlaceClaims(None), PlaceClaims(tmp_path / "file" / "claims")):
        assert claims.hold([place]) == set()
        with claims.alone([place]) as free:
            assert free == {place}
        claims.let_go([place])


def test_vacant_places_are_missing_or_empty_folders(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    names = ("none", "empty", "full", "full/file", "link", "broken")

    assert empty_places(tmp_path / name for name in names) == {tmp_path / "none", tmp_path / "empty"}


@dataclass
class Found:
    """Finds what a test wants, and counts how often it was looked for."""

    sandbox: Sandbox | None
    passed_over: tuple[str, ...] = ()
    times: int = 0

    async def __call__(self) -> SandboxChoice:
        self.times += 1
        return SandboxChoice(self.sandbox, self.passed_over)


async def run(sandbox: CommandSandbox, box: Box, script: str, bounds: Bounds) -> Captured:
    async with sandbox.boxed(["/bin/bash", "-c", script], child_environment(), box.workspace, bounds) as start:
        return await capture(start.argv, cwd=box.workspace, env=start.env, timeout_s=60, pass_fds=start.pass_fds)


def works_in(box: Box, *opened: Path) -> Bounds:
    return Bounds(is_read_only=False, roots=[box.workspace], opened=frozenset(opened))


async def test_boxed_look_changes_nothing_and_others_the_workspace(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    script = f"echo new > src/module.py; echo new > {box.outside}/file; cat src/module.py"
    looks = await run(sandbox, box, script, Bounds(is_read_only=True, roots=[box.workspace]))
    assert looks.stdout == b"x = 1\n"
    works = await run(sandbox, box, script, works_in(box))
    assert works.stdout == b"new\n"
    assert (box.outside / "file").read_text() == "untouched\n"
    await sandbox.aclose()


async def test_temporary_files_are_in_a_private_removed_folder(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    ended = await run(sandbox, box, "mktemp; stat -c %a $TMPDIR", Bounds(is_read_only=True))
    name, mode = ended.stdout.decode().split()
    assert Path(name).parent == sandbox.temporary
    assert mode == "700"
    await sandbox.aclose()
    assert not sandbox.temporary.exists()


async def test_approved_file_can_be_changed_and_its_siblings_cannot(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    (box.outside / "other").write_text("untouched\n")
    script = f"echo new > {box.outside}/file; echo new > {box.outside}/other"
    await run(sandbox, box, script, works_in(box, box.outside / "file"))
    assert (box.outside / "file").read_text() == "new\n"
    assert (box.outside / "other").read_text() == "untouched\n"
    await sandbox.aclose()


async def test_approved_file_can_be_made(box: Box) -> None:
    if box.sandbox.name == "Landlock":
        pytest.skip("Landlock can keep no names from being made beside others, so nothing is made there")
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    made = box.outside / "folder" / "made"
    await run(sandbox, box, f"echo new > {made}", works_in(box, made))
    assert made.read_text() == "new\n"
    await sandbox.aclose()


async def test_approved_protected_file_can_be_changed(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    settings = box.workspace / ".vscode" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("old")
    script = "echo new > .vscode/settings.json; touch .vscode/tasks.json"
    await run(sandbox, box, script, works_in(box))
    assert settings.read_text() == "old"
    await run(sandbox, box, script, works_in(box, settings))
    assert settings.read_text() == "new\n"
    assert not (box.workspace / ".vscode" / "tasks.json").exists()
    await sandbox.aclose()


async def test_session_repository_allows_git_and_runs_nothing_of_it(box: Box) -> None:
    if box.sandbox.name != "bubblewrap":
        pytest.skip("Landlock lets nothing new be made beside what is protected, so that git does not work there")
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    await run(sandbox, box, "git init -q sub", works_in(box))
    git = box.workspace / "sub" / ".git"
    hook = git / "hooks" / "post-commit"
    script = "cd sub && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git checkout -q -b mine"
    assert (await run(sandbox, box, script, works_in(box))).exit_code != 0, "it is protected until it is given"

    sandbox.give_repository(git, (git.lstat().st_dev, git.lstat().st_ino))

    assert (await run(sandbox, box, script, works_in(box))).exit_code == 0
    for attack in (
        f"echo x > {hook}",
        "git -C sub config core.fsmonitor ./x",
        "mv sub old",
        "mv sub/.git old",
        "rm -rf sub",
    ):
        assert (await run(sandbox, box, attack, works_in(box))).exit_code != 0, attack
    assert not hook.exists()
    assert "fsmonitor" not in (git / "config").read_text()

    git.rename(box.workspace / "moved")
    git.mkdir()
    assert not sandbox.repositories, "another folder of that name is another repository"
    await sandbox.aclose()


async def test_protected_sibling_of_an_approved_file_stays_closed(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    folder = box.outside / "folder"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".envrc").write_text("old")
    script = f"cd {folder}; echo x >new; echo x >.envrc; echo x >.git/hooks/pre-commit; mkdir .panpan"
    await run(sandbox, box, script, works_in(box, folder / "new"))
    assert (folder / ".envrc").read_text() == "old"
    assert list((folder / ".git" / "hooks").iterdir()) == []
    assert not (folder / ".panpan").exists()
    await sandbox.aclose()


async def test_approved_place_that_became_a_link_is_not_open(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    opened = box.workspace / "sub" / "file"
    (box.workspace / "sub").symlink_to("../outside")
    await run(sandbox, box, "echo evil >sub/file", works_in(box, opened))
    assert (box.outside / "file").read_text() == "untouched\n"
    await sandbox.aclose()


async def test_workspace_cannot_be_moved_with_its_parent(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    inner = box.workspace / "src" / "inner"
    inner.mkdir()
    bounds = Bounds(is_read_only=False, roots=[inner, box.workspace])
    ended = await run(sandbox, box, "mv src away; mkdir -p src/inner/.git && echo evil >src/inner/.git/config", bounds)
    assert ended.exit_code != 0
    assert not (box.workspace / "away").exists()
    assert not (inner / ".git").exists()
    await sandbox.aclose()


async def test_panpan_home_cannot_be_moved_with_its_parent(box: Box) -> None:
    home = box.workspace / "src" / "conf" / "home"
    home.mkdir(parents=True)
    (home / "settings.toml").write_text("own")
    sandbox = CommandSandbox(is_on=True, home=home, find=Found(box.sandbox))
    script = "mv src/conf src/away; mkdir -p src/conf/home; echo evil >src/conf/home/settings.toml"
    await run(sandbox, box, script, works_in(box))
    assert (home / "settings.toml").read_text() == "own"
    await sandbox.aclose()


async def test_protected_file_is_found_among_any_number_of_files(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    for number in range(2000):
        (box.workspace / f"{number}").touch()
    for name in (".envrc", "Jenkinsfile", ".zshrc"):
        (box.workspace / name).write_text("old")
    await run(sandbox, box, "for name in .envrc Jenkinsfile .zshrc; do echo new >$name; done", works_in(box))
    assert {(box.workspace / name).read_text() for name in (".envrc", "Jenkinsfile", ".zshrc")} == {"old"}
    await sandbox.aclose()


async def test_temporary_folder_works_as_a_part_of_the_workspace(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    bounds = Bounds(is_read_only=False, roots=[box.workspace, sandbox.temporary])
    ended = await run(sandbox, box, 'f=$(mktemp) && cat <<<hello >"$f" && cat "$f"; ls -A "$TMPDIR"', bounds)
    first, *rest = ended.stdout.decode().split()
    assert first == "hello"
    assert len(rest) == 1
    await sandbox.aclose()


async def test_own_files_are_written_in_any_box(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, home=box.outside, find=Found(box.sandbox))
    bounds = Bounds(is_read_only=True, own_files=[box.outside / "file"])
    await run(sandbox, box, f"echo new > {box.outside}/file; echo new > {box.outside}/beside", bounds)
    assert (box.outside / "file").read_text() == "new\n"
    assert not (box.outside / "beside").exists()
    await sandbox.aclose()


async def test_folders_of_the_settings_can_be_changed(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, writable=[box.outside], find=Found(box.sandbox))
    await run(sandbox, box, f"echo new > {box.outside}/folder/new", works_in(box))
    assert (box.outside / "folder" / "new").read_text() == "new\n"
    await sandbox.aclose()


async def test_sandbox_lookup_and_warning_happen_once() -> None:
    found = Found(None, ("bubblewrap cannot be used: no", "Landlock cannot be used: no"))
    sandbox = CommandSandbox(is_on=True, find=found)
    assert await sandbox.is_missing()
    warning = await sandbox.take_warning()
    assert warning is not None
    assert warning.startswith(
        "no sandbox works here, so allowed commands run with all your rights: bubblewrap cannot be used: no;"
    )
    assert await sandbox.take_warning() is None
    assert found.times == 1


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_commands_leave_no_descriptor_open(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    await run(sandbox, box, "true", works_in(box))
    before = descriptors()

    for _ in range(5):
        await run(sandbox, box, "true", works_in(box))

    assert descriptors() == before


@pytest.mark.parametrize("free", [0, 1, 2])
async def test_descriptor_shortage_is_reported_and_starts_nothing(box: Box, free: int) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox))
    await run(sandbox, box, "true", works_in(box))

    with all_open_but(free), pytest.raises(PanpanError, match=r"(?i)too many (open files|files are open)"):
        await run(sandbox, box, "touch src/ran", works_in(box))

    assert not (box.workspace / "src" / "ran").exists()
    assert (await run(sandbox, box, "true", works_in(box))).exit_code == 0


@contextmanager
def all_open_but(free: int) -> Iterator[None]:
    """Leave this process so many descriptors and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for fd in taken[:free]:
            os.close(fd)
        yield
    finally:
        for fd in taken[free:]:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
async def empty(tmp_path: Path) -> Box:
    """A workspace in which folders stand for all that is protected."""
    sandbox = await made("bubblewrap")
    for name in ("workspace", "outside"):
        (tmp_path / name).mkdir()
    return Box(sandbox, (tmp_path / "workspace").resolve(), (tmp_path / "outside").resolve())


async def test_places_of_a_starting_box_stay_while_others_end(empty: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(empty.sandbox))

    async with sandbox.boxed(["true"], child_environment(), empty.workspace, works_in(empty)):
        await run(sandbox, empty, "true", works_in(empty))
        meanwhile = names(empty.workspace)

    assert ".panpan" in meanwhile
    assert names(empty.workspace) == []


async def test_session_cleans_up_beside_the_call(empty: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(empty.sandbox))
    may_tidy, tidy = anyio.Event(), empty.sandbox.tidy

    async def held_up(needed: Collection[Path] = ()) -> None:
        await may_tidy.wait()
        await tidy(needed)

    monkeypatch.setattr(empty.sandbox, "tidy", held_up)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sandbox.keep_tidy)
        await anyio.wait_all_tasks_blocked()
        await run(sandbox, empty, "true", works_in(empty))
        assert ".panpan" in names(empty.workspace)
        may_tidy.set()
        await until(lambda: names(empty.workspace) == [])
        tasks.cancel_scope.cancel()


async def test_leftovers_of_another_box_stay_while_one_starts(empty: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(empty.sandbox))
    true, env = ["true"], child_environment()

    async with AsyncExitStack() as later:
        async with sandbox.boxed(true, env, empty.workspace, works_in(empty)) as first:
            await capture(first.argv, cwd=empty.workspace, env=first.env, timeout_s=60, pass_fds=first.pass_fds)
            second = await later.enter_async_context(sandbox.boxed(true, env, empty.workspace, works_in(empty)))
        made = await capture(second.argv, cwd=empty.workspace, env=second.env, timeout_s=60, pass_fds=second.pass_fds)

    assert (made.exit_code, made.stderr) == (0, b"")
    assert names(empty.workspace) == []


async def test_places_of_another_panpans_starting_box_stay(empty: Box, tmp_path: Path) -> None:
    home = tmp_path / "panpan"
    first = CommandSandbox(is_on=True, find=Found(empty.sandbox), home=home)
    second = CommandSandbox(is_on=True, find=Found(await made("bubblewrap")), home=home)
    true, env = ["true"], child_environment()

    async with AsyncExitStack() as later:
        async with first.boxed(true, env, empty.workspace, works_in(empty)) as start:
            await capture(start.argv, cwd=empty.workspace, env=start.env, timeout_s=60, pass_fds=start.pass_fds)
            start = await later.enter_async_context(second.boxed(true, env, empty.workspace, works_in(empty)))
        await first.aclose()
        meanwhile = names(empty.workspace)
        ended = await capture(start.argv, cwd=empty.workspace, env=start.env, timeout_s=60, pass_fds=start.pass_fds)

    assert ".panpan" in meanwhile
    assert (ended.exit_code, ended.stderr) == (0, b"")
    assert names(empty.workspace) == []
    await second.aclose()


async def test_empty_folder_of_the_user_stays(empty: Box, tmp_path: Path) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(empty.sandbox), home=tmp_path / "panpan")
    (empty.workspace / ".git").mkdir()

    await run(sandbox, empty, "touch .git/x", works_in(empty))
    await sandbox.aclose()

    assert names(empty.workspace) == [".git"]


@pytest.mark.parametrize("goes_on", [True, False])
async def test_places_of_an_outliving_command_are_left_to_the_next(empty: Box, goes_on: bool) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(empty.sandbox))
    bounds = replace(works_in(empty), may_outlive=True)

    with anyio.CancelScope() as session:
        async with sandbox.boxed(["true"], child_environment(), empty.workspace, bounds):
            await run(sandbox, empty, "true", works_in(empty))
            session.cancel()
            await anyio.lowlevel.checkpoint()
    at_its_end = names(empty.workspace)
    sandbox.leave_behind(sandbox.leavings if goes_on else ())
    await sandbox.aclose()

    assert ".panpan" in at_its_end
    assert (names(empty.workspace) == at_its_end) is goes_on


async def test_disabled_sandbox_starts_commands_unchanged(tmp_path: Path) -> None:
    found = Found(None)
    sandbox = CommandSandbox(is_on=False, find=found)
    async with sandbox.boxed(["true"], {"A": "1"}, tmp_path, Bounds(is_read_only=False)) as start:
        pass
    assert (start.argv, start.env, start.profile) == (["true"], {"A": "1"}, None)
    assert not await sandbox.is_missing()
    assert await sandbox.take_warning() is None
    await sandbox.aclose()
    assert found.times == 0


async def test_better_sandbox_that_does_not_work_is_named(box: Box) -> None:
    sandbox = CommandSandbox(is_on=True, find=Found(box.sandbox, ("bubblewrap cannot be used: it is not installed",)))
    warning = await sandbox.take_warning()
    assert warning == f"commands run in the sandbox {box.sandbox.name}: bubblewrap cannot be used: it is not installed"


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("/tmp/no-such-file", "/tmp"),
        ("/usr/share/no-such-file", "/usr/share"),
        ("/etc/no-such-file", None),
        ("/no-such-file", None),
        ("/proc/no-such-file", None),
        ("/usr/share/.git/hooks/no-such-file", None),
    ],
)
def test_folder_to_open_is_the_parent_of_a_missing_file(place: str, folder: str | None) -> None:
    assert folder_to_open(Path(place)) == (Path(folder) if folder else None)


def test_home_is_not_opened_for_a_file_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "users" / "me"))
    (tmp_path / "users" / "me" / "work").mkdir(parents=True)
    assert folder_to_open(tmp_path / "users" / "me" / "new") is None
    assert folder_to_open(tmp_path / "users" / "new") is None
    assert folder_to_open(tmp_path / "users" / "me" / "work" / "new") == tmp_path / "users" / "me" / "work"


KEPT = """
for each in "$1/file" "$1/new" "$1/other/file" "$1/own/../file" "$2/file"; do echo evil > "$each"; done
ln "$1/file" "$3/hard" && echo evil > "$3/hard"
ln -s "$1/file" "$3/soft" && echo evil > "$3/soft"
mv "$1/file" "$1/moved"; mv "$1/other" "$3/other"; mv "$1" "$2/moved"; rm -f "$1/file"
cat "$1/file" > "$3/read"
"""


async def test_kept_folder_is_readable_and_only_the_root_in_it_changes(box: Box) -> None:
    kept = box.outside / "kept"
    own = kept / "own" / "sub"
    for folder in (own, kept / "other"):
        folder.mkdir(parents=True)
    for file in (kept / "file", kept / "other" / "file"):
        file.write_text("kept\n")
    sandbox = CommandSandbox(is_on=True, kept=[kept], find=Found(box.sandbox))
    bounds = Bounds(is_read_only=False, roots=[box.workspace, box.outside, own.parent])
    script = f"set -- {kept} {box.outside} {own}\n{KEPT}"

    await run(sandbox, box, script, bounds)

    assert sorted(
        str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file() and own not in path.parents
    ) == [
        "file",
        "other/file",
    ]
    assert {(kept / "file").read_text(), (kept / "other" / "file").read_text()} == {"kept\n"}
    assert (own / "read").read_text() == "kept\n", "it may be read, and written where the root is"
    assert (box.outside / "file").read_text() == "evil\n", "the folder around it is open"
    await sandbox.aclose()
