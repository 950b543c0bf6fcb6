import os
import signal
import stat
from pathlib import Path

import pytest

from panpan.errors import ToolError
from panpan.system.processes.detached import exit_code_in, start_detached
from panpan.system.processes.process_table import (
    ProcessTree,
    RunningProcess,
    reap,
    reap_later,
    still_running,
    wait_for_exit,
)
from tests.system.backends import on_both_backends, run_on, until

ENV = {"PATH": os.environ["PATH"]}


class Started:
    """A command that was started in a folder."""

    def __init__(self, folder: Path, *argv: str, pass_fds: tuple[int, ...] = ()) -> None:
        self.output = folder / "out" / "task.txt"
        self.exit_file = folder / "task.exit"
        self.tree = ProcessTree()
        self.process: RunningProcess = start_detached(
            argv,
            cwd=folder,
            env=ENV,
            tree=self.tree,
            output=self.output,
            exit_file=self.exit_file,
            pass_fds=pass_fds,
        )

    async def ended(self) -> tuple[int | None, int | None]:
        """Wait, and return the code that it left and the one that the system tells."""
        await wait_for_exit(self.process)
        return exit_code_in(self.exit_file), reap(self.process.pid)


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208


@on_both_backends
def test_detached_command_writes_a_private_file_and_exit_code(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        before = descriptors()
        started = Started(
            tmp_path, "sh", "-c", 'echo "$0 in $(pwd -P)"; echo oops >&2; read x || echo empty; exit 7', "it"
        )

        assert await started.ended() == (7, 7)
        assert started.output.read_text() == f"it in {tmp_path}\noops\nempty\n"
        assert stat.S_IMODE(started.output.stat().st_mode) == 0o600
        assert stat.S_IMODE(started.exit_file.stat().st_mode) == 0o600
        assert descriptors() == before

    run_on(backend, main)


async def test_detached_command_gets_its_words_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "a 'b' $(touch no) \" `x`\n"
    folder.mkdir()
    words = ["$HOME", "a  b", "'", '"', "`touch no`", "-n", "\\", "", "é\n"]
    started = Started(folder, "printf", "[%s]", *words)

    assert await started.ended() == (0, 0)
    assert started.output.read_text() == "".join(f"[{word}]" for word in words)
    assert {path.name for path in folder.iterdir()} == {"out", "task.exit"}


async def test_detached_command_ended_by_a_signal_leaves_an_exit_code(tmp_path: Path) -> None:
    started = Started(tmp_path, "sh", "-c", "echo on; sleep 600")
    await until(lambda: started.output.read_bytes() == b"on\n")

    os.killpg(started.process.pid, signal.SIGTERM)

    assert await started.ended() == (143, 143)


async def test_detached_command_killed_with_its_shell_has_an_exit_code(tmp_path: Path) -> None:
    started = Started(tmp_path, "sleep", "600")

    assert await started.tree.end(0) == []

    assert await started.ended() == (None, 137)


async def test_detached_command_leads_its_own_marked_session(tmp_path: Path) -> None:
    started = Started(tmp_path, "sh", "-c", "setsid sleep 600 & sleep 600")
    await until(lambda: len([one for one in started.tree.members() if one.name == "sleep"]) == 2)

    members = started.tree.members()
    await started.tree.end(0)

    assert os.getsid(0) not in {member.session for member in members}
    assert all(started.tree.mark in member.marks for member in members)
    assert still_running(members) == []
    await started.ended()


async def test_detached_command_gets_signals_that_python_ignores(tmp_path: Path) -> None:
    started = Started(tmp_path, "sh", "-c", "kill -PIPE $$; echo ignored")

    code, _ = await started.ended()

    assert code == 128 + signal.SIGPIPE


async def test_detached_command_inherits_only_the_given_descriptors(tmp_path: Path) -> None:
    given, other = os.memfd_create("given"), os.memfd_create("other")
    os.write(given, b"hello")
    os.set_inheritable(other, False)
    try:
        started = Started(
            tmp_path, "sh", "-c", f"cat /proc/self/fd/{given}; test -e /proc/self/fd/{other}", pass_fds=(given,)
        )

        assert await started.ended() == (1, 1)
        assert started.output.read_text() == "hello"
    finally:
        os.close(given)
        os.close(other)


async def test_detached_command_reports_a_missing_folder_in_its_output(tmp_path: Path) -> None:
    tree = ProcessTree()
    process = start_detached(
        ["true"],
        cwd=tmp_path / "gone",
        env=ENV,
        tree=tree,
        output=tmp_path / "out.txt",
        exit_file=tmp_path / "exit",
    )
    await wait_for_exit(process)

    assert reap(process.pid) == 126
    assert "gone" in (tmp_path / "out.txt").read_text()


def test_detached_command_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    before = descriptors()
    with pytest.raises(ToolError, match="cannot start the command in the background: Argument list too long"):
        Started(tmp_path, "true", "x" * 3_000_000)
    with pytest.raises(ToolError, match=r"cannot start the command in the background: .*null"):
        Started(tmp_path, "true", "a\0b")
    assert descriptors() == before


@pytest.mark.parametrize("content", ["", "7", "x\n", "1 2\n"])
def test_exit_code_counts_only_if_complete(content: str, tmp_path: Path) -> None:
    (tmp_path / "exit").write_text(content)

    assert exit_code_in(tmp_path / "exit") is None


def test_exit_code_that_is_no_file_blocks_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "exit")

    assert exit_code_in(tmp_path / "exit") is None


async def test_abandoned_child_does_not_stay_as_a_zombie(tmp_path: Path) -> None:
    started = Started(tmp_path, "sleep", "600")

    reap_later(started.process.pid)
    await started.tree.end(0)

    await until(lambda: not Path(f"/proc/{started.process.pid}").exists())


async def test_end_of_a_process_that_is_no_child_is_seen(tmp_path: Path) -> None:
    started = Started(tmp_path, "sh", "-c", "sleep 600 & echo $!; wait")
    await until(lambda: any(one.name == "sleep" for one in started.tree.members()))  # it is called sh at first
    grandchild = next(one for one in started.tree.members() if one.name == "sleep")
    os.kill(grandchild.pid, signal.SIGKILL)

    await wait_for_exit(grandchild)

    assert still_running([grandchild]) == []
    await started.tree.end(0)
    await started.ended()
