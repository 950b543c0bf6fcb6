"""Trust in a project: in its folder, and in the exact content of its executable settings.

The rule: trust belongs to one canonical root and to the bytes of the files that `project_files` lists. It is never
inherited: a repository in a trusted folder, the same folder under another name, and a file that changed are not
trusted. Nor is a project trusted if its files, or the user's answer, cannot be read.

The rule: every character is visible, and values in files for secrets are neither kept nor shown.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from panpan.config.keys import KeyPath, dotted, quote_key, shown
from panpan.config.locations import PROJECTS_FOLDER, Locations, project_slug
from panpan.config.project_files import ProjectFiles, canonical_or_same, read_project_files, setting_of
from panpan.config.settings import rule_text
from panpan.config.settings_file import Source
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.canonical import is_below, user_home
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MAX_CHARS = 64_000
_MAX_LINES = 1_000
"""Most lines of a file that is compared line by line; a longer one is compared by digest."""
_MAX_KEPT_CHARS = 1_000_000
"""Most characters to keep of all files of a project."""
_VARIABLE = compile_late(r"\s*(?:export\s+)?[A-Z_][A-Z0-9_]{0,63}\s*=")


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file at the time of the user's decision."""

    digest: str
    text: str | None
    """Its text, to show later changes; None if it is too long or not text."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that has changed."""

    name: str
    """Path from the root of the project."""
    kind: Literal["new", "changed", "gone"]
    lines: Sequence[str]
    """Lines of the diff, with `+`, `-` or a blank in front; empty if only hidden values differ."""


def known_files(files: ProjectFiles) -> Mapping[str, KnownFile]:
    """Return the digests and texts to keep of the files, to find and show later changes."""
    known: dict[str, KnownFile] = {}
    room = _MAX_KEPT_CHARS
    for name in files.content:
        text = _text(files, name)
        kept = text if text is not None and len(text) <= room else None
        room -= len(kept or "")
        known[name] = KnownFile(files.digests[name], kept)
    return known


def changes_since(before: Mapping[str, KnownFile], files: ProjectFiles) -> Sequence[FileChange]:
    """Return every file that was added, removed or changed since `before`."""
    return tuple(_changes(before, files))


def _changes(before: Mapping[str, KnownFile], files: ProjectFiles) -> Iterator[FileChange]:
    for name in sorted({*before, *files.content}):
        known, digest = before.get(name), files.digests.get(name)
        if known is not None and known.digest == digest:
            continue
        kind: Literal["new", "changed", "gone"] = "new" if known is None else "gone" if digest is None else "changed"
        old = "" if known is None else known.text
        new = "" if digest is None else _text(files, name)
        is_shown = old is not None and new is not None
        unseen = f"({len(files.content.get(name, b'')):,} bytes, too many or no text to be shown)"
        yield FileChange(name, kind, tuple(_lines(old or "", new or "")) if is_shown else (unseen,))


def _lines(old: str, new: str) -> Iterator[str]:
    from difflib import unified_diff

    found = unified_diff(_split(old), _split(new), n=2, lineterm="")
    for number, line in enumerate(found):
        if number > 1 and (old or line.startswith("+")):  # skip the two lines that name the files
            yield escape_invisible(line)


def _split(text: str) -> list[str]:
    r"""Return the lines, split at `\n` only: any other line separator is shown as a character."""
    lines = text.split("\n")
    return [*lines, "(no line end)"] if lines[-1] else lines[:-1]


def _text(files: ProjectFiles, name: str) -> str | None:
    try:
        text = files.content[name].decode("utf-8")
    except UnicodeDecodeError:
        return None
    if len(text) > _MAX_CHARS or text.count("\n") > _MAX_LINES:
        return None
    setting = setting_of(name)
    is_hidden = not files.is_shown and (setting is None or setting.is_secret)
    return _without_values(text) if is_hidden else text


def _without_values(text: str) -> str:
    """Return only the names of variables: any other text in a file for secrets may be part of one."""
    lines = [line for line in text.split("\n") if line]
    return "".join(f"{found[0]}…\n" if (found := _VARIABLE.match(line)) else "…\n" for line in lines)


