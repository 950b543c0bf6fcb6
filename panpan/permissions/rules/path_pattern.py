"""Which paths a rule such as `Edit(/src/**)` speaks of: gitignore patterns below one of four roots.

`//x` starts at the root of the file system, `~/x` at the home folder, `/x` and `./x` and anything else at the root of
the project. An allowance is judged on the canonical path alone; a restriction also on the path as it was written, so
that a link is no way round it.
"""

import os
import re
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import product
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.globs import compile_gitignore, gitignore_escaped
from panpan.system.files.home import user_home

_TOP = Path("/")
_ANY_CHILD = "\x01/\x01"
"""A path that no pattern names, to ask whether everything below a folder is meant."""
_WILDCARDS = frozenset("*?[\\")


class PathPattern:
    """One gitignore pattern and the folder it starts from.

    Args:
        text: What stands in the parentheses of the rule.

    Raises:
        ValueError: The pattern names no path; the text says why.
    """

    def __init__(self, text: str) -> None:
        base, pattern = _split_base(text)
        self._base = base
        self._copied: tuple[Path, Path] | None = None
        """Root of a copy and of what it is a copy of, for which the pattern speaks."""
        self._is_floating = base is None and "/" not in pattern.rstrip("/")
        patterns = [pattern]
        if base is not None and (resolved := _resolved_prefix(base, pattern)) is not None:
            self._base, patterns = Path("/"), [_as_absolute(base, pattern), resolved]
        self._regex = re.compile("|".join(_compiled(pattern).pattern for pattern in patterns), re.DOTALL)

    def for_copy(self, original: Path, copied: Path) -> "PathPattern | None":
        """Return what restricts in a copy of a folder what this restricts in the folder; None where this does itself.

        Args:
            original: Root of the project, canonical.
            copied: Root of the copy, canonical.
        """
        if self._base is None:
            return None
        pattern = copy(self)
        pattern._copied = copied, original
        return pattern

    def covers(self, path: Path, root: Path) -> bool:
        """Return whether an allowance for this pattern opens `path`, which is canonical, and all that is below it."""
        relative = _relative(path, self._base or root)
        if relative is None:
            return False
        if path.is_dir():
            relative = _joined(relative, _ANY_CHILD)
        return self._regex.fullmatch(relative) is not None

    def restricts(self, paths: Iterable[Path], root: Path, *, is_shallow: bool = False) -> bool:
        """Return whether a restriction of this pattern holds for any of `paths`, spellings of one path.

        Args:
            paths: Of a file, or a folder, which counts with all that may be in it.
            root: Canonical root of the project.
            is_shallow: Whether nothing is touched that lies in the folder.
        """
        fits = self._regex.fullmatch
        for path, base in product(map(self._in_original, paths), self._bases(root)):
            relative = _relative(path, base)
            if relative is None:
                continue
            if fits(relative):
                return True
            names_folder = not is_shallow and (fits(_joined(relative, "")) or fits(_joined(relative, _ANY_CHILD)))
            if names_folder and path.is_dir():  # asked last, since it takes longest
                return True
        return False

    def restricts_file(self, path: Path, root: Path) -> bool:
        """Return whether a restriction of this pattern holds for `path`, which is known to be no folder."""
        return self.restricts((path,), root, is_shallow=True)

    def first_restricted_file(self, folder: Path, names: Sequence[str], root: Path) -> str | None:
        """Return the first of the names of files in `folder` for which a restriction of this pattern holds."""
        folder = self._in_original(folder)
        for base in self._bases(root):
            relative = _relative(folder, base)
            if relative is None:
                continue
            before = "" if relative == "." else f"{relative}/"
            fits = self._regex.fullmatch
            if found := next((name for name in names if fits(before + name)), None):
                return found
        return None

    def _in_original(self, path: Path) -> Path:
        """Return what a path in a copy is a copy of; other paths as they are."""
        if self._copied is None:
            return path
        copied, original = self._copied
        return original / path.relative_to(copied) if path.is_relative_to(copied) else path

    def _bases(self, root: Path) -> Sequence[Path]:
        """Return where restrictions start; one without a slash names files outside the project, too."""
        return (self._base or root, _TOP) if self._is_floating else (self._base or root,)


def _split_base(text: str) -> tuple[Path | None, str]:
    """Return the folder that the pattern starts from, None for the project's root, and the pattern."""
    if not text.strip() or "\0" in text or "\n" in text:
        raise ValueError("names no path")
    if text.startswith(("!", "#")):
        raise ValueError(f"begins with {text[0]!r}, which patterns use for something else: write \\{text[0]}")
    if ".." in text.split("/"):
        raise ValueError("holds '..': write the path it leads to")
    if text.startswith("//"):
        return Path("/"), "/" + text[2:].lstrip("/")
    if text == "~" or text.startswith("~/"):
        return user_home().resolve(), "/" + text[2:].lstrip("/")
    if text.startswith("~"):
        raise ValueError("names the home of another user: write the absolute path with // in front")
    if text == ".":
        return None, "/**"
    return None, text.removeprefix(".") if text.startswith("./") else text


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return compile_gitignore("/**" if pattern == "/" else pattern)
    except ToolError as exc:
        raise ValueError(f"is not a gitignore pattern: {exc}") from exc


def _resolved_prefix(base: Path, pattern: str) -> str | None:
    """Return the absolute pattern with the links in its literal folders followed, or None where there are none."""
    parts = pattern.strip("/").split("/")
    literal = []
    for part in parts:
        if _WILDCARDS & set(part):
            break
        literal.append(part)
    prefix = base.joinpath(*literal)
    resolved = prefix.resolve()
    if resolved == prefix:
        return None
    rest = parts[len(literal) :]
    return "/".join([gitignore_escaped(str(resolved)), *rest]) + ("/" if pattern.endswith("/") else "")


def _as_absolute(base: Path, pattern: str) -> str:
    return pattern if base == Path("/") else gitignore_escaped(str(base)) + pattern


def _relative(path: Path, base: Path) -> str | None:
    """Return `path` below `base`, both absolute; None where it lies elsewhere. As text, since it is asked so often."""
    whole, start = str(path), str(base)
    if not whole.startswith(start):
        return None
    if len(whole) == len(start):
        return "."
    if start == "/":
        return whole[1:]
    return whole[len(start) + 1 :] if whole[len(start)] == "/" else None


def _joined(relative: str, child: str) -> str:
    return child or "./" if relative == "." else f"{relative}{os.sep}{child}"
