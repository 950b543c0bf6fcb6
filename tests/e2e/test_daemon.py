"""A run by the daemon is what the same start does by itself, and it ends with its start in whatever way that ends."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.conftest import COMMAND, Panpan, finished, wait_until
from tests.e2e.running_daemon import Daemon, own_places, running_daemon
from tests.model_server import Hold, Reply, Text, call, say, serving
from tests.needed_programs import need
from tests.terminal_emulator.tmux import Tmux

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")

LOOK = """{ pwd; umask; { ulimit -aS; ulimit -aH; } | grep -v "(-u)"; nice
env | grep -v -e ^PANPAN_PROCESS_MARKS -e ^TMP -e ^_= -e ^PANPAN_SESSION | sort; } > look"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running_daemon() as running:
        yield running


def test_run_by_the_daemon_has_all_that_its_start_has(daemon: Daemon, panpan: Panpan, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"max_rounds": 7}), encoding="utf-8")
    looks, outputs = [], []
    served = daemon.facts["served"]
    for without in ("", "1"):
        with serving([call("Bash", {"command": LOOK}), say("Done.")]) as server, settings.open("rb") as opened:
            panpan.use(server)
            panpan.env["ANTHROPIC_BASE_URL"] = server.url
            panpan.env["MY_DATA"] = "here\nand there"
            fixed = ("--set", "receipts.pytest_report=false")  # the place of a report has another name in each run
            args = ["-y", *fixed, "--settings", f"/dev/fd/{opened.fileno()}", "-p", "look", "-f", "stream-json"]
            done = finished(
                daemon.start(
                    panpan,
                    *args,
                    prefix=("nohup", "prlimit", "--nofile=500:600", "nice", "-n", "3"),
                    env={"PANPAN_NO_DAEMON": without},
                    stdin=subprocess.PIPE,
                    pass_fds=[opened.fileno()],
                    umask=0o037,
                ),
                b"some input",
            )
        assert done.code == 0, done.stderr
        message = server.requests[0].messages[0]
        looks.append((panpan.workspace / "look").read_text())
        outputs.append(([line["type"] for line in done.lines], done.result["result"], "some input" in str(message)))

    assert daemon.facts["served"] == served + 1, daemon.facts.get("refused")
    assert looks[0].replace("PANPAN_NO_DAEMON=\n", "") == looks[1].replace("PANPAN_NO_DAEMON=1\n", "")
    assert "\n500\n" in looks[0].replace(" ", "\n")
    assert outputs[0] == outputs[1]
    assert outputs[0][1:] == ("Done.", True)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Waiting:
    """A start whose run waits for the rest of a reply."""

    def __init__(self, daemon: Daemon, panpan: Panpan, *args: str, **options: object) -> None:
        self._more = threading.Event()
        reply = Reply((Text("The beginning of an answer"),), chunk_chars=10, faults=(Hold(4, self._more),))
        self._serving = serving([reply])
        self._given = (daemon, panpan, args, options)

    def __enter__(self) -> "Waiting":
        daemon, panpan, args, options = self._given
        panpan.use(self._serving.__enter__())
        self.process = daemon.start(panpan, *args, "-p", "go", **options)
        assert self.process.stdout is not None
        assert os.read(self.process.stdout.fileno(), 9) == b"The begin"
        (self.run,) = daemon.runs
        return self

    def __exit__(self, *_: object) -> None:
        self._more.set()
        self.process.kill()
        self.process.communicate()
        self._serving.__exit__(None, None, None)

    def finish(self) -> None:
        self._more.set()


