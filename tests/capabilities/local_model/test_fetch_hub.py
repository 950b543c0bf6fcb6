import socket
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial as bound
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.local_model.weight_sources import FetchError, HubSource, PartialWeights, SourceUnavailableError
from tests.capabilities.local_model.places import CONTENT, Hub, all_of


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


async def fetched(hub: Hub, path: Path, *, already: bytes = b"") -> Sequence[int]:
    """Fetch all of the file behind what is there already, and return how it grew."""
    async with hub.serving() as url:
        with PartialWeights(path, len(CONTENT)) as partial:
            partial.write(already)
            async with aclosing(HubSource(url, idle_s=30, pause_s=0).fetch(partial)) as lengths:
                return await all_of(lengths)


async def test_hub_file_is_fetched_whole(tmp_path: Path) -> None:
    hub = Hub()

    lengths = await fetched(hub, tmp_path / "partial")

    assert lengths[-1] == len(CONTENT)
    assert (tmp_path / "partial").read_bytes() == CONTENT
    assert hub.ranges == [""]


def test_hub_fetch_works_on_trio(tmp_path: Path) -> None:
    anyio.run(bound(fetched, Hub(), tmp_path / "partial", already=CONTENT[:7]), backend="trio")

    assert (tmp_path / "partial").read_bytes() == CONTENT


@pytest.mark.parametrize("knows_ranges", [True, False])
@pytest.mark.parametrize("length", [1, 150_000, len(CONTENT) - 1])
async def test_hub_fetch_resumes(tmp_path: Path, knows_ranges: bool, length: int) -> None:
    hub = Hub(knows_ranges=knows_ranges)

    lengths = await fetched(hub, tmp_path / "partial", already=CONTENT[:length])

    assert (tmp_path / "partial").read_bytes() == CONTENT
    assert hub.ranges == [f"bytes={length}-"]
    assert min(lengths) > length


@pytest.mark.parametrize("knows_ranges", [True, False])
async def test_cut_connection_is_made_again(tmp_path: Path, knows_ranges: bool) -> None:
    hub = Hub(cuts=[100_000, 150_000], knows_ranges=knows_ranges)

    await fetched(hub, tmp_path / "partial")

    assert (tmp_path / "partial").read_bytes() == CONTENT
    assert hub.ranges == ["", "bytes=100000-", f"bytes={250_000 if knows_ranges else 150_000}-"]


async def test_redirect_is_followed_with_the_range(tmp_path: Path) -> None:
    hub = Hub(redirects=2)

    await fetched(hub, tmp_path / "partial", already=CONTENT[:1_000])

    assert (tmp_path / "partial").read_bytes() == CONTENT
    assert hub.ranges == ["bytes=1000-"]


async def test_hub_that_only_breaks_off_is_given_up(tmp_path: Path) -> None:
    hub = Hub(cuts=[5_000, 0, 0, 0])

    with pytest.raises(SourceUnavailableError, match=r"^127\.0\.0\.1 cannot be reached: "):
        await fetched(hub, tmp_path / "partial")

    assert (tmp_path / "partial").read_bytes() == CONTENT[:5_000]
    assert len(hub.ranges) == 2


@pytest.mark.parametrize(
    ("hub", "reason"),
    [
        (Hub(status=404), "refuses: HTTP status 404"),
        (Hub(status=416), "refuses: HTTP status 416"),
        (Hub(status=503), "refuses: HTTP status 503"),
        (Hub(content=b"<html>please log in"), "answers with something that is not the file"),
        (Hub(content=CONTENT + b"x"), "answers with something that is not the file"),
        (Hub(headers={"content-encoding": "gzip"}), "in an unrequested encoding"),
        (Hub(redirects=100), "cannot be reached: Exceeded maximum allowed redirects"),
        (Hub(status=302, headers={"location": "http://127.0.0.1:99999/"}), r"127\.0\.0\.1 cannot be reached: .*port"),
        (Hub(status=302, headers={"location": "http://[::1"}), r"127\.0\.0\.1 cannot be reached: ."),
    ],
)
async def test_other_file_is_refused(tmp_path: Path, hub: Hub, reason: str) -> None:
    with pytest.raises(SourceUnavailableError, match=reason):
        await fetched(hub, tmp_path / "partial")

    assert (tmp_path / "partial").read_bytes() == b""


