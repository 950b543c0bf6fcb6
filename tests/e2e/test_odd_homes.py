"""A panpan home that is not as one expects: it works, or one sentence says what is wrong and what to do."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import COMMAND, Done, Panpan
from tests.model_server import call, say, serving
from tests.needed_programs import need

WRITE = call("Write", {"file_path": "a.txt", "content": "one"})


def run_under(panpan: Panpan, *before: str) -> Done:
    ran = subprocess.run(
        [*before, COMMAND, "-p", "go", "--yes"],
        cwd=panpan.workspace,
        env=panpan.environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return Done(ran.stdout, ran.stderr, ran.returncode)


def test_read_only_home_is_an_error_before_any_request(panpan: Panpan) -> None:
    need("bwrap")
    panpan.home.mkdir(parents=True, exist_ok=True)
    with serving([WRITE, say("Done.")]) as server:
        panpan.use(server)
        done = run_under(panpan, "bwrap", "--dev-bind", "/", "/", "--ro-bind", str(panpan.home), str(panpan.home))

    assert done.code == 2
    assert "Read-only file system" in done.stderr
    assert "PANPAN_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert (server.requests, list(panpan.workspace.iterdir())) == ([], [])


@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP"])
def test_home_on_a_file_system_without_locks_works(panpan: Panpan, error: str) -> None:
    need("strace")
    with serving([WRITE, say("Done."), say("On.")]) as server:
        panpan.use(server)
        done = run_under(
            panpan, "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", f"inject=flock:error={error}"
        )
        again = panpan.run("-c", "-p", "on")

    assert (done.code, done.stdout) == (0, "Done.\n"), done.stderr
    assert (again.code, again.stdout) == (0, "On.\n"), again.stderr
    assert Path(panpan.workspace, "a.txt").read_text() == "one"
