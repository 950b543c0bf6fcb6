"""A tree of folders costs as much as it has folders, however deep it is."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

import panpan
from panpan.file_trees.snapshot import Snapshot, all_folders_above, folders_above
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace
from tests.system.files.test_folder_tree import make_deep

PACKAGE = str(Path(panpan.__file__).parent)
PATHS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map("/".join) | st.just("a/b/"))


@given(PATHS)
def test_all_folders_above_holds_those_of_each_path(paths: list[str]) -> None:
    assert all_folders_above(paths) == {folder for path in paths for folder in folders_above(path)}


@given(PATHS, st.lists(st.sampled_from(["a/", "a/b/", "b/c/", "c", "a/b"])))
def test_why_left_out_names_the_nearest_place(paths: list[str], places: list[str]) -> None:
    snapshot = Snapshot("", "", left_out={place: place for place in places})
    for path in paths:
        above = folders_above(path) if path.endswith("/") else (path, *folders_above(path))
        assert snapshot.why_left_out(path) == next((one for one in above if one in places), None)


def test_undo_of_a_deep_tree_costs_as_much_as_it_has_folders(tmp_path: Path) -> None:
    calls = {depth: _calls_of_undo(tmp_path / str(depth), depth) for depth in (200, 400)}

    assert calls[400] < 2.5 * calls[200]


def _calls_of_undo(base: Path, depth: int) -> int:
    """Return how many functions of panpan a plan and its restoring call, in this thread or another."""
    base.mkdir()
    place = KeptWorkspace(base)
    count = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    async def main() -> None:
        await place.turn(lambda: make_deep(place.folder, depth))
        sys.setprofile(note)
        try:
            await place.undo()
        finally:
            sys.setprofile(None)

    anyio.run(main)
    assert not (place.folder / "d").exists()
    return count