@pytest.mark.parametrize(
    "content_range",
    [
        "bytes 0-299999/300000",
        "bytes 1000-299999/*",
        "bytes 1000-5000/5001",
        "pages 1000-1/300000",
        f"bytes {'1' * 5_000}-299999/300000",
        f"bytes 1000-299999/{'3' * 5_000}",
        "",
    ],
)
async def test_unrequested_range_is_refused(tmp_path: Path, content_range: str) -> None:
    hub = Hub(headers={"content-range": content_range})

    with pytest.raises(SourceUnavailableError, match="something that is not the file"):
        await fetched(hub, tmp_path / "partial", already=CONTENT[:1_000])

    assert (tmp_path / "partial").read_bytes() == CONTENT[:1_000]


async def test_silent_connection_counts_as_cut(tmp_path: Path) -> None:
    hub = Hub(is_stalled=True)

    async with hub.serving() as url:
        with PartialWeights(tmp_path / "partial", len(CONTENT)) as partial:
            async with aclosing(HubSource(url, idle_s=1, pause_s=0).fetch(partial)) as lengths:
                await all_of(lengths)

    assert (tmp_path / "partial").read_bytes() == CONTENT
    assert len(hub.ranges) == 2


async def test_leaving_early_keeps_the_bytes(tmp_path: Path) -> None:
    hub = Hub(content=CONTENT * 10, is_stalled=True)

    with anyio.CancelScope() as scope:
        async with hub.serving() as url:
            with PartialWeights(tmp_path / "partial", len(hub.content)) as partial:
                async with aclosing(HubSource(url, idle_s=60).fetch(partial)) as lengths:
                    async for _ in lengths:
                        scope.cancel()

    kept = (tmp_path / "partial").read_bytes()
    assert len(kept) >= 1 << 20
    assert hub.content.startswith(kept)


async def test_missing_hub_is_reported(tmp_path: Path) -> None:
    with socket.socket() as deaf, PartialWeights(tmp_path / "partial", len(CONTENT)) as partial:
        deaf.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(SourceUnavailableError, match=r"^127\.0\.0\.1 cannot be reached: "):
            await all_of(HubSource(f"http://127.0.0.1:{deaf.getsockname()[1]}/file").fetch(partial))


async def test_impossible_port_is_reported(tmp_path: Path) -> None:
    with PartialWeights(tmp_path / "partial", len(CONTENT)) as partial:
        with pytest.raises(SourceUnavailableError, match=r"^127\.0\.0\.1 cannot be reached: .*port"):
            await all_of(HubSource("http://127.0.0.1:99999/file").fetch(partial))


async def test_failing_disk_is_not_blamed_on_the_hub(tmp_path: Path) -> None:
    class FailingFile(PartialWeights):
        def write(self, data: bytes | bytearray) -> None:
            raise FetchError("the disk failed")

    async with Hub().serving() as url:
        with FailingFile(tmp_path / "partial", len(CONTENT)) as partial:
            with pytest.raises(FetchError, match=r"^the disk failed$") as caught:
                await all_of(HubSource(url).fetch(partial))

    assert not isinstance(caught.value, SourceUnavailableError)


async def test_invalid_proxy_address_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://me:secret123@proxy")

    with PartialWeights(tmp_path / "partial", len(CONTENT)) as partial:
        with pytest.raises(SourceUnavailableError, match=r"cannot be reached: .*nonsense") as caught:
            await all_of(HubSource("http://127.0.0.1/file").fetch(partial))

    assert "secret123" not in str(caught.value)
