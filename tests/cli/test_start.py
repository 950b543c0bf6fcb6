"""The command can be interrupted from its first moment on, and is quick to start."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from panpan import __version__
from panpan.cli.start import daemon_socket

SLOW_IMPORT = """
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            print("importing", flush=True)
            while True:
                pass
sys.meta_path.insert(0, Finder())
from panpan.cli.start import main
main()
"""


def test_interrupt_during_imports_exits_130_silently(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        stderr = process.communicate(timeout=20)[1]
    finally:
        process.kill()  # it would keep a processor busy for ever

    assert (process.returncode, stderr) == (130, b"")


def test_interrupt_ignored_by_the_caller_stays_ignored() -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from panpan.cli.start import leave_at_interrupt; leave_at_interrupt()\n"
        "signal.raise_signal(signal.SIGINT); print('still here')"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "still here\n"


def test_python_m_panpan_is_panpan(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "panpan", "--version"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, f"panpan {__version__}\n", "")


def test_start_module_imports_only_small_modules() -> None:
    code = "import sys; before = set(sys.modules); import panpan.cli.start; print(*sorted(set(sys.modules) - before))"

    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    ).stdout.split()

    assert {name for name in loaded if name.startswith("panpan")} == {
        "panpan",
        "panpan.cli",
        "panpan.cli.start",
        "panpan.public_names",
        "panpan.version",
    }
    assert {"typing", "re", "click"}.isdisjoint(loaded)


def test_place_of_the_daemon_is_private_to_user_and_installation() -> None:
    home = daemon_socket({"HOME": "/home/me"})  # type: ignore[arg-type]

    if sys.platform == "linux":
        assert home is not None
        name = home.removeprefix("/home/me/.panpan/panpan-daemon/")
        assert name.startswith(f"{__version__}-")
        places = {"XDG_RUNTIME_DIR": "/run/me", "PANPAN_HOME": "/data", "HOME": "/home/me"}
        assert daemon_socket(places) == f"/run/me/panpan-daemon/{name}"  # type: ignore[arg-type]
        del places["XDG_RUNTIME_DIR"]
        assert daemon_socket(places) == f"/data/panpan-daemon/{name}"  # type: ignore[arg-type]
    else:
        assert home is None
    assert daemon_socket({"XDG_RUNTIME_DIR": "here"}) is None  # type: ignore[arg-type]
    assert daemon_socket({}) is None  # type: ignore[arg-type]
