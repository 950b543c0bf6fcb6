"""The daemon serves only who is held to the same as itself; every other start runs by itself."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from panpan.system.sandbox.landlock import OLDEST_VERSION, landlock_version
from tests.e2e.conftest import COMMAND, Panpan, finished, wait_until
from tests.e2e.running_daemon import Daemon, places, running_daemon, socket_of
from tests.model_server import Hold, Reply, Text, call, say, serving
from tests.needed_programs import need
from tests.package_copy import linked_copy, rewrite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")

BOLD = """
import sys
from panpan.cli.daemon import client
client.rights = lambda pid: {}  # a start that does not look at the daemon
client.may_be_served = lambda *_, **__: True
sys.argv = ["panpan", "--version"]
client.run_by_daemon(sys.orig_argv[-1])
print("not served")
"""
"""A program that asks the daemon although it is held to something else."""

LANDLOCKED = """
import os
from panpan.system.sandbox.landlock_launcher import _restrict, call
if os.geteuid() != 0:  # root may even do without, and then nothing else tells about the box
    call("prctl", 38, 1, 0, 0, 0)
_restrict(1 << 3, 0, 0, [str(1 << 3), "/"])  # what it handles, reading folders, it allows everywhere
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running_daemon() as running:
        yield running


def bold_output(daemon: Daemon, *prefix: str, before: str = "") -> str:
    """Return what the bold program prints."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", before + BOLD, daemon.path],
        env={"PATH": os.environ["PATH"], "LANG": os.environ.get("LANG", "C"), **daemon.env},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bold_program_is_served_where_it_is_held_to_the_same(daemon: Daemon) -> None:
    served = daemon.facts["served"]

    assert bold_output(daemon).startswith("panpan ")
    assert daemon.facts["served"] == served + 1


NO_LOOK = "a process asked that may not look at the daemon"
BOXES = {
    "mnt namespace": ("bwrap", "--dev-bind", "/", "/"),
    "NoNewPrivs": ("setpriv", "--no-new-privs"),
    "CapPrm": ("setpriv", "--bounding-set", "-net_raw"),
}


@pytest.mark.parametrize(("difference", "prefix"), BOXES.items(), ids=BOXES)
def test_whoever_is_held_to_something_else_is_refused(
    daemon: Daemon, panpan: Panpan, difference: str, prefix: Sequence[str]
) -> None:
    need(prefix[0])
    if "--bounding-set" in prefix and os.geteuid() != 0:
        pytest.skip("only root can drop a capability")
    served = daemon.facts["served"]

    output = bold_output(daemon, *prefix)
    refused = daemon.facts["refused"]
    with serving([say("Done.")]) as server:
        panpan.use(server)
        done = finished(daemon.start(panpan, "-p", "go", prefix=prefix))

    assert output == "not served\n"
    assert refused in (
        f"{difference} differs",
        "user namespace differs",
        "a process asked that may not look at the daemon",
    )
    assert (done.stdout, done.code) == ("Done.\n", 0)
    assert daemon.facts["served"] == served


@pytest.mark.skipif(landlock_version() < OLDEST_VERSION, reason="needs Landlock")
def test_landlock_alone_keeps_a_program_from_the_daemon(daemon: Daemon) -> None:
    served = daemon.facts["served"]

    output = bold_output(daemon, before=LANDLOCKED)

    assert output == "not served\n"
    assert daemon.facts["served"] == served


def test_boxed_command_of_panpan_cannot_make_a_unix_socket(panpan: Panpan) -> None:
    command = f"{sys.executable} -c 'import socket; socket.socket(socket.AF_UNIX)'"
    with serving([call("Bash", {"command": command}), say("Done.")]) as server:
        panpan.use(server)
        panpan.run("-p", "go", "--permission-mode", "auto")
        (result,) = server.requests[1].messages[-1]["content"]

    assert "PermissionError" in json.dumps(result)


def test_proof_of_another_process_is_refused(daemon: Daemon) -> None:
    code = """
import os, sys
from panpan.cli.daemon import client
connection, proof = client.connect(sys.argv[1])
if not os.fork():  # the child has what its parent was given
    client.send_request(connection, proof, [b"status"], [])
    os._exit(0)
os.wait()
try:
    print(connection.recv(1))
except ConnectionResetError:
    print(b"")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, daemon.path], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )

    assert (done.stdout, daemon.facts["refused"]) == ("b''\n", NO_LOOK)


def answered_alone(daemon: Daemon, panpan: Panpan, **variables: str) -> bool:
    """Return True if a start has run, and not by the daemon."""
    served = daemon.facts["served"]
    with serving([say("Done.")]) as server:
        panpan.use(server)
        done = finished(daemon.start(panpan, "-p", "go", env=variables))
    assert (done.stdout, done.stderr, done.code) == ("Done.\n", "", 0)
    return bool(daemon.facts["served"] == served)


@pytest.mark.parametrize(
    "variables",
    [
        {"PANPAN_NO_DAEMON": "1"},
        {"PANPAN_PROCESS_MARKS": "some"},
        {"PYTHONPATH": "/tmp"},
        {"OPENSSL_CONF": "/dev/null"},
    ],
    ids=lambda variables: str(*variables),
)
def test_variable_that_the_daemon_cannot_take_over_is_refused(
    daemon: Daemon, panpan: Panpan, variables: dict[str, str]
) -> None:
    assert answered_alone(daemon, panpan, **variables)