TRUST_FILE = "trust.json"
_MAX_BYTES = 32_000_000
"""Limit on a trust file, above the kept text of one project as JSON."""
_MAX_PROJECTS = 10_000


@dataclass(frozen=True, slots=True)
class Trusted:
    """The user trusts the project as it is."""

    is_for_this_run: bool = False
    """True if a flag trusts it, for this run only."""


@dataclass(frozen=True, slots=True)
class Untrusted:
    """The user does not trust the project."""

    is_refused: bool = False
    """True if the user was asked about this content and said no."""
    problem: str = ""
    """Reason why the project or the user's answer could not be read; empty if both could."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The user trusted the project, and then its executable settings changed."""

    changes: Sequence[FileChange]


TrustState: TypeAlias = Trusted | Untrusted | Changed


@dataclass(frozen=True, slots=True)
class ProjectTrust:
    """Trust in a project's files."""

    files: ProjectFiles
    state: TrustState

    @property
    def is_trusted(self) -> bool:
        """True if the project's files take effect."""
        return isinstance(self.state, Trusted)

    @property
    def may_be_asked(self) -> bool:
        """True if the user could trust it and has not said no."""
        refused = isinstance(self.state, Untrusted) and self.state.is_refused
        return not self.is_trusted and not refused and not self.files.problems

    @property
    def believed(self) -> Mapping[str, bytes]:
        """Content of the files that take effect, by path from the root; empty unless the project is trusted."""
        return self.files.content if self.is_trusted else {}

    def for_this_run(self) -> Self:
        """Return the same project, trusted for this run if all its files could be read."""
        return self if self.files.problems else replace(self, state=Trusted(is_for_this_run=not self.is_trusted))


NO_TRUST = ProjectTrust(ProjectFiles(Path("/")), Untrusted())
"""No trust, for runs that read no project."""


def trust_of(locations: Locations) -> ProjectTrust:
    """Read the executable settings of a project and the user's decision about them."""
    files = read_project_files(locations.project_root, locations.home)
    return ProjectTrust(files, TrustStore(locations.home).state(files))


@dataclass(frozen=True, slots=True)
class Decision:
    """The user's decision about a project."""

    root: str
    is_trusted: bool
    files: Mapping[str, KnownFile]

    @classmethod
    def of(cls, kept: Any) -> Self:
        """Return the decision in the JSON of a trust file.

        Raises:
            ValueError: It is no decision.
        """
        match kept:
            case {"version": 1, "root": str(root), "is_trusted": bool(is_trusted), "files": dict(files)}:
                return cls(root, is_trusted, {name: _known_file(file) for name, file in files.items()})
        raise ValueError("it is not what panpan writes")


def _known_file(kept: Any) -> KnownFile:
    match kept:
        case {"digest": str(digest), "text": str() | None as text}:
            return KnownFile(digest, text)
    raise ValueError("it is not what panpan writes")


