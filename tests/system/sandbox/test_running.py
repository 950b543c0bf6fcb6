import os
import secrets
import sys
import tracemalloc
from collections.abc import Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import anyio
import pytest

from panpan.system.processes.process import Child, ProcessEnded, capture, run_child
from panpan.system.processes.process_table import ProcessTree
from panpan.system.sandbox.profile import read_only, with_loader_inside
from tests.needed_programs import need
from tests.system.backends import until
from tests.system.sandbox.boxes import ENV, Box, about_linux, captured, running

ENDINGS = {
    "done": "echo out; echo err >&2",
    "failed": "echo out; exit 7",
    "killed": "kill -KILL $$",
    "asked to end": "kill -TERM $$",
    "stopped by a closed pipe": "yes | head -1; exit ${PIPESTATUS[0]}",
    "no such program": "no-such-program-here",
    "not executable": "/etc/passwd",
    "without a newline": "printf 'no newline \\377\\000 here'",
}


@pytest.mark.parametrize("script", ENDINGS.values(), ids=ENDINGS.keys())
async def test_output_and_ending_are_as_without_the_box(box: Box, script: str) -> None:
    argv = ["/bin/bash", "-c", script]

    bare = await capture(argv, cwd=box.workspace, env=ENV, timeout_s=20)

    assert await box.start(argv) == bare


ODD_WORDS = ["", " ", "a b", "'", '"$HOME"', "*", "\n", "--", "-c", "--ro-bind", "$1", "\\", "é", "\udcff"]


async def test_arguments_and_environment_are_as_without_the_box(box: Box) -> None:
    code = "import os, sys; print(ascii(sys.argv[1:])); print(sorted(os.environ.items())); print(os.getcwd())"
    argv = [sys.executable, "-I", "-c", code, *ODD_WORDS]
    env = {name: value for name, value in ENV.items() if name != "LANG"} | {"PWD": str(box.workspace), "ODD": "a\nb"}

    bare = await capture(argv, cwd=box.workspace, env=env, timeout_s=20)
    with box.sandbox.wrap(argv, box.profile, box.workspace) as wrapped:
        boxed = await captured(wrapped, cwd=box.workspace, env=env)

    assert without_marks(boxed.stdout) == without_marks(bare.stdout)
    assert boxed.stderr == b""


def without_marks(output: bytes) -> list[bytes]:
    return [part for part in output.replace(b"), (", b"\n").splitlines() if b"PANPAN_PROCESS_MARKS" not in part]


