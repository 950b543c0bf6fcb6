"""Changes to files, in a few words."""

import pytest

from panpan.types.events import FileChange, files_in_short

CHANGED = FileChange("a.py", "modified", 1_200, 4)
GENERATED = FileChange("src/__pycache__/a.cpython-311.pyc", "added", 9, 0)
PICTURE = FileChange("a.png", "modified", None, None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([CHANGED], "1 file +1,200 -4"),
        ([CHANGED, PICTURE, CHANGED], "3 files +2,400 -8"),
        ([PICTURE], "1 file"),
        ([PICTURE, FileChange("__init__.py", "added", 0, 0)], "2 files"),
        ([FileChange("out/", "added", 0, 0), CHANGED], "1 file +1,200 -4, 1 folder"),
        ([GENERATED, CHANGED, GENERATED], "1 file +1,200 -4, 2 generated files"),
        ([GENERATED], "1 generated file"),
    ],
)
def test_file_change_names_line_counts_if_known(changes: list[FileChange], said: str) -> None:
    assert files_in_short(changes) == said


@pytest.mark.parametrize(
    ("path", "is_generated"),
    [
        ("a.py", False),
        ("a.pyc", True),
        ("node_modules/x/index.js", True),
        ("web/.pytest_cache/", True),
        (".coverage", True),
        ("src/lamp.egg-info/PKG-INFO", True),
        ("pycache__/a", False),
        ("build/a", False),
        (".env", False),
    ],
)
def test_file_change_is_generated_only_for_sure_names(path: str, is_generated: bool) -> None:
    assert FileChange(path, "added", 1, 0).is_generated is is_generated
