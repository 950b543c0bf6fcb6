"""Places of claims: the folder of a repository, or that of a reproduction, whose repository is in `source`.

The rule: a folder is that of a reproduction by the words in its state, since projects may have files of the same names.
"""

from pathlib import Path

from panpan.system.files.canonical import canonical_path

STATE_FILE = "state.json"
STATE_MARK = "panpan reproduction"
"""Words in the head of that file."""
_HEAD_CHARS = 200


def has_begun(folder: Path) -> bool:
    """True if a reproduction has begun in a folder."""
    try:
        with (folder / STATE_FILE).open(encoding="utf-8", errors="replace") as file:
            return STATE_MARK in file.read(_HEAD_CHARS)
    except OSError:
        return False


def is_reproduction(folder: Path) -> bool:
    """True for the folder of a reproduction, whose claims are the user's or a model's and no author's."""
    return has_begun(folder) and (folder / "source").is_dir()


def source_of(folder: Path) -> Path:
    """Return the canonical folder of the files that run.

    Args:
        folder: Folder with claims.toml; canonical.
    """
    return canonical_path(folder / "source") if is_reproduction(folder) else folder
