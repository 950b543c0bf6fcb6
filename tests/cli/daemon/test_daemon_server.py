"""The daemon knows nothing of anybody, has all that a headless run needs, and ends when nobody asks."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.model_server import call, say, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")

PRELOAD = """
import json, locale, os, sys, tempfile, threading, time
asked = []
def noting(name, function):
    def noted(*args, **options):
        frame = sys._getframe(1)
        if "panpan" in frame.f_code.co_filename:
            asked.append(f"{name}: {frame.f_code.co_filename}:{frame.f_lineno}")
        return function(*args, **options)
    return noted
for module, names in (
    (os, ("getcwd", "getcwdb", "getppid", "getpid", "getsid", "getpgrp", "isatty", "get_terminal_size", "umask")),
    (time, ("localtime", "time", "monotonic", "perf_counter")),
    (locale, ("getlocale", "getpreferredencoding")),
    (tempfile, ("gettempdir", "mkdtemp")),
):
    for name in names:
        setattr(module, name, noting(name, getattr(module, name)))
sys.modules["panpan.cli.start"] = type(sys)("start")  # it asks for its parent, which the daemon's runs do not use
exec(open(os.path.join(sys.argv[1], "panpan/cli/start.py")).read().replace("os.getppid()", "0"),
     sys.modules["panpan.cli.start"].__dict__)
from panpan.cli.daemon.preload import preload
read = preload()
json.dump([asked, read, threading.active_count(), tempfile.tempdir], sys.stdout)
"""

LATER = """
import sys, atexit, json
if sys.argv.pop(1) == "preloaded":
    from panpan.cli.daemon.preload import preload
    preload()
    sys.modules.pop("panpan.cli.daemon.command", None)
before = set(sys.modules)
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(set(sys.modules) - before))))
sys.argv[0] = "panpan"
from panpan.cli.main import main
main()
"""

IDLE = """
import sys
from panpan.cli.daemon import server
server.LOOK_S = 0.001
times = iter([0.0, server.IDLE_S - 1, server.IDLE_S - 0.5, server.IDLE_S])
daemon = server.Daemon(*server.listening(sys.argv[1]), server.Stamps(), clock=lambda: next(times))
print(daemon.serve(), next(times, "all times were asked for"))
"""


def printed(code: str, *args: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env={"PATH": os.environ["PATH"], **env},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_preload_asks_for_nothing_that_belongs_to_a_run(tmp_path: Path) -> None:
    done = printed(PRELOAD, str(Path(__file__).parents[3]), env={"HOME": str(tmp_path)})
    asked, read, threads, temporary = json.loads(done.stdout)

    assert asked == []
    assert threads == 1
    assert temporary is None
    assert {name for name in read if name.startswith(("PANPAN", "XDG_", "TERM", "TZ", "TMP"))} == set()


def test_run_with_a_command_imports_nothing_more(tmp_path: Path) -> None:
    later = []
    for way in ("preloaded", "alone"):
        with serving([call("Bash", {"command": "echo hi"}), say("Done.")]) as server:
            env = {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url}
            done = printed(LATER, way, "-p", "go", "-y", "--set", "sessions.title=first-words", env=env)
        assert done.stdout == "Done.\n", done.stderr
        later.append(json.loads(done.stderr.splitlines()[-1]))

    preloaded, alone = later
    assert len(alone) > 300
    assert [name for name in preloaded if name in alone] == []


def test_daemon_ends_when_nobody_asks_for_long(tmp_path: Path) -> None:
    path = tmp_path / "daemon" / "socket"
    done = printed(IDLE, str(path), env={"HOME": str(tmp_path)})

    assert done.stdout == "None all times were asked for\n", done.stderr
    assert not path.exists()
