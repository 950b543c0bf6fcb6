"""A copy of the package in a folder of the test's own, to run it with changes."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def linked_copy(folder: Path, *, without: str = "") -> Path:
    """Make a copy of hard links, without one folder of the package, and return it as an entry of PYTHONPATH."""
    for source in (ROOT / "panpan").rglob("*"):
        relative = source.relative_to(ROOT)
        is_being_written = "__pycache__" in relative.parts and source.suffix != ".pyc"
        if (without and relative.is_relative_to(without)) or source.is_dir() or is_being_written:
            continue
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)
    (folder / "agents").symlink_to(ROOT / "agents")
    return folder


def rewrite(path: Path, text: str) -> None:
    """Replace a file of a copy; the original keeps its text."""
    path.unlink()
    path.write_text(text, encoding="utf-8")
