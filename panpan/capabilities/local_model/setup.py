"""Sets up the embedded model: fetches its weights from the first source that has them, and verifies them.

The rule: at every instant there are the whole weights, or a partial file to go on with, or nothing; whoever leaves
early, and whatever fails, leaves it so.
"""

import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Literal

import anyio

from panpan.capabilities.local_model.fetch_registry import RegistrySource
from panpan.capabilities.local_model.weight_sources import (
    SETUP_COMMAND,
    FetchError,
    HubSource,
    PartialWeights,
    Source,
    SourceUnavailableError,
)
from panpan.capabilities.local_model.weight_store import Verification, WeightStore, megabytes
from panpan.models.model_choice import checked_address
from panpan.types.dataclass import dataclass

_SPARE_BYTES = 100_000_000
"""Left free on the disk: a set-up must not be what fills it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Stage of a set-up and the bytes done in it."""

    stage: Literal["fetch", "verify"]
    done_bytes: int
    total_bytes: int
    note: str = ""
    """Something that the user should read, such as why another source is asked now."""


def usual_sources(store: WeightStore, env: Mapping[str, str]) -> tuple[Source, ...]:
    """Return the sources of weights in order: the model hub, or the one that `HF_ENDPOINT` names, then the registry.

    Raises:
        ConfigError: `HF_ENDPOINT` is no address.
    """
    url = store.weights.hub_url
    if endpoint := env.get("HF_ENDPOINT"):
        url = url.replace("https://huggingface.co", checked_address(endpoint, "HF_ENDPOINT"), 1)
    return HubSource(url), RegistrySource(store.weights.parts, store.scratch_folder, env)


def free_bytes(folder: Path) -> int:
    """Return the bytes that the user may still write to the disk of a folder, which may not exist yet."""
    place = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(place).free


async def fetch_weights(
    store: WeightStore,
    sources: Sequence[Source] | None = None,
    *,
    free: Callable[[Path], int] = free_bytes,
) -> AsyncGenerator[Progress, None]:
    """Make the weights of a store ready, and yield how far that is. Consume it under `aclosing`.

    Weights that are there already are verified and, if they are the right ones, kept. What an earlier set-up fetched is
    gone on with.

    Raises:
        FetchError: They could not be fetched, or what was fetched is not what it must be.
        ConfigError: The folder cannot be used.
    """
    with store.locked():
        if store.path.exists():
            async with aclosing(_keep_or_remove(store)) as steps:
                async for step in steps:
                    yield step
        if store.path.exists():
            return
        with suppress(OSError):  # left by a killed set-up
            store.clear_scratch()
        sources = usual_sources(store, os.environ) if sources is None else sources
        _require_space(store, sources, free)
        with PartialWeights(store.partial_path, store.weights.size_bytes) as partial:
            async with aclosing(_completed(store, partial, sources, free)) as steps:
                async for step in steps:
                    yield step


async def _keep_or_remove(store: WeightStore) -> AsyncGenerator[Progress, None]:
    """Make sure of weights that are there, or remove them if they are not the right ones."""
    if store.is_stamped:
        return
    if store.is_ready:
        with Verification(store.path) as verification:
            while await anyio.to_thread.run_sync(verification.step):
                yield _progress(store, "verify", verification.done_bytes)
        if store.accept(verification.stamp):
            return
    _remove(store.path)
    yield _progress(store, "fetch", 0, f"{store.path} was damaged and is removed; it is fetched again")


async def _completed(
    store: WeightStore, partial: PartialWeights, sources: Sequence[Source], free: Callable[[Path], int]
) -> AsyncGenerator[Progress, None]:
    """Make the partial file whole and then the weights; start over if it turns out to be something else.

    A source that was asked for the file from its beginning is not asked again, since it may be the one that is wrong.
    One that only went on with what was there may be right.
    """
    untried = list(sources)
    reasons: list[str] = []
    while True:
        async with aclosing(_fetched(store, partial, untried, reasons)) as steps:
            async for step in steps:
                yield step
        await anyio.to_thread.run_sync(partial.sync)
        with Verification(store.partial_path) as verification:
            while await anyio.to_thread.run_sync(verification.step):
                yield _progress(store, "verify", verification.done_bytes)
        stamp = verification.stamp
        if stamp is not None and stamp.sha256 == store.weights.sha256:
            store.complete(stamp)
            return
        reasons.append(f"what was fetched is not {store.weights.name}: its SHA-256 is another")
        if not untried:
            _remove(store.partial_path)
            raise FetchError(f"{reasons[-1]}; it was removed, run {SETUP_COMMAND} to fetch it again")
        await anyio.to_thread.run_sync(partial.restart)
        _require_space(store, untried, free)


async def _fetched(
    store: WeightStore, partial: PartialWeights, untried: list[Source], reasons: list[str]
) -> AsyncGenerator[Progress, None]:
    """Make the partial file whole; where one source fails, the next goes on.

    Sources that are asked for all of the file leave `untried`; `reasons` gets why they failed.
    """
    for source in tuple(untried):
        if partial.is_whole:
            return
        if not partial.size:
            untried.remove(source)
        note = f"{reasons[-1]}; trying {source.title}" if reasons else ""
        yield _progress(store, "fetch", partial.size, note)
        try:
            async with aclosing(source.fetch(partial)) as lengths:
                async for length in lengths:
                    yield _progress(store, "fetch", length)
        except SourceUnavailableError as exc:
            reasons.append(str(exc))
    if not partial.is_whole:
        kept = f" (it goes on at {megabytes(partial.size)})" if partial.size else ""
        raise FetchError(
            f"{store.weights.name} could not be fetched: {'; '.join(reasons)}; run {SETUP_COMMAND} again later{kept}, "
            f"or put {store.weights.file_name} into {store.folder} yourself"
        )


def _progress(store: WeightStore, stage: Literal["fetch", "verify"], done_bytes: int, note: str = "") -> Progress:
    return Progress(stage, done_bytes, store.weights.size_bytes, note)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as exc:
        raise FetchError(f"cannot remove {path}: {exc.strerror}") from exc


def _require_space(store: WeightStore, sources: Sequence[Source], free: Callable[[Path], int]) -> None:
    missing = store.weights.size_bytes - min(store.partial_bytes, store.weights.size_bytes)
    needed = missing + max((source.scratch_bytes for source in sources), default=0) + _SPARE_BYTES if missing else 0
    there = free(store.folder)
    if there < needed:
        raise FetchError(
            f"the disk of {store.folder} has {megabytes(there)} free and {megabytes(needed)} are needed; make space, "
            "or set XDG_CACHE_HOME to a folder on another disk"
        )
