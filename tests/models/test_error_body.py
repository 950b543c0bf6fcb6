import gzip

import anyio
import httpx2
import pytest

from panpan.models.error_body import MAX_ERROR_BYTES, bound_error_bodies
from tests.models.loopback import Answer, Stall, serving
from tests.models.test_transport import BOTH, JSON, Make, failure


async def body_of(answer: Answer, *, within_s: float = 60) -> bytes:
    """Return what a client with bounds reads of this answer."""
    async with serving(answer) as server, httpx2.AsyncClient(timeout=None, trust_env=False) as client:
        bound_error_bodies(client, within_s=within_s)
        with anyio.fail_after(30):
            return (await client.post(server.url)).content


async def test_error_body_is_read_up_to_a_limit() -> None:
    flood = [b"x" * 50_000] * 3

    assert await body_of(Answer([*flood, Stall()], status=500)) == b"x" * MAX_ERROR_BYTES
    assert await body_of(Answer(flood, status=200)) == b"x" * 150_000


async def test_endless_error_body_is_read_for_a_time() -> None:
    assert await body_of(Answer([b"sorry", Stall()], status=503), within_s=1) == b"sorry"


async def test_broken_error_body_keeps_its_beginning() -> None:
    assert await body_of(Answer([b"sorry"], status=503, is_cut=True)) == b"sorry"


@pytest.mark.parametrize("encoding", ["gzip", "br, gzip"])
async def test_encoded_error_body_is_not_unpacked(encoding: str) -> None:
    bomb = gzip.compress(b"x" * 10_000_000)

    assert await body_of(Answer([bomb], status=400, headers={"content-encoding": encoding})) == b""


@BOTH
async def test_endless_error_body_still_gives_its_status(make: Make, stream: bytes) -> None:
    endless = Answer([b'{"error": {"message": "', *[b"x" * 50_000] * 3, Stall()], status=400, headers=JSON)
    packed = Answer([gzip.compress(b"x" * 1000)], status=429, headers=JSON | {"content-encoding": "gzip"})

    assert (await failure(make, endless, idle_timeout_s=60)).status == 400
    assert (await failure(make, packed)).status == 429
