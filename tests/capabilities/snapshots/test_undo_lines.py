"""Lines of an undo: the size of each file's change, and files that are only counted."""

from pathlib import Path

import pytest

from panpan.capabilities.snapshots.undo import RestorePlan, change_line, plan_lines
from panpan.types.events import FileChange
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (FileChange("a", "modified", 3, 1_000), "~ a +3 -1,000"),
        (FileChange("a", "added", 0, 0), "+ a new, empty"),
        (FileChange("a", "deleted", 0, 0), "- a was empty"),
        (FileChange("a", "modified", 0, 0), "~ a mode"),
        (FileChange("a", "modified", None, None), "~ a binary"),
        (FileChange("a/", "added", 0, 0), "+ a/ folder"),
        (FileChange("a/", "modified", 0, 0), "~ a/ folder, mode"),
    ],
)
def test_change_line_says_how_much_changes(change: FileChange, line: str) -> None:
    assert change_line(change) == line


async def test_generated_files_are_counted_and_restored_if_unchanged(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    cache = "__pycache__/a.cpython-311.pyc"

    def change() -> None:
        place.write("a.py", "x = 1\n")
        place.write(cache, b"\x00one")
        place.write("__pycache__/b.cpython-311.pyc", b"\x00one")

    await place.turn(change)
    place.write(cache, b"\x00two")
    plan: RestorePlan = await place.undo()

    assert list(plan_lines(plan)) == ["undo changes 1 file +0 -1, 1 generated file:", "  - a.py +0 -1"]
    assert place.state().keys() == {cache}
