"""Fixtures for browser tests: a Chromium for each file of tests, and a network with public names and local servers."""

import importlib.util
import os
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from panpan.capabilities.web.browser.browser import Browser, BrowserTimeouts
from panpan.capabilities.web.browser.running_chromium import Launch, find_chromium
from panpan.errors import ToolError
from panpan.system.environment import child_environment
from tests.fakes.outside import OTHER, PUBLIC, Network
from tests.fakes.web_site import Forbidden, Site, forbidden_place, served

PATIENT = BrowserTimeouts(open_s=10, begin_s=8, load_s=2, scroll_s=0.25, answer_s=60)
"""Waits for pages that will be readable: a busy machine may take its time."""
HASTY = BrowserTimeouts(open_s=10, begin_s=8, load_s=2, scroll_s=0.25, answer_s=1)
"""Waits for pages that never will be."""


@pytest.fixture(scope="session")
def chromium_program() -> str:
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed")
    try:
        return find_chromium("auto", os.environ.get("PATH", ""), os.environ)
    except ToolError as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with served(Site()) as serving:
        yield serving


@pytest.fixture(scope="module")
def forbidden() -> Iterator[Forbidden]:
    with forbidden_place() as place:
        yield place


@pytest.fixture(scope="module")
def network(site: Site) -> Network:
    names = {
        "paper.example.org": [PUBLIC], "cdn.example.net": [OTHER],
        "inside.example.org": ["127.0.0.1"],
        "mixed.example.org": [PUBLIC, "10.0.0.1"], "metadata.example.org": ["169.254.169.254"],
    }  # fmt: skip
    return Network(names=dict(names), ports={(PUBLIC, 80): site.port, (OTHER, 80): site.port})


@pytest.fixture(scope="module")
def program(chromium_program: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a Chromium that treats the test's site as secure, so that it may have workers of every kind."""
    wrapper = Path(tmp_path_factory.mktemp("program")) / "chromium"
    as_good = "--unsafely-treat-insecure-origin-as-secure=http://paper.example.org"
    wrapper.write_text(f'#!/bin/sh\nexec "{chromium_program}" {as_good} "$@"\n')
    wrapper.chmod(0o700)
    return str(wrapper)


def _browser(program: str, network: Network, timeouts: BrowserTimeouts) -> Browser:
    return Browser(network.web, lambda: Launch(program, child_environment(), max_data_bytes=1 << 30), timeouts=timeouts)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(program: str, network: Network) -> AsyncGenerator[Browser, None]:
    browser = _browser(program, network, PATIENT)
    yield browser
    await browser.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hasty(program: str, network: Network) -> AsyncGenerator[Browser, None]:
    browser = _browser(program, network, HASTY)
    yield browser
    await browser.aclose()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Yield a folder with a short path, since paths of Chromium's sockets may only have about a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="pp-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