def test_more_than_the_daemon_may_have_is_refused(panpan: Panpan) -> None:
    need("prlimit")
    with running_daemon() as daemon:
        subprocess.run(["prlimit", "--pid", str(daemon.process.pid), "--nofile=400:400"], check=True)
        if os.geteuid() == 0:
            pytest.skip("root takes over any limits")
        assert answered_alone(daemon, panpan)
        assert daemon.facts["refused"] == "resource limits differs"


@pytest.fixture
def control_group() -> Iterator[Path]:
    """A control group of the test's own, beside that of the daemon."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    root = next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), Path("/nowhere"))
    group = root / f"panpan-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def test_run_is_in_the_control_group_of_its_start_or_alone(daemon: Daemon, panpan: Panpan, control_group: Path) -> None:
    entering = ("sh", "-c", f'echo $$ > {control_group}/cgroup.procs && exec "$@"', "sh")
    served, more = daemon.facts["served"], threading.Event()
    with serving([Reply((Text("The beginning of an answer"),), chunk_chars=10, faults=(Hold(4, more),))]) as server:
        panpan.use(server)
        process = daemon.start(panpan, "-p", "go", prefix=entering)
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 9) == b"The begin"
        members = set(map(int, (control_group / "cgroup.procs").read_text().split()))
        runs, facts = daemon.runs, daemon.facts
        more.set()
        assert finished(process).code == 0

    assert members.issuperset({process.pid, *runs})
    if not runs:
        assert (facts["served"], facts["refused"]) == (served, "control group differs")


@pytest.mark.parametrize("place", ["folder", "socket"])
def test_place_that_others_may_enter_is_not_used(panpan: Panpan, place: str) -> None:
    with running_daemon() as daemon:
        path = Path(daemon.path).parent if place == "folder" else Path(daemon.path)
        mode = path.stat().st_mode
        path.chmod(0o755)
        with serving([say("Done.")]) as server:
            panpan.use(server)
            done = finished(daemon.start(panpan, "-p", "go"))
        path.chmod(mode)

        assert (done.stdout, daemon.facts["served"]) == ("Done.\n", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_place_of_another_user_is_not_used(panpan: Panpan) -> None:
    with running_daemon() as daemon:
        os.chown(Path(daemon.path).parent, 12345, -1)
        with serving([say("Done.")]) as server:
            panpan.use(server)
            done = finished(daemon.start(panpan, "-p", "go"))
        os.chown(Path(daemon.path).parent, 0, -1)

        assert (done.stdout, daemon.facts["served"]) == ("Done.\n", 0)


def test_command_of_a_session_cannot_start_a_daemon(daemon: Daemon, panpan: Panpan) -> None:
    done = finished(daemon.start(panpan, "daemon", "start", env={"PANPAN_PROCESS_MARKS": "mark"}))

    assert (done.stdout, done.code) == ("", 2)
    assert done.stderr == (
        "panpan: a session cannot start the daemon, which would outlive it; run this in a shell of your own\n"
    )


def test_daemon_refuses_a_folder_that_others_may_enter() -> None:
    env = places()
    path = Path(socket_of(env))
    path.parent.mkdir(mode=0o755)
    done = subprocess.run(
        [COMMAND, "daemon", "start"], env={"PATH": os.environ["PATH"], **env}, capture_output=True, text=True
    )
    shutil.rmtree(Path(env["HOME"]).parent)

    assert done.stderr == (
        f"panpan: the daemon could not start: {path.parent} must be a folder of yours that nobody else may enter;"
        f" run: chmod 700 {path.parent}\n"
    )


def test_daemon_ends_when_a_file_changes(panpan: Panpan, tmp_path: Path) -> None:
    copy = linked_copy(tmp_path / "copy")
    with running_daemon(PYTHONPATH=str(copy)) as daemon, serving([say("Old."), say("New.")]) as server:
        panpan.use(server)
        before = finished(daemon.start(panpan, "-p", "go"))
        served = daemon.facts["served"]
        changed = copy / "panpan" / "cli" / "main.py"
        rewrite(changed, changed.read_text().replace("message=", 'message="new "'))
        after = finished(daemon.start(panpan, "--version"))
        daemon.process.wait(60)

        assert (before.stdout, served) == ("Old.\n", 1)
        assert after.stdout.startswith("new panpan")
        assert not Path(daemon.path).exists()


def test_stopped_daemon_holds_up_no_start(daemon: Daemon, panpan: Panpan) -> None:
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        with serving([say("Done.")]) as server:
            panpan.use(server)
            done = finished(daemon.start(panpan, "-p", "go"))
    finally:
        daemon.process.send_signal(signal.SIGCONT)

    assert (done.stdout, done.stderr, done.code) == ("Done.\n", "", 0)


def test_socket_of_a_killed_daemon_is_no_error(panpan: Panpan) -> None:
    with running_daemon() as daemon, serving([say("Done.")]) as server:
        panpan.use(server)
        daemon.process.kill()
        daemon.process.wait()
        assert Path(daemon.path).exists()
        done = finished(daemon.start(panpan, "-p", "go"))
        status = finished(daemon.start(panpan, "daemon", "status"))
        doctor = finished(daemon.start(panpan, "doctor"))
        begun = finished(daemon.start(panpan, "daemon", "start"))
        stopped = finished(daemon.start(panpan, "daemon", "stop"))

    assert (done.stdout, done.stderr, done.code) == ("Done.\n", "", 0)
    assert (status.stdout, status.code) == ("no daemon runs; start it with: panpan daemon start\n", 1)
    assert "optional daemon      none runs: `panpan daemon start` lets headless runs begin sooner\n" in doctor.stdout
    assert begun.stdout.startswith("the daemon runs, as process ")
    assert stopped.stdout == "the daemon has stopped\n"
