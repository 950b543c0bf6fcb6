import json
import os
import re
from pathlib import Path

import pytest

from panpan.capabilities.local_model.weight_sources import FetchError, PartialWeights
from panpan.capabilities.local_model.weight_store import (
    QWEN_CODER_1_5B,
    SMOLLM2_135M,
    Weights,
    WeightStore,
    models_folder,
)
from panpan.errors import ConfigError
from tests.capabilities.local_model.places import CONTENT, small_weights


@pytest.fixture
def store(tmp_path: Path) -> WeightStore:
    return WeightStore(tmp_path / "models", small_weights())


def put(store: WeightStore, content: bytes = CONTENT) -> None:
    store.folder.mkdir(parents=True, exist_ok=True)
    store.path.write_bytes(content)


@pytest.mark.parametrize("weights", [QWEN_CODER_1_5B, SMOLLM2_135M])
def test_parts_make_up_the_file_and_are_pinned(weights: Weights) -> None:
    assert sum(part.size_bytes for part in weights.parts) == weights.size_bytes
    assert len({part.member for part in weights.parts}) == len(weights.parts)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", part.requirement) for part in weights.parts)
    assert re.fullmatch("[0-9a-f]{64}", weights.sha256)
    assert re.fullmatch(
        rf"https://huggingface\.co/.+/resolve/[0-9a-f]{{40}}/{re.escape(weights.file_name)}", weights.hub_url
    )


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"XDG_CACHE_HOME": "/cache", "HOME": "/home/me"}, "/cache/panpan/models"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/panpan/models"),
        ({"XDG_CACHE_HOME": "not/absolute", "HOME": "/home/me"}, "/home/me/.cache/panpan/models"),
    ],
)
def test_weights_are_kept_in_the_users_cache(env: dict[str, str], folder: str) -> None:
    assert models_folder(env) == Path(folder)


def test_missing_weights_error_says_what_to_do(store: WeightStore) -> None:
    assert not store.is_ready
    with pytest.raises(ConfigError, match="is not set up; run: panpan local setup"):
        store.check()


def test_weights_are_read_once_and_then_known_by_their_stamp(store: WeightStore) -> None:
    put(store)
    assert store.is_ready
    assert not store.is_stamped

    assert store.check() == store.path

    assert store.is_stamped
    store.path.chmod(0)  # from here on, nobody could read it, if this test is not run by root
    assert store.check() == store.path


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x"])
def test_weights_of_another_size_are_damaged(store: WeightStore, content: bytes) -> None:
    put(store, content)

    assert not store.is_ready
    with pytest.raises(ConfigError, match=f"damaged: it has {len(content):,} bytes and not 300,000; run: panpan"):
        store.check()


def test_weights_with_another_hash_are_damaged(store: WeightStore) -> None:
    put(store, CONTENT[:-1] + b"\0")

    with pytest.raises(ConfigError, match="damaged: its SHA-256 is not that of Small; run: panpan local setup"):
        store.check()
    assert not store.is_stamped


def test_weights_changed_after_the_check_are_read_again(store: WeightStore) -> None:
    put(store)
    store.check()
    before = store.path.stat()

    with store.path.open("r+b") as file:
        file.write(b"XXXX")
    os.utime(store.path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))

    with pytest.raises(ConfigError, match="SHA-256"):
        store.check()


def test_weights_replaced_with_an_equal_time_are_read_again(store: WeightStore) -> None:
    put(store)
    store.check()
    before = store.path.stat()

    other = store.folder / "other"
    other.write_bytes(CONTENT[:-1] + b"\0")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(store.path)

    with pytest.raises(ConfigError, match="SHA-256"):
        store.check()


@pytest.mark.parametrize("stamp", [b"", b"[", b"[]", b"null", b"\xff", b"[" * 9_000, b"x" * 100_000])
def test_invalid_stamp_does_not_count(store: WeightStore, stamp: bytes) -> None:
    put(store, CONTENT[:-1] + b"\0")
    (store.folder / "small.gguf.verified.json").write_bytes(stamp)

    with pytest.raises(ConfigError, match="SHA-256"):
        store.check()


def belong_to_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file to another user; whoever is not root and cannot do so becomes another user than its owner."""
    if os.geteuid() == 0:
        os.chown(path, 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)


@pytest.mark.parametrize("name", ["small.gguf", "small.gguf.verified.json"])
def test_foreign_owned_weights_are_read_again(store: WeightStore, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store)
    store.check()
    before = store.path.stat()
    store.path.write_bytes(CONTENT[:-1] + b"\0")
    os.utime(store.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert store.is_stamped  # it cannot be seen

    belong_to_another(store.folder / name, monkeypatch)

    assert not store.is_stamped
    with pytest.raises(ConfigError, match="SHA-256"):
        store.check()


def test_stamp_of_other_weights_does_not_count(store: WeightStore) -> None:
    put(store)
    store.check()
    stamp = store.folder / "small.gguf.verified.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"sha256": "0" * 64}))

    assert not store.is_stamped


def test_pipe_in_place_of_the_weights_does_not_block(store: WeightStore) -> None:
    store.folder.mkdir()
    os.mkfifo(store.path)

    assert not store.is_ready
    with pytest.raises(ConfigError, match="not set up"):
        store.check()


def test_simultaneous_set_ups_exclude_each_other(store: WeightStore) -> None:
    with store.locked():
        with pytest.raises(FetchError, match=f"process {os.getpid()} is setting up Small; wait until it is done"):
            with store.locked():
                pass
        with pytest.raises(FetchError, match="is setting up"):
            store.remove()

    with store.locked():
        assert store.folder.stat().st_mode & 0o777 == 0o700


def test_remove_frees_all_but_the_lock(store: WeightStore) -> None:
    put(store)
    store.check()
    store.partial_path.write_bytes(b"x" * 1_000)
    (store.scratch_folder / "tmp").mkdir(parents=True)
    (store.scratch_folder / "tmp" / "wheel").write_bytes(b"y" * 500)

    assert store.stored_bytes == len(CONTENT) + 1_500
    assert store.remove() == len(CONTENT) + 1_500

    assert [path.name for path in store.folder.iterdir()] == ["small.gguf.lock"]
    assert store.remove() == 0


def test_remove_makes_nothing_where_nothing_is(store: WeightStore) -> None:
    assert store.remove() == 0
    assert not store.folder.exists()


def test_partial_file_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "partial"

    with PartialWeights(path, 10) as partial:
        partial.write(b"abc")
        partial.write(b"defg")
        partial.cut(5)
    with PartialWeights(path, 10) as partial:
        assert partial.size == 5
        partial.write(bytearray(b"VWXYZ"))
        assert partial.is_whole

    assert path.read_bytes() == b"abcdeVWXYZ"
    assert path.stat().st_mode & 0o777 == 0o600


def test_partial_file_that_is_too_long_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "partial"
    path.write_bytes(b"x" * 11)

    with PartialWeights(path, 10) as partial:
        assert partial.size == 0


def test_full_disk_keeps_the_written_bytes(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    link = tmp_path / "partial"
    link.touch()
    with PartialWeights(link, 10) as partial:
        partial.write(b"abc")
        full = os.open("/dev/full", os.O_RDWR)
        os.dup2(full, partial._fd)
        os.close(full)

        with pytest.raises(FetchError, match=rf"the disk of {tmp_path} is full; make space and run panpan local setup"):
            partial.write(b"def")

        assert partial.size == 3
