"""The branch that a folder is on, read from git's own file: no process for a word in a log."""

from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file


def git_branch(root: Path) -> str:
    """Return the branch of the repository whose top is `root`; empty where there is none or HEAD is detached."""
    try:
        folder = root / ".git"
        if folder.is_file():  # a worktree or submodule: the file names the folder
            folder = (
                root
                / read_regular_file(folder, max_bytes=4096, follow_symlinks=True)
                .decode()
                .removeprefix("gitdir:")
                .strip()
            )
        head = read_regular_file(folder / "HEAD", max_bytes=4096, follow_symlinks=True).decode()
    except (OSError, ToolError, UnicodeDecodeError):
        return ""
    return head.removeprefix("ref: refs/heads/").strip() if head.startswith("ref: refs/heads/") else ""
