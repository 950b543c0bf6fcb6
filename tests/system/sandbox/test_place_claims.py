from pathlib import Path

import pytest

from panpan.errors import ToolError
from panpan.system.sandbox.command_sandbox import PlaceClaims
from panpan.system.sandbox.profile import vacant


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "place"


@pytest.fixture
def mine(tmp_path: Path) -> PlaceClaims:
    return PlaceClaims(tmp_path / "claims")


@pytest.fixture
def theirs(tmp_path: Path) -> PlaceClaims:
    return PlaceClaims(tmp_path / "claims")


def test_what_somebody_claims_nobody_else_has_alone(mine: PlaceClaims, theirs: PlaceClaims, place: Path) -> None:
    mine.hold([place])
    with theirs.alone([place]) as free:
        assert free == set()
    mine.let_go([place])

    with theirs.alone([place]) as free:
        assert free == {place}


def test_who_comes_second_is_told_of_the_first(mine: PlaceClaims, theirs: PlaceClaims, place: Path) -> None:
    assert mine.hold([place]) == set()
    assert theirs.hold([place, place.with_name("other")]) == {place}


def test_a_place_is_claimed_until_the_last_of_a_session_lets_go(
    mine: PlaceClaims, theirs: PlaceClaims, place: Path
) -> None:
    mine.hold([place])
    mine.hold([place])
    mine.let_go([place])

    with theirs.alone([place]) as free:
        assert free == set()


def test_a_session_that_ends_claims_nothing_any_more(mine: PlaceClaims, theirs: PlaceClaims, place: Path) -> None:
    mine.hold([place])
    mine.hold([place])
    mine.close()
    mine.let_go([place])  # of a box that was left later

    with theirs.alone([place]) as free:
        assert free == {place}


def test_who_does_not_end_removing_is_not_waited_for_without_end_and_leaves_no_claim(
    mine: PlaceClaims, tmp_path: Path, place: Path
) -> None:
    theirs = PlaceClaims(tmp_path / "claims", wait_s=0.0)
    other = place.with_name("other")

    with mine.alone([place]), pytest.raises(ToolError, match="another panpan has kept"):
        theirs.hold([other, place])

    with mine.alone([place, other]) as free:
        assert free == {place, other}


def test_without_a_folder_that_can_be_written_nobody_waits(tmp_path: Path, place: Path) -> None:
    (tmp_path / "file").touch()

    for claims in (PlaceClaims(None), PlaceClaims(tmp_path / "file" / "claims")):
        assert claims.hold([place]) == set()
        with claims.alone([place]) as free:
            assert free == {place}
        claims.let_go([place])


def test_vacant_is_what_is_not_there_or_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    names = ("none", "empty", "full", "full/file", "link", "broken")

    assert vacant(tmp_path / name for name in names) == {tmp_path / "none", tmp_path / "empty"}
