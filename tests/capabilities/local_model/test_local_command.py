import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import click
import pytest
from click.testing import CliRunner, Result

from panpan.capabilities.local_model.cli import LocalModel, ProgressLine
from panpan.capabilities.local_model.cli import local as command
from panpan.capabilities.local_model.server import ServedModel, announce, running_server
from panpan.capabilities.local_model.setup import Progress
from panpan.capabilities.local_model.weight_sources import FetchError, SourceUnavailableError
from panpan.capabilities.local_model.weight_store import RUNTIME as PACKAGE
from panpan.capabilities.local_model.weight_store import NoRuntimeError, WeightStore, require_machine
from panpan.errors import ConfigError, PanpanError
from panpan.system.environment import install_command
from tests.capabilities.local_model.places import CONTENT, MemorySource, small_weights
from tests.fakes.runtime_weights import RUNTIME, RuntimeWeights, is_running

MB = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> WeightStore:
    return WeightStore(tmp_path / "models", small_weights())


def local(
    store: WeightStore,
    *arguments: str,
    source: MemorySource | None = None,
    answer: str | None = None,
    fault: PanpanError | None = None,
    env: Mapping[str, str] | None = None,
) -> Result:
    """Run `panpan local`; with an answer, somebody is there to be asked."""

    def require() -> None:
        if fault is not None:
            raise fault

    model = LocalModel(store, [source or MemorySource()], answer is not None, require)
    return CliRunner().invoke(command, list(arguments), obj=model, input=answer, env=env, standalone_mode=False)


def test_setup_says_what_it_fetches_and_fetches_it(store: WeightStore) -> None:
    result = local(store, "setup", "--yes")

    assert result.return_value == 0, result.exception
    assert store.is_stamped
    told, _, done = result.output.partition("fetching")
    for text in (
        "Small",
        "size     0 MB",
        "Apache-2.0",
        "https://example.org/small",
        "memory",
        str(store.path),
        "free",
    ):
        assert text in told
    assert done.splitlines()[-1] == "Ready. Try:  panpan --model local"


def test_setup_does_nothing_if_it_is_done(store: WeightStore) -> None:
    local(store, "setup", "--yes")
    source = MemorySource()

    result = local(store, "setup", source=source)

    assert result.return_value == 0
    assert result.output == f"Small is set up: {store.path}\n"
    assert not source.has_been_asked


def test_setup_asks_and_takes_no_for_an_answer(store: WeightStore) -> None:
    source = MemorySource()

    result = local(store, "setup", source=source, answer="n\n")

    assert result.return_value == 1
    assert "Fetch it? [Y/n]" in result.output
    assert not source.has_been_asked


def test_setup_asks_and_takes_yes_for_an_answer(store: WeightStore) -> None:
    assert local(store, "setup", answer="y\n").return_value == 0
    assert store.is_stamped


@pytest.mark.parametrize("answer", [None, "y\ny\n", "n\n"])
def test_setup_installs_what_runs_the_model(store: WeightStore, answer: str | None) -> None:
    ran: list[Sequence[str]] = []

    def require() -> None:
        if not ran:
            raise NoRuntimeError("the embedded model needs the package xllamacpp")

    def install(command: Sequence[str]) -> int:
        ran.append(command)
        return 0

    model = LocalModel(store, [MemorySource()], answer is not None, require, install)
    flags = [] if answer else ["--yes"]
    result = CliRunner().invoke(command, ["setup", *flags], obj=model, input=answer, standalone_mode=False)

    assert "needs the package xllamacpp, 34 MB:\n  " in result.output
    assert result.return_value == (1 if answer == "n\n" else 0), result.exception
    assert [list(one) for one in ran] == ([] if answer == "n\n" else [list(install_command(PACKAGE))])
    assert store.is_stamped == bool(ran)