@about_linux
async def test_workspace_library_is_loaded_inside_only(box: Box, tmp_path: Path) -> None:
    need("cc")
    source, library, witness = box.workspace / "src" / "l.c", box.workspace / "src" / "l.so", tmp_path / "witness"
    witness.write_text("")
    source.write_text(
        "#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void loaded(void)\n"
        f'{{ write(2, "loaded\\n", 7); int fd = open("{witness}", O_WRONLY); write(fd, "out", 3); }}\n'
    )
    await capture(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], cwd=tmp_path, env=ENV, timeout_s=60)
    env = {**ENV, "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(library.parent)}

    argv, outside = with_loader_inside(["/bin/sh", "-c", "echo $LD_LIBRARY_PATH"], env)
    with box.sandbox.wrap(argv, box.profile, box.workspace) as wrapped:
        ended = await captured(wrapped, cwd=box.workspace, env=outside)

    assert (ended.stdout.decode().strip(), ended.stderr) == (str(library.parent), b"loaded\n")
    assert witness.read_text() == ""


def test_loader_of_macos_reads_its_variables_inside_only() -> None:
    argv, outside = with_loader_inside(["a"], {"DYLD_LIBRARY_PATH": "/x", "HOME": "/h"})

    assert (argv, outside) == (["/usr/bin/env", "DYLD_LIBRARY_PATH=/x", "a"], {"HOME": "/h"})


def test_arguments_without_loader_variables_are_unchanged() -> None:
    assert with_loader_inside(["a", "b"], ENV) == (["a", "b"], ENV)


NAMESPACES = """
import ctypes, errno, os, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def told(result):
    return "made" if result >= 0 else errno.errorcode[ctypes.get_errno()]
print(told(libc.unshare(0x10000000)), told(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)), told(libc.setns(0, 0)))
thread = threading.Thread(target=lambda: print("thread"))
thread.start()
thread.join()
print(subprocess.run(["/bin/echo", "child"], capture_output=True, text=True).stdout, end="")
os.waitpid(os.posix_spawn("/bin/echo", ["echo", "spawned"], {}), 0)
"""


@about_linux
async def test_namespaces_are_refused_but_threads_and_children_work(box: Box) -> None:
    ended = await box.start([sys.executable, "-u", "-c", NAMESPACES])

    assert ended.stdout.decode().splitlines() == ["EPERM EPERM EPERM", "thread", "child", "spawned"], ended.stderr


@about_linux
async def test_box_has_only_the_usual_descriptors_open(box: Box) -> None:
    ended = await box.run("cd /proc/self/fd && echo *")  # the shell itself looks

    assert ended.stdout in (b"0 1 2\n", b"0 1 2 3\n")  # 3 is the folder that is looked at


async def test_missing_program_is_reported_with_a_failure(box: Box) -> None:
    ended = await box.start(["/no/such/program"])

    assert ended.exit_code != 0
    assert b"/no/such/program" in ended.stderr


@about_linux
async def test_missing_working_directory_runs_nothing(box: Box) -> None:
    with box.sandbox.wrap(["/bin/sh", "-c", "echo ran"], box.profile, box.workspace / "gone") as wrapped:
        ended = await captured(wrapped)

    assert ended.exit_code != 0
    assert ended.stdout == b""


def with_token(token: str) -> list[str]:
    """Return the processes that have the token among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and token in (
                words := (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            ):
                found.append(" ".join(words))
    return found


# Each leaves `sleep $1` behind, in a way in which it does not end with its parent.
SURVIVORS = {
    "child": "sleep $1 & wait",
    "ignores TERM": "(trap '' TERM; sleep $1) & wait",
    "own session": "setsid sleep $1 & wait",
    "orphan in its own session": "(setsid sleep $1 &); sleep 600",
    "twice away, ignores TERM": "(setsid sh -c '(trap \"\" TERM; setsid sleep $0) &' $1 &); sleep 600",
    "silent daemon": "(setsid sleep $1 </dev/null >/dev/null 2>&1 &); sleep 600",
    "silent daemon that clears its environment": (
        "(env -i setsid sh -c '(setsid sleep $0 &)' $1 </dev/null >/dev/null 2>&1 &); sleep 600"
    ),
}


def is_asleep(token: str) -> bool:
    return any(line.startswith(f"sleep {token}") for line in with_token(token))


@about_linux
@pytest.mark.parametrize("ending", ["time-out", "interrupt"])
async def test_boxed_processes_never_outlive_a_timeout_or_interrupt(box: Box, ending: str) -> None:
    script_by_token = {f"6{secrets.randbelow(10**9):09}": script for script in SURVIVORS.values()}
    endings: list[ProcessEnded] = []

    async def run(token: str, script: str) -> None:
        argv = ["/bin/bash", "-c", script, "bash", token]
        with box.sandbox.wrap(argv, box.profile, box.workspace) as wrapped:
            child = await Child.start(
                wrapped.argv, cwd=box.workspace, env=ENV, has_stderr=False, pass_fds=wrapped.pass_fds
            )
            if ending == "time-out":
                await until(partial(is_asleep, token))  # its time begins behind that
            process = run_child(child, timeout_s=0.1 if ending == "time-out" else None, kill_grace_s=0.2)
            async with aclosing(process) as items:
                endings.extend([item async for item in items if isinstance(item, ProcessEnded)])

    async with anyio.create_task_group() as task_group:
        for token, script in script_by_token.items():
            task_group.start_soon(run, token, script)
        if ending == "interrupt":
            for token in script_by_token:
                await until(partial(is_asleep, token))
            task_group.cancel_scope.cancel()

    assert [token for token in script_by_token if with_token(token)] == []
    assert [ended.timed_out for ended in endings] == [True] * (len(SURVIVORS) if ending == "time-out" else 0)


LEFT_BEHIND = "(setsid sleep $1 </dev/null >/dev/null 2>&1 &); sleep 0.2"
LEFT_AND_SHED = "(env -i setsid sleep $1 </dev/null >/dev/null 2>&1 &); sleep 0.2"


@about_linux
@pytest.mark.parametrize("script", [LEFT_BEHIND, LEFT_AND_SHED], ids=["daemon", "daemon without environment"])
async def test_background_processes_end_with_the_session(box: Box, script: str) -> None:
    if script == LEFT_AND_SHED and any("outlive" in limit for limit in box.sandbox.limits):
        pytest.skip("a limit of this sandbox, which it tells")
    session = ProcessTree()
    token = f"6{secrets.randbelow(10**9):09}"

    with box.sandbox.wrap(["/bin/bash", "-c", script, "bash", token], box.profile, box.workspace) as wrapped:
        process = running(wrapped, cwd=box.workspace, env=session.marked(ENV), timeout_s=30)
        async with aclosing(process) as items:
            ended = [item async for item in items][-1]
    was_left_alone = with_token(token)
    remaining = await session.end(0.1)

    assert ended == ProcessEnded(0, timed_out=False)
    assert was_left_alone
    assert remaining == []
    assert with_token(token) == []


STARTER = """
import asyncio, subprocess, sys
from pathlib import Path
from panpan.system.sandbox.choice import find_sandbox
from panpan.system.sandbox.landlock import Landlock, landlock_version
from panpan.system.sandbox.profile import workspace_write

workspace = Path(sys.argv[1])
later = ["sh", "-c", 'until test -e "$0"; do sleep 0.01; done; exec "$@"', sys.argv[2]]
is_landlock = sys.argv[3] == "Landlock"
sandbox = Landlock(landlock_version()) if is_landlock else asyncio.run(find_sandbox()).sandbox
with sandbox.wrap(["touch", "src/ran"], workspace_write([workspace]), workspace) as boxed:
    subprocess.Popen([*later, *boxed.argv], cwd=workspace, pass_fds=boxed.pass_fds, start_new_session=True)
"""


async def test_box_is_made_although_its_starter_has_ended(box: Box, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    starter = [sys.executable, "-c", STARTER, str(box.workspace), str(go_on), box.sandbox.name]

    await anyio.run_process(starter, env=ENV, stdout=DEVNULL, stderr=DEVNULL)  # which the box inherits, and keeps open
    go_on.touch()

    await until((box.workspace / "src" / "ran").exists)


async def test_output_of_a_gigabyte_costs_constant_memory(box: Box) -> None:
    size = 1_000_000_000
    received = 0

    with box.sandbox.wrap(["head", "-c", str(size), "/dev/zero"], read_only(), box.workspace) as wrapped:
        tracemalloc.start()
        try:
            async with aclosing(running(wrapped, cwd=box.workspace, timeout_s=100)) as items:
                async for item in items:
                    received += len(item) if isinstance(item, bytes) else 0
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert received == size
    assert peak < 10_000_000


async def test_usual_devices_work(box: Box) -> None:
    script = (
        "echo x > /dev/null && cat /dev/null && head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c"
        " && echo x > /dev/stdout && echo x > /dev/stderr && cat < /dev/stdin && { ! echo x > /dev/full; } 2>/dev/null"
        " && cat <(echo x) && cat <<< y"
    )

    ended = await box.run(script)

    assert ended.stdout == b"3\n3\nx\nx\ny\n"
    assert (ended.stderr, ended.exit_code) == (b"x\n", 0)


@pytest.fixture
def work(box: Box, tmp_path: Path) -> Mapping[str, Path]:
    """A project in the workspace, and a folder for temporary files."""
    project, temporary = box.workspace / "project", tmp_path / "temporary"
    (project / "tests").mkdir(parents=True)
    temporary.mkdir()
    return {"project": project, "temporary": temporary}


async def run_at_work(box: Box, work: Mapping[str, Path], *argv: str) -> str:
    profile, env = box.profile.also_writing(work["temporary"]), {**ENV, "TMPDIR": str(work["temporary"])}
    with box.sandbox.wrap(argv, profile, work["project"]) as wrapped:
        ended = await captured(wrapped, cwd=work["project"], env=env, timeout_s=100)
    assert ended.exit_code == 0, ended
    return (ended.stdout + ended.stderr).decode()


async def test_git_answers_and_cannot_write_its_metadata(box: Box) -> None:
    need("git")
    names = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    commit = "git -c user.name=n -c user.email=e@x commit -qam"
    script = f"git init -q && git add . && {commit} first && echo y >> src/module.py"
    await capture(["sh", "-c", script], cwd=box.workspace, env={**ENV, **names}, timeout_s=20)
    ask = "git status --short && git log --format=%s && git diff --stat && git stash list"

    asked = await box.run(ask)
    committed = await box.run(f"{commit} second")
    head = await box.run("git log --format=%s")

    assert (asked.exit_code, asked.stderr) == (0, b"")
    assert asked.stdout.startswith(b" M src/module.py\nfirst\n")
    assert committed.exit_code != 0
    assert head.stdout == b"first\n"


async def test_python_pytest_and_many_processes_work(box: Box, work: Mapping[str, Path]) -> None:
    (work["project"] / "tests" / "test_it.py").write_text(
        "import multiprocessing, tempfile\n"
        "def double(x): return 2 * x\n"
        "def test_pool(tmp_path):\n"
        "    (tmp_path / 'x').write_text('x')\n"
        "    with tempfile.TemporaryFile() as file, multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "        file.write(b'x')\n"
        "        assert pool.map(double, [1, 2]) == [2, 4]\n"
    )

    said = await run_at_work(box, work, sys.executable, "-m", "pytest", "-q", "tests")

    assert "1 passed" in said
    assert list(work["project"].rglob("*.pyc"))


async def test_build_works(box: Box, work: Mapping[str, Path]) -> None:
    (work["project"] / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "made"\nversion = "1"\n'
    )
    (work["project"] / "made.py").write_text("x = 1\n")

    await run_at_work(box, work, sys.executable, "-m", "hatchling", "build", "-t", "wheel")

    assert [path.suffix for path in (work["project"] / "dist").iterdir()] == [".whl"]


async def test_compiler_works(box: Box, work: Mapping[str, Path]) -> None:
    need("cc")
    (work["project"] / "it.c").write_text("int main(void) { return 3; }\n")

    await run_at_work(box, work, "sh", "-c", "cc -o it it.c && { ./it; test $? = 3; }")

    assert os.access(work["project"] / "it", os.X_OK)
