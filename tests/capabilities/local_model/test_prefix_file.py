import os
import stat
from pathlib import Path

import pytest

from panpan.capabilities.local_model.serve import intact_prefix, keep_prefix, prefix_files, temporary_prefix_name


def keep(folder: Path, key: str, content: bytes = b"what was read") -> Path:
    (folder / temporary_prefix_name()).write_bytes(content)
    keep_prefix(folder, key)
    (kept,) = prefix_files(folder)
    return kept


def test_kept_prefix_is_private_and_found_by_its_key(tmp_path: Path) -> None:
    kept = keep(tmp_path, "a1")

    assert intact_prefix(tmp_path, "a1") == kept.name
    assert intact_prefix(tmp_path, "a") is None
    assert intact_prefix(tmp_path, "b2") is None
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_kept_prefix_is_replaced_by_another(tmp_path: Path) -> None:
    first = keep(tmp_path, "a1")
    (tmp_path / "prefix-of-an-older-panpan.bin").write_bytes(b"old")
    second = keep(tmp_path, "a1", b"something else")

    assert second != first
    assert intact_prefix(tmp_path, "a1") == second.name


@pytest.mark.parametrize("damage", ["a bit", "its end", "all of it", "link", "pipe"])
def test_damaged_prefix_is_removed(tmp_path: Path, damage: str) -> None:
    kept = keep(tmp_path, "a1", bytes(5_000))
    match damage:
        case "a bit":
            kept.write_bytes(bytes(2_500) + b"\1" + bytes(2_499))
        case "its end":
            kept.write_bytes(bytes(4_999))
        case "all of it":
            kept.write_bytes(b"")
        case "link":
            kept.rename(tmp_path / "elsewhere")
            kept.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            kept.unlink()
            os.mkfifo(kept)

    assert intact_prefix(tmp_path, "a1") is None
    assert not list(prefix_files(tmp_path))


def test_unsaved_prefix_cannot_be_kept_and_costs_nothing(tmp_path: Path) -> None:
    kept = keep(tmp_path, "a1")

    with pytest.raises(FileNotFoundError):
        keep_prefix(tmp_path, "b2")

    assert intact_prefix(tmp_path, "a1") == kept.name