class TrustStore:
    """The user's decisions about projects, in a private file for each, so that two runs never overwrite each other.

    Args:
        home: The panpan home.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / PROJECTS_FOLDER

    def state(self, files: ProjectFiles) -> TrustState:
        """Return the trust in a project, given its files as they were read."""
        if files.problems:
            name, problem = next(iter(files.problems.items()))
            return Untrusted(problem=f"{shown(name)} cannot be read whole: {shown(problem)}")
        try:
            decision = self._decision(self._path(files.root))
        except ConfigError as exc:
            return Untrusted(problem=str(exc))
        if decision is None or decision.root != str(files.root):
            return Untrusted()
        changes = changes_since(decision.files, files)
        if decision.is_trusted:
            return Changed(changes) if changes else Trusted()
        return Untrusted(is_refused=not changes)

    def keep(self, files: ProjectFiles, *, is_trusted: bool) -> None:
        """Keep the user's answer about these files in place of an earlier one.

        Raises:
            ConfigError: A file could not be read, or the answer cannot be written.
        """
        if is_trusted and files.problems:
            name, problem = next(iter(files.problems.items()))
            raise ConfigError(f"{shown(files.root)} cannot be trusted: {shown(name)}: {shown(problem)}")
        path = self._path(files.root)
        kept = {"version": 1, **asdict(Decision(str(files.root), is_trusted, known_files(files)))}
        try:
            make_private_folder(path.parent)
            write_atomic(path, (json.dumps(kept, indent=1) + "\n").encode(), mode=0o600, follow_symlinks=True)
        except ToolError as exc:
            raise ConfigError(f"your answer could not be kept: {shown(exc)}") from exc

    def remove(self, root: Path) -> bool:
        """Forget the user's decision about a project; return True if there was one.

        Raises:
            ConfigError: It cannot be removed.
        """
        path = self._path(root)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as exc:
            raise ConfigError(f"{shown(path)} cannot be removed: {exc.strerror}") from exc
        return True

    def trusted_roots(self) -> Iterator[Path]:
        """Yield the roots of all projects that the user trusted, even if they changed since."""
        try:
            with os.scandir(self._folder) as entries:
                slugs = sorted(entry.name for entry in islice(entries, _MAX_PROJECTS))
        except OSError:
            return
        for slug in slugs:
            try:
                decision = self._decision(self._folder / slug / TRUST_FILE)
            except ConfigError:
                continue  # asked again when somebody works there
            if decision is not None and decision.is_trusted and project_slug(Path(decision.root)) == slug:
                yield Path(decision.root)

    def _path(self, root: Path) -> Path:
        return self._folder / project_slug(root) / TRUST_FILE

    def _decision(self, path: Path) -> Decision | None:
        """Return the decision in a trust file; None if there is no file.

        Raises:
            ConfigError: It cannot be read or understood, or somebody else may have written it.
        """
        try:
            status = path.lstat()
            is_ours = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not stat.S_ISREG(status.st_mode) or not is_ours:
                raise ToolError("others may have written it")
            return Decision.of(json.loads(read_regular_file(path, max_bytes=_MAX_BYTES, follow_symlinks=True)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise ConfigError(f"{shown(path)} cannot be read: {exc.strerror}") from exc
        except (ToolError, ValueError, RecursionError) as exc:
            raise ConfigError(f"{shown(path)} is not believed: {shown(exc)}; remove it") from exc


def wide_root(root: Path) -> str:
    """Return a description of a root that is wider than a project, such as the home folder; else an empty text."""
    home = canonical_or_same(user_home())
    if root == Path(root.anchor):
        return "the root of the file system"
    if root == home:
        return "your whole home folder"
    return "a folder with your home folder in it" if is_below(home, root) else ""


_HOW = "`panpan trust` shows it, `panpan trust add` trusts it, --trust does for one run"


def notes_on_trust(project: Source, trust: ProjectTrust, needing_trust: Sequence[KeyPath]) -> Iterator[str]:
    """Yield a line about the keys that have no effect, or that have one for this run only."""
    keys = ", ".join(dict.fromkeys(dotted(path) for path in needing_trust))
    match trust.state:
        case Trusted(is_for_this_run=True):
            yield f"--trust: {project.place} is believed for this run: {keys or 'nothing in it needs it'}"
        case Changed() if keys:
            yield f"{project.place} is not believed ({keys}), since it changed after you trusted it; {_HOW}"
        case Untrusted(problem=problem) if keys and problem:
            yield f"{project.place} is not believed ({keys}): {problem}"
        case Untrusted() if keys:
            yield f"{project.place} is not believed ({keys}), since you have not trusted this folder; {_HOW}"


def as_written(source: Source, path: KeyPath) -> str:
    """Return a key and its value in a source, as `KEY = VALUE`, safe to show."""
    value: Any = source.values
    for part in path:
        value = value[part]
    if not isinstance(value, list):
        return f"{dotted(path)} = {_shown(value)}"
    return f"{dotted(path)} = [{', '.join(map(_shown, value))}]"


def _shown(value: Any) -> str:
    value = rule_text(value) if isinstance(value, Mapping) else value
    return quote_key(value) if isinstance(value, str) else shown(value).lower()
