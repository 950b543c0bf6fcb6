"""A bounded view of the project's folder: enough to know where to look, never a listing of everything.

Links are named and not followed; what git ignores and the sandbox makes is left out; what does not fit is counted.
"""

import ast
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path

import anyio.to_thread

from panpan.errors import ToolError
from panpan.system.git.git import GitQuestions
from panpan.system.sandbox.profile import is_placeholder
from panpan.system.text.terminal_text import printable
from panpan.types.dataclass import dataclass

_MAX_DEPTH = 3
_MAX_ENTRIES = 150
_MOST_IN_FOLDER = (60, 12, 6)
"""Most entries shown of a folder, by its depth."""
_MOST_READ = 2_000
"""Most entries read of one folder."""
_MOST_SCANNED = 1_200
"""Number of entries after which no further folder is read."""
_HIDDEN = frozenset({".git", ".hg", ".svn", "__pycache__", ".DS_Store"})
_NOT_ENTERED = frozenset(
    {"node_modules", ".venv", "venv", "env", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".cache"}
)


@dataclass(slots=True)
class _Entry:
    name: str
    path: str
    """Relative to the top of the view."""
    depth: int
    is_folder: bool
    is_link: bool
    children: list["_Entry"] = field(default_factory=list)
    left_out: int = 0
    """Number of its children that are not shown."""
    has_uncounted: bool = False
    """True if there are more than were counted."""


async def directory_view(top: Path, ask_git: GitQuestions | None) -> str:
    """Return the tree below `top`, one name a line.

    Args:
        top: Folder to show.
        ask_git: Asks git in it what it ignores; None where there is no repository.
    """
    root = await anyio.to_thread.run_sync(_scanned, top, abandon_on_cancel=True)
    if ask_git is not None:
        _remove(root, await _ignored([entry.path for entry in _walk(root)], ask_git))
    _bound(root)
    lines = list(_lines(root))
    return "\n".join(lines) if lines else "(empty)"


def _scanned(top: Path) -> _Entry:
    """Read folders level by level, so that what is near the top is never crowded out."""
    root = _Entry("", "", 0, is_folder=True, is_link=False)
    queue = deque([root])
    scanned = 0
    while queue:
        folder = queue.popleft()
        if scanned >= _MOST_SCANNED:
            folder.has_uncounted = True
            continue
        folder.children, folder.has_uncounted = _children(top, folder)
        scanned += len(folder.children)
        if folder.depth + 1 < _MAX_DEPTH:
            queue.extend(child for child in folder.children if child.is_folder and child.name not in _NOT_ENTERED)
    return root


def _children(top: Path, folder: _Entry) -> tuple[list[_Entry], bool]:
    """Return the folder's content, folders first, and True if there is more."""
    found: list[_Entry] = []
    try:
        with os.scandir(top / folder.path) as entries:
            for entry in islice(entries, _MOST_READ):
                if entry.name in _HIDDEN or is_placeholder(entry.path):
                    continue
                path = f"{folder.path}/{entry.name}" if folder.path else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                found.append(_Entry(entry.name, path, folder.depth + 1, is_folder, entry.is_symlink()))
            has_more = next(entries, None) is not None
    except OSError:
        return [], False  # an unreadable folder is shown as a name
    found.sort(key=lambda entry: (not entry.is_folder, entry.name))
    return found, has_more


async def _ignored(paths: Sequence[str], ask_git: GitQuestions) -> frozenset[str]:
    """Return the paths that git ignores.

    git compares each path with each entry of its index, which takes seconds in a large repository. So it compares only
    the paths that match a pattern; those that are tracked nevertheless are not ignored.
    """
    matching = await _check_ignore(["--no-index"], paths, ask_git)
    return await _check_ignore([], sorted(matching), ask_git)


async def _check_ignore(options: Sequence[str], paths: Sequence[str], ask_git: GitQuestions) -> frozenset[str]:
    if not paths:
        return frozenset()
    try:
        captured = await ask_git(["check-ignore", *options, "--", *paths])
    except (ToolError, ValueError, OSError):
        return frozenset()
    return frozenset(_unquoted(line) for line in captured.stdout.decode(errors="surrogateescape").splitlines())


def _unquoted(line: str) -> str:
    """Undo git's quoting (core.quotePath)."""
    if not line.startswith('"'):
        return line
    try:
        return os.fsdecode(ast.literal_eval(f"b{line}"))
    except (ValueError, SyntaxError):
        return line


def _walk(entry: _Entry) -> Iterator[_Entry]:
    for child in entry.children:
        yield child
        yield from _walk(child)


def _remove(entry: _Entry, ignored: frozenset[str]) -> None:
    entry.children = [child for child in entry.children if child.path not in ignored]
    for child in entry.children:
        _remove(child, ignored)


def _bound(root: _Entry) -> None:
    """Leave out what is too much, level by level from the top."""
    left = _MAX_ENTRIES
    queue = deque([root])
    while queue:
        folder = queue.popleft()
        room = min(left, _MOST_IN_FOLDER[folder.depth])
        folder.left_out = max(0, len(folder.children) - room)
        del folder.children[room:]
        left -= len(folder.children)
        queue.extend(child for child in folder.children if child.depth < _MAX_DEPTH)


def _lines(folder: _Entry) -> Iterator[str]:
    indent = "  " * folder.depth
    for child in folder.children:
        mark = "@" if child.is_link else "/" if child.is_folder else ""
        yield f"{indent}{printable(child.name)}{mark}"
        yield from _lines(child)
    if folder.left_out or folder.has_uncounted:
        yield f"{indent}… {folder.left_out:,}{'+' if folder.has_uncounted else ''} more"
