"""Real processes, with a fake in place of the runtime."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import pytest

from panpan.capabilities.local_model.server import ServedModel, serve_model
from panpan.errors import ConfigError
from tests.fakes.runtime_weights import RUNTIME, RuntimeWeights, is_running, runtime_weights
from tests.needed_programs import need

WARM_UP = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}


@pytest.fixture(autouse=True)
def _fake_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    need("ps")
    monkeypatch.syspath_prepend(RUNTIME)
    monkeypatch.setenv("PYTHONPATH", str(RUNTIME))


def serve(weights: RuntimeWeights, **options):
    return serve_model(weights.path, name="local", context_tokens=2_048, **options)


def prefix_files(folder: Path) -> list[Path]:
    return list(folder.glob("prefix-*.bin"))


def status_of(served: ServedModel, key: str) -> int:
    """Return the status of the server's answer to a request with a key."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = Request(f"{served.base_url}/chat/completions", b'{"messages": []}', headers)
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_server_runs_while_its_context_lasts(tmp_path: Path, backend: str) -> None:
    weights = runtime_weights(tmp_path)

    async def main() -> None:
        async with serve(weights) as served:
            (start,) = weights.starts
            assert is_running(start["pid"])
            assert not served.has_ended()
            assert served.base_url.startswith("http://127.0.0.1:")
            assert served.base_url.endswith("/v1")
            assert await anyio.to_thread.run_sync(status_of, served, served.api_key) == 200
        assert not is_running(start["pid"])
        assert served.has_ended()

    anyio.run(main, backend=backend)


async def test_server_needs_the_runs_key_and_is_on_the_loopback(tmp_path: Path) -> None:
    weights = runtime_weights(tmp_path)

    async with serve(weights) as first:
        wrong = await anyio.to_thread.run_sync(status_of, first, "another")
    async with serve(weights) as second:
        pass

    assert wrong == 401
    assert len(first.api_key) >= 24
    assert first.api_key != second.api_key
    assert first.api_key not in repr(first)
    parameters = weights.starts[0]["parameters"]
    assert (parameters["hostnames"], parameters["api_keys"]) == (["127.0.0.1"], [first.api_key])
    assert (parameters["n_ctx"], parameters["n_parallel"], parameters["ui"]) == (2_048, 1, False)


async def test_port_and_key_can_be_given(tmp_path: Path) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)

    async with serve(runtime_weights(tmp_path), port=port, api_key="chosen-key") as served:
        assert served.base_url == f"http://127.0.0.1:{port}/v1"
        assert served.api_key == "chosen-key"
        assert await anyio.to_thread.run_sync(status_of, served, "chosen-key") == 200


async def test_taken_port_is_reported_before_the_model_is_loaded(tmp_path: Path) -> None:
    weights = runtime_weights(tmp_path)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)

        with pytest.raises(ConfigError) as caught:
            async with serve(weights, port=port):
                pass

    assert str(caught.value) == (
        f"the port {port} cannot be used: another program listens there; name another one, or none"
    )
    assert weights.starts == []


async def test_server_gets_no_key_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-user-0123456789abcdef")
    monkeypatch.setenv("PANPAN_API_KEY", "sk-user-0123456789abcdef")
    weights = runtime_weights(tmp_path)

    async with serve(weights) as served:
        pass

    environment = weights.starts[0]["environment"]
    assert "PATH" in environment
    assert not [name for name, value in environment.items() if "sk-user" in value or served.api_key in value]


async def test_server_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / "panpan").mkdir(parents=True)
    for name in ("panpan/__init__.py", "json.py", "xllamacpp.py", "sitecustomize.py"):
        (project / name).write_text("raise SystemExit('code of the project was run')\n")
    monkeypatch.chdir(project)
    weights = runtime_weights(tmp_path / "models")

    async with serve(weights):
        pass

    assert not [place for place in weights.starts[0]["modules"] if str(project) in place]


async def test_warm_up_is_read_once_and_kept(tmp_path: Path) -> None:
    weights = runtime_weights(tmp_path)
    (tmp_path / "prefix-of-an-older-panpan.bin").write_bytes(b"old")

    async with serve(weights, warm_up=WARM_UP):
        pass
    first = [request["path"] for request in weights.requests]
    (kept,) = prefix_files(tmp_path)
    async with serve(weights, warm_up=WARM_UP):
        pass
    second = [request["path"] for request in weights.requests[len(first) :]]

    assert first == ["/v1/chat/completions", "/slots/0?action=save"]
    assert second == ["/slots/0?action=restore"]
    assert weights.requests[-1]["body"]["filename"] == kept.name
    assert kept.read_bytes() == b"what was read"


@pytest.mark.parametrize("change", ["request", "weights"])
async def test_kept_warm_up_of_something_else_is_not_used(tmp_path: Path, change: str) -> None:
    weights = runtime_weights(tmp_path)
    async with serve(weights, warm_up=WARM_UP):
        pass
    (kept,) = prefix_files(tmp_path)

    warm_up = WARM_UP
    if change == "request":
        warm_up = {**WARM_UP, "max_tokens": 2}
    else:
        weights = RuntimeWeights(weights.path.rename(tmp_path / "other.gguf"))
    async with serve(weights, warm_up=warm_up):
        pass

    assert [request["path"] for request in weights.requests][-2:] == ["/v1/chat/completions", "/slots/0?action=save"]
    (kept_now,) = prefix_files(tmp_path)
    assert kept_now != kept


