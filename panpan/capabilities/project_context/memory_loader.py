"""Reads memory files and what they import, each file once.

The rule: a file of the project brings in nothing from outside the project, and no file brings in credentials; text that
a stranger wrote must not choose which files of the user's are sent to a model.
"""

import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.folder_tree import walk
from panpan.system.files.protected import protections
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.front_matter import FrontMatterError, Value, read_front_matter
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_HOPS = 4
"""Most imports in a row, as in Claude Code."""
MAX_FILE_BYTES = 1_000_000
MAX_WARNINGS = 10
"""Most warnings shown at a time; a stranger's file could cause any number."""


@dataclass(frozen=True, slots=True)
class MemorySection:
    """The text of one memory file."""

    path: Path
    """Canonical."""
    text: str
    imported_by: Path | None = None
    patterns: tuple[str, ...] = ()
    """Files that it is for; empty: it always holds."""
    closeness: int = 0
    """The nearest to the work survive where not all fit."""


class Withholds(Protocol):
    """Decides which files are kept from the model."""

    def __call__(self, path: Path, *, is_own: bool = False) -> bool:
        """True if a user's rule keeps a file from the model; `is_own` is True for files that no project brings."""
        ...


def withhold_nothing(path: Path, *, is_own: bool = False) -> bool:
    """Let the model be told of every file."""
    return False


class MemoryLoader:
    """Reads memory files, each once, whatever links, copies and imports lead to it."""

    def __init__(self, home: Path, panpan_home: Path, withholds: Withholds = withhold_nothing) -> None:
        self.loaded: set[Path] = set()
        self._home = home
        self._panpan_home = panpan_home
        self._withholds = withholds
        self._refused: set[Path] = set()
        self._warnings: list[str] = []
        self._more_warnings = 0
        self._digests: set[bytes] = set()

    def warn(self, warning: str) -> None:
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(warning)
        else:
            self._more_warnings += 1

    def take_warnings(self) -> list[str]:
        warnings, more = self._warnings, self._more_warnings
        self._warnings, self._more_warnings = [], 0
        return [*warnings, f"… and {more:,} more memory files were not read"] if more else warnings

    def load(self, path: Path, *, within: Path | None, closeness: int = 0) -> list[MemorySection]:
        """Return a file, then its imports; nothing that was read before. `within` is None for the user's own files."""
        section = self._read(path, within)
        if section is None:
            return []
        section = replace(section, closeness=closeness)
        return [section, *self.imports_of(section, within=within)]

    def load_rules(self, path: Path, *, within: Path, closeness: int = 0) -> list[MemorySection]:
        """Return a file of rules like `load`; one for certain files comes without its imports."""
        section = self._read(path, within)
        if section is None:
            return []
        text, patterns = split_front_matter(section.text)
        section = replace(section, text=text, patterns=patterns, closeness=closeness)
        return [section] if section.patterns else [section, *self.imports_of(section, within=within)]

    def imports_of(self, section: MemorySection, *, within: Path | None) -> list[MemorySection]:
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
            except (OSError, ValueError):  # not a valid file name
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
        if within is not None and not is_below(canonical, within):
            return f"it is outside the project {within}"
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


_MOST_RULES = 100
"""Most files in one folder of rules."""
_RULES_FOLDERS = (".claude/rules", ".panpan/rules")
_LOCAL_NAMES = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")


def files_of_home(home: Path) -> list[Path]:
    """Return the user's files for every agent."""
    return _agents_file(home) + _existing((home / "CLAUDE.md", home / ".claude" / "CLAUDE.md"))


def files_of_panpan(panpan_home: Path) -> list[Path]:
    """Return the user's files for panpan alone, which win over the others."""
    return _agents_file(panpan_home) + _existing((panpan_home / "CLAUDE.md",))


def files_of(folder: Path) -> list[Path]:
    """Return the memory files of one folder; later ones win."""
    return _agents_file(folder) + _existing([folder / name for name in _LOCAL_NAMES])


def rules_of(folder: Path, *, within: Path) -> list[Path]:
    """Return the files of rules of one folder; later ones win.

    A folder of rules that leads out of `within` is returned itself, to be refused.
    """
    found: list[Path] = []
    for top in (folder / name for name in _RULES_FOLDERS):
        found += [top] if os.path.lexists(top) and not _leads_into(top, within) else _markdown_below(top)
    return found


def _markdown_below(top: Path) -> list[Path]:
    found: list[Path] = []
    for parent, _, names in walk(top):
        found += [Path(parent, name) for name in names if name.endswith(".md")]
        if len(found) > _MOST_RULES:
            break
    return found[:_MOST_RULES]


def folders_between(top: Path, bottom: Path) -> list[Path]:
    """Return the folders from `top` down to `bottom`, both included."""
    folders = [bottom, *bottom.parents]
    return folders[: folders.index(top) + 1][::-1]


def _leads_into(path: Path, within: Path) -> bool:
    try:
        return is_below(canonical_path(path), within)
    except ToolError:  # such as a loop of links
        return False


def _agents_file(folder: Path) -> list[Path]:
    return _existing((folder / "AGENTS.override.md", folder / "AGENTS.md"))[:1]


