"""Running a test on asyncio and on trio, and waiting for what other processes do."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

on_both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def run_on(backend: str, main: Callable[[], Awaitable[None]]) -> None:
    """Run `main`; a test that hangs fails."""

    async def bounded() -> None:
        with anyio.fail_after(60):
            await main()

    anyio.run(bounded, backend=backend)


async def until(is_so: Callable[[], bool]) -> None:
    """Return when `is_so()` holds; the test fails when it never does."""
    with anyio.fail_after(30):
        while not is_so():  # noqa: ASYNC110 - another process does it, and tells nobody
            await anyio.sleep(0.005)
