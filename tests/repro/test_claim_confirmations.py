"""Confirmations of claims: kept beside no file that a model can write, for one folder and one content."""

import json
from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.confirmations import Confirmations

CLAIM = Claim.model_validate(
    {
        "id": "table-1/trimmed-mean",
        "value": "3.50",
        "command": "python experiment.py --seed {seed}",
        "extract": {"json": "metrics.json", "at": "mean"},
        "tolerance": {"absolute": 0.01},
        "seeds": (1, 2),
        "needs": {"programs": ("python3",)},
    }
)


@pytest.fixture
def confirmations(tmp_path: Path) -> Confirmations:
    return Confirmations(tmp_path / "work", tmp_path / "home")


def kept_file(tmp_path: Path) -> Path:
    (file,) = (tmp_path / "home").rglob("*.json")
    return file


def test_confirmation_holds_for_another_reader(confirmations: Confirmations, tmp_path: Path) -> None:
    assert not confirmations.confirms(CLAIM)
    confirmations.keep([CLAIM])
    assert Confirmations(tmp_path / "work", tmp_path / "home").confirms(CLAIM)


def test_word_of_the_author_confirms_nothing(confirmations: Confirmations) -> None:
    said = CLAIM.model_copy(update={"confirmed": True})
    assert not confirmations.confirms(said)
    confirmations.keep([CLAIM])
    assert confirmations.confirms(said)


@pytest.mark.parametrize(
    "change",
    [
        {"value": "3.51"},
        {"command": "echo 3.50"},
        {"extract": None},
        {"seed": 3},
        {"spread": 0.5},
        {"unit": "%"},
        {"not_reproducible": "lost"},
        {"id": "table-2/trimmed-mean"},
        {"quote": "trimmed mean 3.50"},
        {"timeout_s": 7.0},
    ],
)
def test_change_of_a_claim_ends_its_confirmation(confirmations: Confirmations, change: dict[str, object]) -> None:
    confirmations.keep([CLAIM])
    changed = CLAIM.model_copy(update=change)
    assert not confirmations.confirms(changed)
    assert confirmations.waiting([CLAIM, changed]) == (changed,)


def test_confirmation_belongs_to_one_folder(confirmations: Confirmations, tmp_path: Path) -> None:
    confirmations.keep([CLAIM])
    assert not Confirmations(tmp_path / "other", tmp_path / "home").confirms(CLAIM)


def test_file_moved_from_another_folder_confirms_nothing(confirmations: Confirmations, tmp_path: Path) -> None:
    confirmations.keep([CLAIM])
    other = Confirmations(tmp_path / "other", tmp_path / "home")
    other.keep([CLAIM])
    files = list((tmp_path / "home").rglob("*.json"))
    first, second = sorted(files, key=lambda file: json.loads(file.read_text())["root"])
    second.unlink()
    first.rename(second)
    assert not confirmations.confirms(CLAIM)


def test_confirmations_are_private_files(confirmations: Confirmations, tmp_path: Path) -> None:
    confirmations.keep([CLAIM])
    assert kept_file(tmp_path).stat().st_mode & 0o777 == 0o600


def test_file_that_others_can_write_confirms_nothing(confirmations: Confirmations, tmp_path: Path) -> None:
    confirmations.keep([CLAIM])
    kept_file(tmp_path).chmod(0o666)
    assert not confirmations.confirms(CLAIM)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"version": 1}', b"[" * 100_000, b"\xff\xfe"])
def test_damaged_file_confirms_nothing(confirmations: Confirmations, tmp_path: Path, content: bytes) -> None:
    confirmations.keep([CLAIM])
    kept_file(tmp_path).write_bytes(content)
    assert not confirmations.confirms(CLAIM)
    assert confirmations.confirmed_before(CLAIM.id) == ()
    confirmations.keep([CLAIM])
    assert confirmations.confirms(CLAIM)


def test_confirmed_before_shows_the_earlier_content(confirmations: Confirmations) -> None:
    confirmations.keep([CLAIM])
    assert confirmations.confirmed_before(CLAIM.id) == (CLAIM,)
    assert confirmations.confirmed_before("table-9/x") == ()


def test_removed_confirmation_is_gone(confirmations: Confirmations) -> None:
    confirmations.keep([CLAIM])
    confirmations.remove(CLAIM)
    confirmations.remove(CLAIM)
    assert not confirmations.confirms(CLAIM)


def test_home_that_is_a_file_is_an_error(confirmations: Confirmations, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(ConfigError, match="confirmed-claims: Not a directory"):
        confirmations.keep([CLAIM])