def test_run_shows_the_command_line_and_ignores_the_same_signals(daemon: Daemon, panpan: Panpan) -> None:
    with Waiting(daemon, panpan, "--effort", "low", prefix=("env", "--ignore-signal=QUIT")) as waiting:
        title = Path(f"/proc/{waiting.run}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        name = Path(f"/proc/{waiting.run}/comm").read_text()
        ignored = [
            next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn"))
            for pid in (waiting.run, waiting.process.pid)
        ]
        variables, files = b"", list[str]()
        with suppress(PermissionError):  # panpan hides them, but not from root
            variables = Path(f"/proc/{waiting.run}/environ").read_bytes()
            files = [str(file.readlink()) for file in Path(f"/proc/{waiting.run}/fd").iterdir()]

    assert title[1:] == [os.fsencode(word) for word in (COMMAND, "--effort", "low", "-p", "go")]
    assert name == "panpan\n"
    assert ignored[0] == ignored[1]
    assert b"ANTHROPIC_API_KEY" not in variables
    assert not [file for file in files if "daemon" in file]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_to_the_start_ends_the_run_in_good_order(daemon: Daemon, panpan: Panpan, number: int, code: int) -> None:
    with Waiting(daemon, panpan) as waiting:
        waiting.process.send_signal(number)
        waiting.process.wait(60)

    assert waiting.process.returncode == code
    assert daemon.runs == []
    assert "The begin" in json.dumps(panpan.records())


def test_start_that_is_killed_hangs_up_its_run(daemon: Daemon, panpan: Panpan) -> None:
    with Waiting(daemon, panpan) as waiting:
        os.kill(waiting.run, signal.SIGSTOP)  # it has to be continued to notice
        waiting.process.kill()
        wait_until(lambda: daemon.runs == [])

    assert "The begin" in json.dumps(panpan.records())


def test_run_that_is_killed_kills_its_start(daemon: Daemon, panpan: Panpan) -> None:
    with Waiting(daemon, panpan) as waiting:
        os.kill(waiting.run, signal.SIGKILL)
        waiting.process.wait(60)

    assert waiting.process.returncode == -signal.SIGKILL


def test_run_stops_and_continues_with_its_start(daemon: Daemon, panpan: Panpan) -> None:
    with Waiting(daemon, panpan, process_group=0) as waiting:
        waiting.process.send_signal(signal.SIGTSTP)
        wait_until(lambda: (state_of(waiting.run), state_of(waiting.process.pid)) == ("T", "T"))
        waiting.process.send_signal(signal.SIGCONT)
        wait_until(lambda: "T" not in (state_of(waiting.run), state_of(waiting.process.pid)))
        waiting.finish()
        rest = waiting.process.communicate(timeout=60)[0]

    assert (waiting.process.returncode, rest) == (0, b"ning of an answer\n")


def test_keys_of_a_terminal_stop_continue_and_interrupt_the_run(daemon: Daemon, panpan: Panpan) -> None:
    need("tmux")
    more = threading.Event()
    reply = Reply((Text("The beginning of an answer"),), chunk_chars=10, faults=(Hold(4, more),))
    with serving([reply]) as server:
        panpan.use(server)
        env = {**panpan.environment(), **daemon.env, "PS1": "$ ", "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
        with Tmux(["bash", "--norc", "-i"], env=env, cwd=panpan.workspace) as terminal:
            terminal.type("panpan -p go; echo code $?")
            terminal.send("Enter")
            terminal.wait_for("\nThe begin")
            (run,) = daemon.runs
            terminal.resize(100, 30)
            terminal.send("C-z")
            terminal.wait_for("Stopped")
            stopped = state_of(run)
            terminal.type("fg")
            terminal.send("Enter")
            wait_until(lambda: state_of(run) != "T")
            terminal.send("C-c")
            wait_until(lambda: daemon.runs == [])
            more.set()

    assert stopped == "T"


def test_daemon_without_a_locale_serves_starts_without_one(panpan: Panpan) -> None:
    with own_places() as places, serving([say("Hello.")]) as server:
        panpan.use(server)
        named = {name: value for name, value in panpan.environment().items() if not name.startswith(("LANG", "LC_"))}
        env = {**named, **places}

        def run(*args: str) -> str:
            argv = [str(COMMAND), *args]
            return subprocess.run(
                argv, cwd=panpan.workspace, env=env, capture_output=True, text=True, check=True
            ).stdout

        run("daemon", "start")
        try:
            said, status = run("-p", "hi"), run("daemon", "status")
        finally:
            run("daemon", "stop")

    assert said == "Hello.\n"
    assert "runs: 1, of which 0 are going on\n" in status


def test_stop_lets_a_run_go_on_and_another_daemon_begin(panpan: Panpan) -> None:
    with running_daemon() as daemon, Waiting(daemon, panpan) as waiting:
        stopped = finished(daemon.start(panpan, "daemon", "stop"))
        begun = finished(daemon.start(panpan, "daemon", "start"))
        status = finished(daemon.start(panpan, "daemon", "status"))
        doctor = finished(daemon.start(panpan, "doctor"))
        again = finished(daemon.start(panpan, "daemon", "start"))
        ended = finished(daemon.start(panpan, "daemon", "stop"))
        waiting.finish()
        rest = waiting.process.communicate(timeout=60)[0]
        code = daemon.process.wait(60)

    assert begun.code == 0, begun.stderr
    pid = begun.stdout.split()[-1]
    assert stopped.stdout == "the daemon has stopped; 1 of its runs go on\n"
    assert begun.stdout == f"the daemon runs, as process {pid}\n"
    assert status.stdout.startswith(f"the daemon runs as process {pid} since ")
    assert "runs: 0, of which 0 are going on\n" in status.stdout
    assert f"ok       daemon      the daemon runs as process {pid} since " in doctor.stdout
    assert again.stdout == f"the daemon runs already, as process {pid}\n"
    assert ended.stdout == "the daemon has stopped\n"
    assert (waiting.process.returncode, rest, code) == (0, b"ning of an answer\n", 0)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