def test_setup_reports_a_package_that_cannot_be_installed(store: WeightStore) -> None:
    def require() -> None:
        raise NoRuntimeError("the embedded model needs the package xllamacpp")

    model = LocalModel(store, [MemorySource()], False, require, lambda command: 2)
    result = CliRunner().invoke(command, ["setup", "--yes"], obj=model, standalone_mode=False)

    assert isinstance(result.exception, ConfigError)
    assert "could not be installed (exit code 2); run: " in str(result.exception)


def test_setup_without_a_user_needs_yes(store: WeightStore) -> None:
    source = MemorySource()

    result = local(store, "setup", source=source)

    assert isinstance(result.exception, ConfigError)
    assert str(result.exception) == "there is no terminal to ask on; run: panpan local setup --yes"
    assert "Apache-2.0" in result.output
    assert not source.has_been_asked


def test_setup_says_what_is_present(store: WeightStore) -> None:
    store.folder.mkdir()
    store.partial_path.write_bytes(CONTENT[:100_000])

    result = local(store, "setup", "--yes")

    assert "0 MB of them are here already" in result.output
    assert "fetching  33 %" in result.output


def test_setup_refuses_on_a_machine_that_cannot_run_the_model(store: WeightStore) -> None:
    source = MemorySource()

    result = local(store, "setup", "--yes", source=source, fault=ConfigError("no runtime; run: pip"))

    assert str(result.exception) == "no runtime; run: pip"
    assert not source.has_been_asked


def test_setup_that_fails_says_why(store: WeightStore) -> None:
    result = local(store, "setup", "--yes", source=MemorySource(b"", SourceUnavailableError("memory is away")))

    assert isinstance(result.exception, FetchError)
    assert "memory is away" in str(result.exception)
    assert result.exception.exit_code == 1


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_signal_ends_setup_cleanly(store: WeightStore, number: str, code: int) -> None:
    class Interrupted(MemorySource):
        async def fetch(self, partial):
            async with aclosing(super().fetch(partial)) as lengths:
                async for length in lengths:
                    yield length
                    os.kill(os.getpid(), getattr(signal, number))
                    await anyio.sleep(30)

    result = local(store, "setup", "--yes", source=Interrupted())

    assert result.return_value == code
    assert "Stopped. 0 MB are kept; panpan local setup goes on there." in result.output
    assert store.partial_bytes == 100_000
    assert local(store, "setup", "--yes").return_value == 0


def test_status_describes_each_state(store: WeightStore) -> None:
    def weights_line() -> tuple[int, str]:
        result = local(store, "status")
        return result.return_value, next(line for line in result.output.splitlines() if line.startswith("weights"))

    assert weights_line() == (1, "weights  not there; run: panpan local setup")
    store.folder.mkdir()
    store.partial_path.write_bytes(CONTENT[:150_000])
    assert weights_line() == (1, "weights  partial, 50 %; to go on, run: panpan local setup")
    store.path.write_bytes(b"x")
    assert weights_line() == (1, "weights  damaged; run: panpan local setup")
    store.path.write_bytes(CONTENT[:-1] + b"\0")
    assert "its SHA-256 is not that of Small" in weights_line()[1]
    store.path.write_bytes(CONTENT)
    assert weights_line() == (0, "weights  ready, and verified")


def test_status_describes_a_machine_that_cannot_run_the_model(store: WeightStore) -> None:
    local(store, "setup", "--yes")

    result = local(store, "status", fault=ConfigError("no AVX2"))

    assert result.return_value == 1
    assert "runtime  no AVX2" in result.output
    assert str(store.path) in result.output
    assert "Apache-2.0" in result.output


def test_remove_asks_and_says_what_it_frees(store: WeightStore) -> None:
    local(store, "setup", "--yes")

    assert local(store, "remove", answer="n\n").return_value == 1
    assert store.is_ready
    result = local(store, "remove", answer="y\n")

    assert result.return_value == 0
    assert f"Small takes 0 MB in {store.folder}." in result.output
    assert result.output.endswith("Freed 0 MB.\n")
    assert local(store, "remove").output == "There is nothing to remove.\n"


