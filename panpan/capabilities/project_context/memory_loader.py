"""Reads memory files and what they import, each file once.

The rule: a file of the project brings in nothing from outside the project, and no file brings in credentials; text that
a stranger wrote must not choose which files of the user's are sent to a model.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from panpan.capabilities.project_context.front_matter import split_front_matter
from panpan.capabilities.project_context.imports import mentioned_paths
from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.protected import protections
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

MAX_HOPS = 4
"""Imports in a chain, as Claude Code counts them."""
MAX_FILE_BYTES = 1_000_000
MAX_WARNINGS = 10
"""Warnings that are shown at a time; a file of a stranger could cause any number."""


@dataclass(frozen=True, slots=True)
class MemorySection:
    """The text of one memory file."""

    path: Path
    """Canonical."""
    text: str
    imported_by: Path | None = None
    patterns: tuple[str, ...] = ()
    """Files that it is for; empty where it always holds."""
    closeness: int = 0
    """How near to the work it was written; the nearest survive where not all fit."""


class Withholds(Protocol):
    """Says which files the model is not told of."""

    def __call__(self, path: Path, *, is_own: bool = False) -> bool:
        """True if a rule of the user's keeps a file from the model.

        Args:
            path: The canonical file.
            is_own: True for a file of the user's own, which no project brings.
        """
        ...


def withhold_nothing(path: Path, *, is_own: bool = False) -> bool:
    """Let the model be told of every file."""
    return False


class MemoryLoader:
    """Remembers what has been read, so that links, copies and imports come once.

    Args:
        home: What `~` stands for in imports.
        panpan_home: Canonical folder that a project brings in nothing from, wherever it lies.
        withholds: Says what rules of the user's keep from the model.
    """

    def __init__(self, home: Path, panpan_home: Path, withholds: Withholds = withhold_nothing) -> None:
        self.loaded: set[Path] = set()
        """Canonical paths of all files that were read."""
        self._home = home
        self._panpan_home = panpan_home
        self._withholds = withholds
        self._refused: set[Path] = set()
        self._warnings: list[str] = []
        self._more_warnings = 0
        self._digests: set[bytes] = set()

    def warn(self, warning: str) -> None:
        """Note what was not read and why, in one sentence."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(warning)
        else:
            self._more_warnings += 1

    def take_warnings(self) -> list[str]:
        """Return what was not read since the last time, and forget it."""
        warnings, more = self._warnings, self._more_warnings
        self._warnings, self._more_warnings = [], 0
        return [*warnings, f"… and {more:,} more memory files were not read"] if more else warnings

    def load(self, path: Path, *, within: Path | None, closeness: int = 0) -> list[MemorySection]:
        """Return the text of `path`, then of what it imports; nothing for what was read before.

        Args:
            path: A file that should be there.
            within: Canonical folder that nothing may lead out of; None for the user's own files.
            closeness: How near to the work it was written.
        """
        section = self._read(path, within)
        if section is None:
            return []
        section = replace(section, closeness=closeness)
        return [section, *self.imports_of(section, within=within)]

    def load_rules(self, path: Path, *, within: Path, closeness: int = 0) -> list[MemorySection]:
        """Return a file of rules like `load`; one that is for certain files comes alone, see `imports_of`."""
        section = self._read(path, within)
        if section is None:
            return []
        rules = split_front_matter(section.text)
        section = replace(section, text=rules.body, patterns=rules.patterns, closeness=closeness)
        return [section] if section.patterns else [section, *self.imports_of(section, within=within)]

    def imports_of(self, section: MemorySection, *, within: Path | None) -> list[MemorySection]:
        """Return what `section` imports, directly and through others."""
        return list(self._imported(section, within, MAX_HOPS))

    def _imported(self, section: MemorySection, within: Path | None, hops: int) -> Iterator[MemorySection]:
        if hops == 0:
            return
        for candidates in mentioned_paths(section.text):
            path = self._existing(candidates, section.path.parent)
            imported = self._read(path, within, importer=section.path) if path is not None else None
            if imported is not None:
                imported = replace(imported, imported_by=section.path, closeness=section.closeness)
                yield imported
                yield from self._imported(imported, within, hops - 1)

    def _existing(self, candidates: tuple[str, ...], folder: Path) -> Path | None:
        for text in candidates:
            path = self._home / text[2:] if text.startswith("~/") else folder / text
            try:
                if path.is_file():
                    return path
            except (OSError, ValueError):  # no name that a file could have
                continue
        return None

    def _read(self, path: Path, within: Path | None, importer: Path | None = None) -> MemorySection | None:
        shown = f"{path}, imported by {importer}," if importer else f"{path}"
        try:
            canonical = canonical_path(path)
            if canonical in self.loaded or canonical in self._refused:
                return None
            self._refused.add(canonical)
            if reason := self._refusal(canonical, within):
                self.warn(f"{shown} was not read: {reason}")
                return None
            data = read_regular_file(canonical, max_bytes=MAX_FILE_BYTES)
        except ToolError as exc:
            self.warn(f"{shown} was not read: {exc}")
            return None
        self._refused.discard(canonical)
        self.loaded.add(canonical)
        return self._section(canonical, data, shown)

    def _refusal(self, canonical: Path, within: Path | None) -> str | None:
        """Return why a file may not be brought in, or None."""
        if within is not None and not is_below(canonical, within):
            return f"it lies outside the project {within}"
        is_panpans = within is not None and is_below(canonical, self._panpan_home)
        if is_panpans or any(group.is_never_workspace for group, _ in protections(canonical)):
            return "it may hold secrets"
        is_withheld = self._withholds(canonical, is_own=within is None)
        return "a permission rule speaks of reading it" if is_withheld else None

    def _section(self, canonical: Path, data: bytes, shown: str) -> MemorySection | None:
        if b"\0" in data:
            self.warn(f"{shown} was not read: it is not text")
            return None
        digest = blake2b(data, digest_size=16).digest()
        if digest in self._digests or not data.strip():
            return None
        self._digests.add(digest)
        return MemorySection(canonical, data.decode("utf-8-sig", errors="replace"))


def is_trusted_owner(path: Path, cwd: Path) -> bool:
    """Return whether a file above the working directory belongs to the user, to root, or to the owner of `cwd`."""
    try:
        return os.lstat(path).st_uid in {os.getuid(), 0, cwd.stat().st_uid}
    except OSError:
        return False
