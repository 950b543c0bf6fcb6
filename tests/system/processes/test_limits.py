"""Limits on real processes; what could get out of hand runs in a box with process numbers of its own."""

import json
import os
import resource
import secrets
import signal
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.config.project_limits import limits_of
from panpan.config.settings import Settings
from panpan.system.processes.limits import GB, Limits, limit_command, limit_note, limits_trial
from panpan.system.processes.process import ProcessEnded, run_process
from tests.needed_programs import need
from tests.system.backends import on_both_backends, run_on

NO_LIMITS = Limits(memory_bytes=None, processes=None, file_bytes=None, cpu_s=None)
ENV = {"PATH": os.environ["PATH"]}
BOX = ["bwrap", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
BOX += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--"]


def run(argv: list[str], limits: Limits, cwd: Path = Path("/")) -> subprocess.CompletedProcess[str]:
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    found = subprocess.run(limit_command(argv, limits), cwd=cwd, env=ENV, text=True, check=False, timeout=60, **both)
    code = found.returncode if found.returncode >= 0 else 128 - found.returncode
    return subprocess.CompletedProcess(argv, code, found.stdout)


def as_ordinary_user(argv: list[str]) -> list[str]:
    """The number of processes is not held against root. Each time it is another user, whom nothing else counts for."""
    user = 100_000 + secrets.randbelow(10**9)
    return ["setpriv", f"--reuid={user}", "--clear-groups", *argv] if os.geteuid() == 0 else argv


def test_limited_command_is_otherwise_unchanged(tmp_path: Path) -> None:
    script = 'printf "%s|" "$@" "$MARK" "$PWD"; cat; exit 7'
    argv = ["bash", "-c", script, "bash", "a b", "'", '"$HOME"', "", "\n"]

    found = subprocess.run(
        limit_command(argv, Limits(memory_bytes=GB, cpu_s=60)),
        cwd=tmp_path,
        env=ENV | {"MARK": "m"},
        input="given",
        capture_output=True,
        text=True,
        check=False,
    )

    assert (found.stdout, found.stderr) == (f'a b|\'|"$HOME"||\n|m|{tmp_path}|given', "")
    assert found.returncode == 7


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_limits_are_those_of_the_system(shell: str) -> None:
    need("prlimit")
    limits = Limits(memory_bytes=3 * GB, processes=1000, file_bytes=5 * GB, cpu_s=77)
    prelude, *rest = limit_command(["prlimit", "--raw", "--noheadings", "--output", "RESOURCE,SOFT,HARD"], limits)[1:]

    found = subprocess.run([shell, prelude, *rest], env=ENV, capture_output=True, text=True, check=True)
    table = {name: values for name, *values in map(str.split, found.stdout.splitlines())}

    assert found.stderr == ""
    assert table["DATA"] == [str(3 * GB // 1024 * 1024)] * 2
    assert int(table["FSIZE"][0]) in (
        5 * GB // 512 * 512,
        5 * GB // 512 * 1024,
    )  # bash counts in 1,024 where it is bash
    assert table["CPU"] == ["77", "87"]
    assert table["CORE"][0] == "0"
    assert int(table["NPROC"][0]) == 1000 + (limits.already_running or 0)


def test_limits_hold_without_dev_null(tmp_path: Path) -> None:
    need("bwrap")
    without_devices = ["bwrap", "--ro-bind", "/", "/", "--ro-bind", str(tmp_path), "/dev", "--"]
    argv = limit_command(["bash", "-c", "ulimit -S -f; ulimit -H -f"], Limits(file_bytes=GB))

    found = subprocess.run([*without_devices, *argv], env=ENV, capture_output=True, text=True, check=False)

    assert found.stdout == f"{GB // 512 * 512 // 1024}\n" * 2


WITHOUT_LIMITS = 'ulimit() { case "$1" in -S) [ "$2" = -c ];; *) false;; esac; }'
"""A shell that can set none but that on core dumps."""
ALL = Limits(memory_bytes=3 * GB, processes=1000, file_bytes=5 * GB, cpu_s=77)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("key", ["memory_gb", "processes", "file_gb", "cpu_s"])
def test_required_limit_that_cannot_be_set_ends_the_command(shell: str, key: str) -> None:
    script, *rest = limit_command(["echo", "ran"], replace(ALL, required=frozenset({key})))[2:]

    found = subprocess.run(
        [shell, "-c", f"{WITHOUT_LIMITS}; {script}", *rest], env=ENV, capture_output=True, text=True, check=False
    )

    assert (found.returncode, found.stdout) == (126, "")
    assert found.stderr == (
        f"panpan: the limit limits.{key} could not be set, so the command did not run; remove it from your settings\n"
    )
    assert limit_note(found.returncode, found.stderr, ALL) is None


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_default_limit_that_cannot_be_set_is_left_out(shell: str) -> None:
    script, *rest = limit_command(["echo", "ran"], Limits())[2:]

    found = subprocess.run(
        [shell, "-c", f"{WITHOUT_LIMITS}; {script}", *rest], env=ENV, capture_output=True, text=True, check=False
    )

    assert (found.returncode, found.stdout, found.stderr) == (0, "ran\n", "")


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_trial_names_the_limits_that_cannot_be_set(shell: str) -> None:
    script = limits_trial(ALL)[-1]

    lacking = subprocess.run([shell, "-c", f"{WITHOUT_LIMITS}; {script}"], env=ENV, capture_output=True, check=True)
    here = subprocess.run([shell, "-c", script], env=ENV, capture_output=True, check=True)

    assert sorted(lacking.stdout.decode().split()) == ["cpu_s", "file_gb", "memory_gb", "processes"]
    assert (here.stdout, here.stderr) == (b"", b"")


PRINTS_ARGV = """
import json
from panpan.system.processes.limits import Limits, limit_command
print(json.dumps(limit_command(["bash", "-c", "ulimit -S -t; ulimit -H -t"], Limits(cpu_s=77, required={"cpu_s"}))))
"""


@pytest.mark.parametrize(("soft", "hard", "kept"), [(80, 80, "77 80"), (70, 80, "70 80"), (80, 99, "77 87")])
def test_required_time_keeps_a_tighter_limit(soft: int, hard: int, kept: str) -> None:
    need("prlimit")
    need("setpriv")
    within = ["prlimit", f"--cpu={soft}:{hard}"]

    argv = json.loads(subprocess.run([*within, sys.executable, "-c", PRINTS_ARGV], stdout=-1, check=True).stdout)
    found = subprocess.run([*within, *as_ordinary_user(argv)], env=ENV, capture_output=True, text=True, check=False)

    assert (found.stdout.split(), found.stderr) == (kept.split(), "")


def test_tighter_limit_stays() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, hard))
    try:
        found = run(["bash", "-c", "ulimit -S -f"], Limits(file_bytes=2 * 10**9))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert int(found.stdout) == 10**9 // 1024


def test_commands_are_the_first_to_end_without_memory() -> None:
    own = int(Path("/proc/self/oom_score_adj").read_text())

    found = run(["cat", "/proc/self/oom_score_adj"], NO_LIMITS)

    assert int(found.stdout) == max(own, 300)


def test_limits_switched_off_change_nothing() -> None:
    kinds = "-d -f -t -u -v -s -n -l"
    script = f"for kind in {kinds}; do ulimit -S $kind; ulimit -H $kind; done"
    before = subprocess.run(["bash", "-c", script], env=ENV, capture_output=True, text=True, check=True)

    assert run(["bash", "-c", script], NO_LIMITS).stdout == before.stdout


def test_default_limits_bound_no_memory_and_no_time() -> None:
    script = "for kind in -d -v -t; do ulimit -S $kind; done"
    before = subprocess.run(["bash", "-c", script], env=ENV, capture_output=True, text=True, check=True)

    assert run(["bash", "-c", script], Limits()).stdout == before.stdout


WRITES = "open('f', 'wb').write(bytes(3_000_000))"


@pytest.mark.parametrize(
    "argv",
    [["head", "-c", "3000000", "/dev/zero"], ["bash", "-c", "head -c 3000000 /dev/zero; exit"], None],
    ids=["killed", "in a shell", "an error"],
)
def test_too_large_file_ends_with_a_note(argv: list[str] | None, tmp_path: Path) -> None:
    limits = Limits(file_bytes=1_000_000)

    if argv is None:
        found = run([sys.executable, "-c", WRITES], limits, tmp_path)
        written = tmp_path / "f"
    else:
        written = tmp_path / "g"
        found = run(["bash", "-c", '"$@" >g', "bash", *argv], limits, tmp_path)
    note = limit_note(found.returncode, found.stdout, limits)

    assert found.returncode != 0
    assert written.stat().st_size <= 1_000_000
    assert note == "a command may write files of at most 1 MB (setting limits.file_gb)"


HOGS = {
    "Python": [sys.executable, "-c", "hog = []\nwhile True: hog.append(bytearray(10_000_000))"],
    "tail": ["tail", "/dev/zero"],
    "awk": ["awk", 'BEGIN { s = "0123456789abcdef"; while (1) s = s s }'],
}


@pytest.mark.parametrize("hog", HOGS.values(), ids=HOGS.keys())
def test_memory_hog_ends_with_a_note(hog: list[str]) -> None:
    need("bwrap")
    limits = Limits(memory_bytes=300_000_000)

    found = run([*BOX, *hog], limits)

    assert found.returncode != 0
    assert limit_note(found.returncode, found.stdout, limits) == (
        "a process may use 300 MB of memory (setting limits.memory_gb)"
    )


def test_long_computation_ends_with_a_note() -> None:
    limits = Limits(cpu_s=1)

    found = run(["sh", "-c", "while :; do :; done"], limits)

    assert found.returncode == 128 + signal.SIGXCPU
    assert limit_note(found.returncode, found.stdout, limits) == (
        "a process may use 1 s of processor time (setting limits.cpu_s)"
    )


BOMBS = {
    "fork bomb": "f() { f | f & }; f; sleep 60",
    "many children": "while :; do sleep 60 & done",
    "own sessions": "while :; do setsid sleep 60 & done",
}


@on_both_backends
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_fork_bomb_is_held_and_ends_with_a_note(backend: str, bomb: str) -> None:
    need("bwrap")
    need("setpriv")
    # Nothing else runs as the other user that the bomb of root gets.
    limits = Limits(processes=60, already_running=0) if os.geteuid() == 0 else Limits(processes=60)

    async def main() -> None:
        most = (limits.already_running or 0) + 60
        only_within = f"[ $(ulimit -u) -le {most} ] || exit; {bomb}"  # or a fault here would take the machine down
        argv = [*BOX, *as_ordinary_user(limit_command(["bash", "-c", only_within], limits))]
        output = ""
        async with aclosing(run_process(argv, cwd=Path("/"), env=ENV, timeout_s=60, kill_grace_s=0)) as items:
            async for item in items:
                output += "" if isinstance(item, ProcessEnded) else item.decode()
                if "unavailable" in output:
                    break

        note = limit_note(128 + signal.SIGKILL, output, limits)
        assert note == "a command may have 60 processes and threads (setting limits.processes)"

    run_on(backend, main)


@pytest.mark.parametrize(
    ("exit_code", "output"),
    [
        (1, "RuntimeError: can't start new thread"),
        (254, "bash: fork: retry: Resource temporarily unavailable"),
        (2, "sh: 1: Cannot fork"),
        (1, "BlockingIOError: [Errno 11] Resource temporarily unavailable"),
        (1, "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 8: Resource temporarily unavailable"),
        (1, "thread 'main' panicked: failed to spawn thread: Os { code: 11, kind: WouldBlock }"),
        (1, "Error: spawn EAGAIN"),
    ],
)
def test_programs_denied_more_processes_are_known(exit_code: int, output: str) -> None:
    note = limit_note(exit_code, output, Limits(processes=1234))

    assert note == "a command may have 1,234 processes and threads (setting limits.processes)"


@pytest.mark.parametrize(
    "output", ["MemoryError", "std::bad_alloc", "Cannot allocate memory", "java.lang.OutOfMemoryError: Java heap space"]
)
def test_limit_note_blames_memory_only_if_it_is_limited(output: str) -> None:
    assert limit_note(1, output, Limits()) is None
    assert limit_note(1, output, Limits(memory_bytes=2 * GB)) == (
        "a process may use 2 GB of memory (setting limits.memory_gb)"
    )


@pytest.mark.parametrize(
    ("exit_code", "output"),
    [
        (0, "MemoryError; can't start new thread; File too large"),
        (1, "AssertionError"),
        (1, "read: Resource temporarily unavailable"),
        (124, ""),
        (139, "Segmentation fault"),
    ],
)
def test_limit_note_is_none_for_other_ends(exit_code: int, output: str) -> None:
    assert limit_note(exit_code, output, Limits(memory_bytes=GB, cpu_s=1)) is None


def test_limit_note_suspects_memory_for_a_killed_command() -> None:
    note = limit_note(128 + signal.SIGKILL, "", Limits())

    assert note is not None
    assert "memory" in note


def test_settings_give_the_limits() -> None:
    settings = {"limits": {"memory_gb": 1.5, "processes": "off", "file_gb": 3, "cpu_s": 60}}

    chosen = limits_of(Settings.model_validate(settings).limits)

    required = frozenset({"memory_gb", "processes", "file_gb", "cpu_s"})
    assert chosen == Limits(memory_bytes=1_500_000_000, processes=None, file_bytes=3 * GB, cpu_s=60, required=required)
    assert limits_of(Settings().limits) == Limits()
    assert limits_of(Settings.model_validate({"limits": {"file_gb": "off"}}).limits).file_bytes is None