def test_remove_without_a_user_needs_yes(store: WeightStore) -> None:
    local(store, "setup", "--yes")

    result = local(store, "remove")

    assert str(result.exception) == "there is no terminal to ask on; run: panpan local remove --yes"
    assert local(store, "remove", "--yes").return_value == 0
    assert not store.path.exists()


def test_remove_leaves_a_model_that_is_being_served(store: WeightStore) -> None:
    local(store, "setup", "--yes")

    with announce(store.folder, ServedModel("http://127.0.0.1:1/v1", "key")):
        result = local(store, "remove", "--yes")

    assert (
        str(result.exception) == "panpan local run serves the model already, at http://127.0.0.1:1/v1; end that first"
    )
    assert store.is_ready


def test_served_model_is_not_loaded_twice(store: WeightStore) -> None:
    local(store, "setup", "--yes")

    with announce(store.folder, ServedModel("http://127.0.0.1:1/v1", "key")):
        result = local(store, "run")

    assert str(result.exception) == (
        "panpan local run serves the model already, at http://127.0.0.1:1/v1; use that, or end it"
    )
    assert "Starting" not in result.output


def test_status_says_where_it_is_served(store: WeightStore) -> None:
    local(store, "setup", "--yes")

    with announce(store.folder, ServedModel("http://127.0.0.1:1/v1", "the-secret-key")):
        served = local(store, "status").output
    not_served = local(store, "status").output

    assert "served   at http://127.0.0.1:1/v1, by panpan local run\n" in served
    assert "the-secret-key" not in served
    assert "served   no; sessions start it themselves\n" in not_served


@pytest.mark.parametrize("name", ["status", "run"])
def test_full_check_of_the_weights_is_announced(store: WeightStore, name: str) -> None:
    store.folder.mkdir()
    store.path.write_bytes(CONTENT[:-1] + b"\0")

    assert "verifying 0 MB ...\n" in local(store, name).output


def test_run_without_weights_says_what_to_do(store: WeightStore) -> None:
    result = local(store, "run")

    assert str(result.exception) == "the embedded model is not set up; run: panpan local setup"


@pytest.mark.parametrize("key", ["", "short", "with a blank", "ümlaut-key"])
def test_run_takes_no_guessable_key(store: WeightStore, key: str) -> None:
    result = local(store, "run", "--api-key", key)

    assert isinstance(result.exception, click.BadParameter)
    assert result.exception.param_hint == "--api-key"


@pytest.mark.parametrize("key", ["short", "with a blank"])
def test_key_in_the_environment_obeys_the_same_rule(store: WeightStore, key: str) -> None:
    result = local(store, "run", env={"PANPAN_LOCAL_API_KEY": key})

    assert isinstance(result.exception, click.BadParameter)
    assert result.exception.param_hint == "PANPAN_LOCAL_API_KEY"


@pytest.mark.parametrize(
    ("end", "given", "env"),
    [("signal", [], {"PANPAN_LOCAL_API_KEY": "chosen-key"}), ("death", ["--api-key", "chosen-key"], {})],
)
def test_run_serves_until_a_signal_or_until_the_server_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, given: Sequence[str], env: Mapping[str, str]
) -> None:
    monkeypatch.syspath_prepend(RUNTIME)
    monkeypatch.setenv("PYTHONPATH", str(RUNTIME))
    store = WeightStore(tmp_path / "models", small_weights(b'{"replies": []}'))
    store.folder.mkdir()
    store.path.write_bytes(b'{"replies": []}')
    weights = RuntimeWeights(store.path)

    def end_it() -> None:
        while running_server(store.folder) is None:
            time.sleep(0.01)
        os.kill(os.getpid() if end == "signal" else weights.starts[0]["pid"], signal.SIGINT)

    threading.Thread(target=end_it, daemon=True).start()
    result = local(store, "run", *given, env=env)

    assert "base URL  http://127.0.0.1:" in result.output
    assert "API key   chosen-key" in result.output
    assert running_server(store.folder) is None
    assert not is_running(weights.starts[0]["pid"])
    if end == "signal":
        assert result.return_value == 0
    else:
        assert str(result.exception) == "the server of the model ended by itself; start it again: panpan local run"