@pytest.mark.parametrize("damage", [b"", b"what w", b"what was rEad", b"what was read, and more"])
async def test_damaged_warm_up_is_made_again(tmp_path: Path, damage: bytes) -> None:
    weights = runtime_weights(tmp_path)
    async with serve(weights, warm_up=WARM_UP):
        pass
    (kept,) = prefix_files(tmp_path)
    kept.write_bytes(damage)

    async with serve(weights, warm_up=WARM_UP):
        pass

    assert [request["path"] for request in weights.requests][2:] == ["/v1/chat/completions", "/slots/0?action=save"]
    assert [path.read_bytes() for path in prefix_files(tmp_path)] == [b"what was read"]


async def test_rejected_warm_up_is_made_again(tmp_path: Path) -> None:
    weights = runtime_weights(tmp_path, forgets=True)
    for _ in range(2):
        async with serve(weights, warm_up=WARM_UP):
            pass

    made = ["/v1/chat/completions", "/slots/0?action=save"]
    assert [request["path"] for request in weights.requests] == [*made, "/slots/0?action=restore", *made]
    assert len(prefix_files(tmp_path)) == 1


async def test_full_disk_keeps_no_warm_up_and_the_server_starts(tmp_path: Path) -> None:
    weights = runtime_weights(tmp_path, disk_is_full=True)

    async with serve(weights, warm_up=WARM_UP) as served:
        assert await anyio.to_thread.run_sync(status_of, served, served.api_key) == 200

    assert prefix_files(tmp_path) == []


async def test_server_arguments_hold_no_secret(tmp_path: Path) -> None:
    weights = runtime_weights(tmp_path)

    async with serve(weights, api_key="chosen-key"):
        pid = str(weights.starts[0]["pid"])
        shown = await anyio.run_process(["ps", "-ww", "-o", "args=", "-p", pid])

    assert shown.stdout.rstrip().endswith(b"-m panpan.capabilities.local_model.serve")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"failure": "failed to load model: bad magic"}, "started: RuntimeError: failed to load model: bad magic$"),
        ({"signal": "SIGKILL"}, "for want of memory"),
        ({"signal": "SIGILL"}, "AVX2"),
    ],
)
async def test_server_that_dies_at_its_start_is_told_with_last_words(
    tmp_path: Path, config: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        async with serve(runtime_weights(tmp_path, **config)):
            pass


async def test_missing_weights_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"could not be started: .*No such file"):
        async with serve(RuntimeWeights(tmp_path / "none.gguf")):
            pass


async def test_unexpected_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("print('welcome to this machine')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{RUNTIME}")
    weights = runtime_weights(tmp_path)

    with pytest.raises(ConfigError, match="does not say where it is"):
        async with serve(weights):
            pass

    assert not [start for start in weights.starts if is_running(start["pid"])]


async def test_missing_runtime_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    weights = runtime_weights(tmp_path)

    with pytest.raises(ConfigError, match=r"needs the package xllamacpp; run: panpan local setup"):
        async with serve(weights):
            pass

    assert weights.starts == []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_cancelled_start_leaves_no_process(tmp_path: Path, backend: str) -> None:
    weights = runtime_weights(tmp_path, never_reads=True)

    async def start() -> None:
        async with serve(weights, warm_up=WARM_UP):
            raise AssertionError("it never gets ready")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await anyio.to_thread.run_sync(wait_until, lambda: len(weights.requests) == 1)
            group.cancel_scope.cancel()

    anyio.run(main, backend=backend)

    assert not is_running(weights.starts[0]["pid"])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_killed_server_has_ended(tmp_path: Path, backend: str) -> None:
    weights = runtime_weights(tmp_path)

    async def main() -> None:
        async with serve(weights) as served:
            os.kill(weights.starts[0]["pid"], signal.SIGKILL)
            with anyio.fail_after(30):
                while not served.has_ended():  # noqa: ASYNC110 - what ends is a process
                    await anyio.sleep(0.01)

    anyio.run(main, backend=backend)


PARENT = """
import anyio, sys
from pathlib import Path
from panpan.capabilities.local_model.server import serve_model

async def main():
    async with serve_model(Path(sys.argv[1]), name="local", context_tokens=2048, warm_up={"messages": []}):
        print("ready", flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.parametrize("moment", ["starting", "ready"])
def test_server_ends_when_its_parent_is_killed(tmp_path: Path, moment: str) -> None:
    weights = runtime_weights(tmp_path, never_reads=moment == "starting")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, weights.path], stdout=subprocess.PIPE)
    with parent:
        if moment == "ready":
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"ready\n"
        else:
            wait_until(lambda: len(weights.requests) == 1)

        parent.kill()

    wait_until(lambda: not is_running(weights.starts[0]["pid"]))
