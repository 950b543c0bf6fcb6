"""One server for several processes: who finds it, and when it counts as gone."""

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.local_model.server import ServedModel, announce, running_server, use_or_start_server
from panpan.capabilities.local_model.weight_store import WeightStore
from panpan.errors import ConfigError
from panpan.system.files.file_lock import hold_lock
from tests.capabilities.local_model.places import small_weights

SERVED = ServedModel("http://127.0.0.1:1234/v1", "the-key")

ANNOUNCER = """
import sys, time
from pathlib import Path
from panpan.capabilities.local_model.server import announce
from panpan.capabilities.local_model.server import ServedModel

with announce(Path(sys.argv[1]), ServedModel(sys.argv[2], "the-key")):
    print("announced", flush=True)
    time.sleep(600)
"""


@contextmanager
def other_process(folder: Path, base_url: str = SERVED.base_url) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that announces a server; killed at the end at the latest."""
    with subprocess.Popen([sys.executable, "-c", ANNOUNCER, folder, base_url], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"announced\n"
            yield process
        finally:
            process.kill()


def test_server_is_found_while_it_is_announced(tmp_path: Path) -> None:
    folder = tmp_path / "models"

    assert running_server(folder) is None
    with announce(folder, SERVED):
        assert running_server(folder) == SERVED
    assert running_server(folder) is None


def test_leftovers_of_a_killed_process_do_not_count(tmp_path: Path) -> None:
    with other_process(tmp_path) as process:
        assert running_server(tmp_path) == SERVED
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (tmp_path / "server.json").exists()

        assert running_server(tmp_path) is None
        with announce(tmp_path, ServedModel("http://127.0.0.1:9/v1", "new")):
            assert running_server(tmp_path) == ServedModel("http://127.0.0.1:9/v1", "new")


def test_address_and_key_are_readable_by_the_user_only(tmp_path: Path) -> None:
    (tmp_path / "server.json").touch(mode=0o644)
    with announce(tmp_path, SERVED):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}

    assert modes == {"server.json": 0o600, "server.lock": 0o600}


def test_second_server_is_refused(tmp_path: Path) -> None:
    with other_process(tmp_path) as process:
        with pytest.raises(ConfigError, match=f"served already, by process {process.pid}; use that, or end it"):
            with announce(tmp_path, ServedModel("http://127.0.0.1:9/v1", "new")):
                pass

        assert running_server(tmp_path) == SERVED


def test_server_can_be_announced_during_a_lookup(tmp_path: Path) -> None:
    # given somebody who looks just now, after a crash
    (tmp_path / "server.json").write_text("{}")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            with hold_lock(tmp_path / "server.lock", wait_s=0):
                group.start_soon(anyio.to_thread.run_sync, keep_announced)
                await anyio.sleep(0.05)

    def keep_announced() -> None:
        with announce(tmp_path, SERVED):
            assert running_server(tmp_path) == SERVED

    anyio.run(main)


def test_error_in_the_block_is_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="something else"):
        with announce(tmp_path, SERVED):
            raise OSError("something else")

    assert running_server(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"base_url": "http://127.0.0.1:1/v1"}', "[" * 9_000])
def test_incomplete_file_is_no_server(tmp_path: Path, text: str) -> None:
    with announce(tmp_path, SERVED):
        (tmp_path / "server.json").write_text(text)

        assert running_server(tmp_path) is None


def test_unusable_files_are_no_server(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text("{}")
    (tmp_path / "server.lock").mkdir()

    assert running_server(tmp_path) is None
    with pytest.raises(ConfigError, match="cannot open the lock file"):
        with announce(tmp_path, SERVED):
            pass


def test_unwritable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "server.json").mkdir()

    with pytest.raises(ConfigError, match=r"cannot write .*server\.json"):
        with announce(tmp_path, SERVED):
            pass


async def test_running_server_is_used_until_another_replaces_it(tmp_path: Path) -> None:
    store = WeightStore(tmp_path, small_weights())  # without weights: nothing could be started

    with announce(tmp_path, SERVED):
        async with use_or_start_server(store) as served:
            assert (served.base_url, served.api_key) == (SERVED.base_url, SERVED.api_key)
            assert not served.has_ended()
    assert served.has_ended()
    with announce(tmp_path, ServedModel("http://127.0.0.1:9/v1", "new")):
        assert served.has_ended()


async def test_weights_are_checked_before_a_server_starts(tmp_path: Path) -> None:
    store = WeightStore(tmp_path, small_weights())
    store.path.write_bytes(b"x" * store.weights.size_bytes)

    with pytest.raises(ConfigError, match="its SHA-256 is not that of Small"):
        async with use_or_start_server(store):
            pass