def _existing(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if os.path.lexists(path)]


_FENCE = compile_late(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>.*)")
_RUN = compile_late(r"`+")


def without_code(markdown: str) -> str:
    """Remove fenced blocks and code spans (CommonMark 0.31, sections 4.5 and 6.1)."""
    return _without_spans("\n".join(_lines_outside_fences(markdown)))


def _lines_outside_fences(markdown: str) -> Iterator[str]:
    fence = ""
    for line in markdown.splitlines():
        match = _FENCE.match(line)
        if fence:
            is_end = match and match["mark"][0] == fence[0] and len(match["mark"]) >= len(fence)
            if is_end and match and not match["rest"].strip():
                fence = ""
            yield ""
        elif match and not (match["mark"][0] == "`" and "`" in match["rest"]):
            fence = match["mark"]
            yield ""
        else:
            yield line


def _without_spans(text: str) -> str:
    """Remove each run of backticks with what lies between it and the next run of the same length."""
    runs = [(match.start(), match.end()) for match in _RUN.finditer(text)]
    starts_by_length: dict[int, list[int]] = defaultdict(list)
    for start, end in runs:
        starts_by_length[end - start].append(start)
    kept: list[str] = []
    position = 0
    for start, end in runs:
        if start < position:
            continue
        starts = starts_by_length[end - start]
        following = bisect_right(starts, start)
        if following == len(starts):
            continue  # opens nothing
        kept.append(text[position:start])
        position = starts[following] + (end - start)
    kept.append(text[position:])
    return " ".join(kept)


_MENTION = compile_late(r"(?:^|(?<=\s))@(?P<path>(?:\\ |[^\s\\]|\\(?! ))+)", re.MULTILINE)
_MAY_BEGIN = compile_late(r"[\w./~-]")
_TRAILING = ".,;:!?)]}>\"'*_"


def mentioned_paths(markdown: str) -> list[tuple[str, ...]]:
    """Return each mention outside code, as the paths it may mean: as written, then without punctuation behind it."""
    mentions: dict[tuple[str, ...], None] = {}
    for match in _MENTION.finditer(without_code(markdown)):
        path = match["path"].replace("\\ ", " ")
        if _MAY_BEGIN.match(path):
            bare = path.rstrip(_TRAILING)
            mentions[(path, bare) if bare and bare != path else (path,)] = None
    return list(mentions)


_MOST_ALTERNATIVES = 64


def split_front_matter(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the rules and the patterns of files that they are for; no patterns: they always hold."""
    try:
        parts = read_front_matter(text)
    except FrontMatterError:
        parts = None
    if parts is None:
        return text, ()
    values = _texts(parts.head["paths"].value) if "paths" in parts.head else ()
    patterns = [part for value in values for one in _split(value) for part in _expanded(one)]
    return parts.body, tuple(patterns)


def _texts(value: Value) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        return ("{" + ",".join(value) + "}",)  # a pattern that was written without quotes
    return (value,) if isinstance(value, str) else value


def _split(value: str) -> list[str]:
    """Split at commas outside braces, and unquote."""
    parts, depth = [""], 0
    for char in value:
        depth += (char == "{") - (char == "}")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return [bare for part in parts if (bare := part.strip().strip("'\"").strip())]


def _expanded(pattern: str) -> list[str]:
    """Expand `{a,b}`."""
    done: list[str] = []
    pending = [pattern]
    while pending and len(done) + len(pending) <= _MOST_ALTERNATIVES:
        one = pending.pop(0)
        match = re.search(r"\{([^{}]*)\}", one)
        if match is None:
            done.append(one)
        else:
            pending += [one[: match.start()] + option + one[match.end() :] for option in match[1].split(",")]
    return done + pending


def is_trusted_owner(path: Path, cwd: Path) -> bool:
    """True if the user, root, or the owner of `cwd` owns a file above the working directory."""
    try:
        return os.lstat(path).st_uid in {os.getuid(), 0, cwd.stat().st_uid}
    except OSError:
        return False


MAX_MEMORY_BYTES = 32 * 1024
"""Most bytes of UTF-8 of all memory files together, as in Codex."""


def fit_to_size(
    sections: Sequence[MemorySection], *, max_bytes: int = MAX_MEMORY_BYTES
) -> tuple[list[MemorySection], list[str]]:
    """Return the sections that fit, in order, and warnings of cuts; the nearest to the work are kept first."""
    kept: dict[int, MemorySection] = {}
    warnings: dict[int, str] = {}
    left = max_bytes
    for number in sorted(range(len(sections)), key=lambda number: (-sections[number].closeness, number)):
        section = sections[number]
        data = section.text.encode(errors="replace")
        if len(data) > left:
            text = data[:left].decode(errors="ignore")
            note = f"[cut: {left:,} of {len(data):,} bytes are shown; read {section.path} for the rest]"
            section = replace(section, text=f"{text}\n{note}" if text else note)
            warnings[number] = (
                f"{section.path} was cut: the files with rules for agents are larger than {max_bytes:,} bytes together"
            )
        kept[number] = section
        left -= min(left, len(data))
    return [kept[number] for number in sorted(kept)], [warnings[number] for number in sorted(warnings)]