@pytest.mark.parametrize("machine", ["x86_64", "AMD64"])
def test_processor_without_avx2_is_reported(tmp_path: Path, machine: str) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu sse2 avx\n")

    with pytest.raises(ConfigError, match="does not run on this processor: it has no AVX2"):
        require_machine(machine, tmp_path / "cpuinfo")


@pytest.mark.parametrize(
    ("machine", "told"), [("x86_64", "flags\t\t: fpu avx avx2\n"), ("x86_64", ""), ("aarch64", "flags : fp\n")]
)
def test_only_an_x86_processor_without_avx2_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, told: str
) -> None:
    (tmp_path / "xllamacpp.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "cpuinfo").write_text(told)

    require_machine(machine, tmp_path / "cpuinfo")
    require_machine(machine, tmp_path / "missing")


def test_missing_runtime_is_reported_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)

    with pytest.raises(ConfigError, match="needs the package xllamacpp; run: panpan local setup"):
        require_machine("aarch64")


def shown(*steps: Progress, is_terminal: bool, seconds_each: float = 1.0) -> str:
    out = io.StringIO()
    line = ProgressLine(out, is_terminal=is_terminal, clock=_clock(seconds_each))
    for step in steps:
        line.show(step)
    line.close()
    return out.getvalue()


def _clock(seconds_each: float) -> Callable[[], float]:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += seconds_each
        return now

    return clock


def test_progress_without_a_terminal_has_a_line_for_each_tenth() -> None:
    steps = [Progress("fetch", number * MB, 200 * MB) for number in range(201)]
    steps += [Progress("verify", number * MB, 200 * MB) for number in range(201)]

    lines = shown(*steps, is_terminal=False).splitlines()

    assert lines[0] == "fetching   0 %  0 of 200 MB"
    assert lines[1] == "fetching  10 %  20 of 200 MB  1.0 MB/s  3:00 left"
    assert lines[10:] == ["fetching 100 %  200 of 200 MB  1.0 MB/s  0:00 left", "verifying 200 MB"]
    assert len(lines) == 12


def test_progress_on_a_terminal_changes_in_place() -> None:
    text = shown(Progress("fetch", 0, 200 * MB), Progress("fetch", 100 * MB, 200 * MB), is_terminal=True)

    first, second = text.removeprefix("\r").removesuffix("\n").split("\r")
    assert first == "fetching [....................]   0 %  0 of 200 MB"
    assert second == "fetching [##########..........]  50 %  100 of 200 MB  100.0 MB/s  0:01 left"
    assert text.count("\n") == 1
    assert max(len(first), len(second)) < 80


def test_progress_is_not_drawn_too_often() -> None:
    steps = [Progress("fetch", number * MB, 1_000 * MB) for number in range(1_001)]

    assert shown(*steps, is_terminal=True, seconds_each=0.01).count("\r") < 110


@pytest.mark.parametrize("is_terminal", [True, False])
def test_note_has_a_line_of_its_own(is_terminal: bool) -> None:
    text = shown(
        Progress("fetch", 0, 200 * MB), Progress("fetch", 0, 200 * MB, "the hub is away"), is_terminal=is_terminal
    )

    assert "the hub is away" in [line.rpartition("\r")[2] for line in text.split("\n")]


def test_speed_ignores_bytes_fetched_earlier() -> None:
    text = shown(Progress("fetch", 100 * MB, 200 * MB), Progress("fetch", 120 * MB, 200 * MB), is_terminal=False)

    assert text.splitlines()[-1] == "fetching  60 %  120 of 200 MB  20.0 MB/s  0:04 left"
