"""Store of plug-ins: what the user has added, which of it is on, and its content, pinned by a digest.

The rule: what is added is off until the user enables it, and so is each update. What is on has the content that it had
then, byte for byte; a file that differs is not used. Nothing is fetched or updated by itself.

A plug-in is in `~/.panpan/plugins/files/NAME/DIGEST`, and beside it `DIGEST.json` lists its files. `plugins.json` says
what is on. `data/NAME` is the plug-in's own, and outlives updates and removal.
"""

import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from panpan.config.plugins.manifest import FolderContent, Plugin, PluginError, read_plugin
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, remove_tree
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_FILES = 10_000
MAX_BYTES = 100_000_000
MAX_FILE_BYTES = 50_000_000
MAX_DEPTH = 20
"""Levels of folders."""
FOLDER = "plugins"
LIST = "plugins.json"
_MAX_LIST_BYTES = 10_000_000
_LOCK_S = 5.0
_SKIPPED = frozenset({".git"})
_VARIABLE = compile_late(r"\$\{((?:CLAUDE_)?PLUGIN_(?:ROOT|DATA))\}")


@dataclass(frozen=True, slots=True)
class PluginPlace:
    """The places of a plug-in, which its programs are told."""

    name: str
    root: Path
    data: Path

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables that its programs get."""
        root, data = str(self.root), str(self.data)
        return {
            "PLUGIN_ROOT": root,
            "PLUGIN_DATA": data,
            "CLAUDE_PLUGIN_ROOT": root,
            "CLAUDE_PLUGIN_DATA": data,
        }

    def filled(self, text: str) -> str:
        """Return a text with the places in place of `${PLUGIN_ROOT}` and the like, which are not read again."""
        variables = self.variables
        return _VARIABLE.sub(lambda found: variables[found[1]], text)


@dataclass(frozen=True, slots=True)
class Version:
    """One content of a plug-in."""

    digest: str
    version: str = ""
    """Its version, as it says itself."""
    revision: str = ""
    """Commit, or version of a package, that it was fetched as."""
    added: str = ""
    """Day on which it was added, as YYYY-MM-DD."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A plug-in in the store."""

    name: str
    source: str
    """Source, as the user wrote it."""
    entry: str = ""
    """Its name in the catalogue that the source is; empty without one."""
    path: str = ""
    """Its folder in the source; empty for the whole."""
    current: Version = Version("")
    waiting: Version | None = None
    """An update that the user has not accepted yet."""
    is_enabled: bool = False


@dataclass(frozen=True)
class LoadedPlugin:
    """A plug-in, with the content that counts."""

    plugin: Plugin
    place: PluginPlace
    content: FolderContent
    marks: Mapping[str, str] = field(default_factory=dict)
    """Digests of the files as they were added; empty for a plug-in that is used as it is."""


class PluginStore:
    """The plug-ins that the user has added.

    Args:
        home: The panpan home.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER

    @cached_property
    def installed(self) -> Mapping[str, Installed]:
        """All plug-ins by their names, sorted.

        Raises:
            ConfigError: The list cannot be read.
        """
        path = self.folder / LIST
        try:
            listed = json.loads(read_regular_file(path, max_bytes=_MAX_LIST_BYTES))
            return {name: _installed(name, one) for name, one in sorted(listed["plugins"].items())}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ConfigError(f"{path} cannot be read ({error}); move it away and add your plug-ins again") from error
        except ToolError as error:
            if not os.path.lexists(path):
                return {}
            raise ConfigError(str(error)) from error

    def place(self, name: str, version: Version) -> PluginPlace:
        """Return the places of a plug-in."""
        return PluginPlace(name, self._files(name) / version.digest, self.folder / "data" / name)

    def _files(self, name: str) -> Path:
        return self.folder / "files" / name

    def load(self, name: str, version: Version) -> LoadedPlugin:
        """Return a plug-in, whose files are compared with the list of them when they are read.

        Raises:
            PluginError: It is not as it was added, or cannot be read.
        """
        place = self.place(name, version)
        try:
            data = read_regular_file(place.root.with_name(f"{version.digest}.json"), max_bytes=_MAX_LIST_BYTES)
        except ToolError as error:
            raise PluginError(f"the list of its files cannot be read: {error}") from error
        if _digest(data) != version.digest:
            raise PluginError("the list of its files has changed since it was added")
        listed: Mapping[str, str] = json.loads(data)

        def read(path: str) -> bytes:
            file = place.root / path
            read = read_regular_file(file, max_bytes=MAX_FILE_BYTES)
            if _mark(read, is_program=os.access(file, os.X_OK)) != listed[path]:
                raise ToolError(f"{file} has changed since the plug-in was added")
            return read

        content = FolderContent(sorted(listed), read)
        return LoadedPlugin(read_plugin(content, name), place, content, listed)

    # Changes: each under a lock, over the list as it is then.

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Installed]]:
        make_private_folder(self.folder)
        try:
            with hold_lock(self.folder / "lock", wait_s=_LOCK_S):
                self.__dict__.pop("installed", None)
                listed = dict(self.installed)
                yield listed
                rows = {name: {key: value for key, value in asdict(one).items() if key != "name"}
                        for name, one in sorted(listed.items())}  # fmt: skip
                text = json.dumps({"plugins": rows}, indent=1)
                write_atomic(self.folder / LIST, f"{text}\n".encode(), mode=0o600)
                self.__dict__.pop("installed", None)
        except (LockHeldError, LockUnsupportedError, ToolError, OSError) as error:
            raise ConfigError(f"the list of plug-ins could not be changed: {error}") from error

    def keep(self, files: Mapping[str, "SourceFile"], name: str, version: Version) -> Version:
        """Write the content of a plug-in into the store, and return the version with its digest."""
        listed = {path: _mark(file.data, is_program=file.is_program) for path, file in sorted(files.items())}
        data = json.dumps(listed, indent=0).encode()
        version = replace(version, digest=_digest(data))
        root = self.place(name, version).root
        try:
            make_private_folder(root.parent)
            if not root.exists():
                growing = root.with_name(f".{version.digest}.{os.getpid()}")
                for path, file in files.items():
                    place = growing / path
                    make_private_folder(place.parent)
                    place.write_bytes(file.data)
                    place.chmod(0o500 if file.is_program else 0o400)
                for folder in {folder for path in files for folder in (growing / path).parents}:
                    if is_below(folder, growing):  # what its programs leave there would count as a change
                        folder.chmod(0o500)
                growing.rename(root)
            write_atomic(root.with_name(f"{version.digest}.json"), data, mode=0o600)
        except (OSError, ToolError) as error:
            raise ConfigError(f"the plug-in {name} could not be stored: {error}") from error
        return version

    def repair(self, files: Mapping[str, "SourceFile"], name: str, version: Version) -> None:
        """Write the content of a version again, whose files on disk are not as they were."""
        with self._changing():
            with suppress(OSError):
                remove_tree(self.place(name, version).root)
            self.keep(files, name, version)

    def add(self, added: Installed, files: Mapping[str, "SourceFile"]) -> Installed:
        """Store a plug-in that is new, and return it; it is off.

        Raises:
            ConfigError: There is one of this name.
        """
        with self._changing() as listed:
            if added.name in listed:
                raise ConfigError(
                    f"there is a plug-in {added.name} already, from {listed[added.name].source}; "
                    f"run panpan plugin update {added.name}, or remove it first"
                )
            listed[added.name] = replace(added, current=self.keep(files, added.name, added.current), is_enabled=False)
        return self.installed[added.name]

    def offer(self, name: str, version: Version | None) -> None:
        """Note an update that waits until the user accepts it; None: there is none any more."""
        with self._changing() as listed:
            before = _required(listed, name)
            listed[name] = replace(before, waiting=version)
        if before.waiting not in (None, version):
            self._forget(name)

    def enable(self, name: str, digest: str) -> Installed:
        """Switch a plug-in on with the content that the user has seen, be it an update or not.

        Raises:
            ConfigError: It has other content by now.
        """
        with self._changing() as listed:
            now = _required(listed, name)
            version = now.waiting or now.current
            if version.digest != digest:
                raise ConfigError(f"{name} has changed meanwhile; look at it again: panpan plugin show {name}")
            listed[name] = replace(now, current=version, waiting=None, is_enabled=True)
        make_private_folder(self.folder / "data" / name)
        self._forget(name)
        return self.installed[name]

    def disable(self, name: str) -> None:
        """Switch a plug-in off."""
        with self._changing() as listed:
            listed[name] = replace(_required(listed, name), is_enabled=False)

    def remove(self, name: str) -> None:
        """Remove a plug-in, but for its data."""
        with self._changing() as listed:
            listed.pop(_required(listed, name).name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """Remove the files of a plug-in that no version needs any more."""
        found = self.installed.get(name)
        needed = {one.digest for one in (found.current, found.waiting) if one} if found else set()
        with suppress(OSError):
            for entry in sorted(self._files(name).iterdir()):
                if entry.stem not in needed and entry.is_dir():
                    remove_tree(entry)
                elif entry.stem not in needed:
                    entry.unlink()
            self._files(name).rmdir()  # which fails while it holds something


def changes(loaded: LoadedPlugin) -> Sequence[str]:
    """Return the files of a stored plug-in that are not as they were added: changed, missing or new."""
    found, left_out = read_folder(loaded.place.root, skipped=frozenset())
    now = {path: _mark(file.data, is_program=file.is_program) for path, file in found.items()}
    changed = {path for path in now.keys() | loaded.marks if now.get(path) != loaded.marks.get(path)}
    return sorted(changed | {line.partition(":")[0] for line in left_out})


def _required(listed: Mapping[str, Installed], name: str) -> Installed:
    if name not in listed:
        raise ConfigError(f"there is no plug-in {name} any more")
    return listed[name]


def _installed(name: str, row: Mapping[str, Any]) -> Installed:
    current, waiting = (_version(name, row.get(key)) for key in ("current", "waiting"))
    given = {key: row.get(key, "") for key in ("source", "entry", "path")}
    is_name = bool(name) and name.isprintable() and "/" not in name and name not in (".", "..")
    if current is None or not is_name or not all(isinstance(text, str) for text in given.values()):
        raise ValueError(f"the plug-in {name[:60]!r} has no name, source or content")
    return Installed(name, **given, current=current, waiting=waiting, is_enabled=row.get("is_enabled") is True)


def _version(name: str, row: Mapping[str, Any] | None) -> Version | None:
    if row is None:
        return None
    version = Version(**row)
    if not all(isinstance(text, str) for text in row.values()) or not version.digest.isalnum():
        raise ValueError(f"the plug-in {name[:60]!r} has no digest")
    return version


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _mark(data: bytes, *, is_program: bool) -> str:
    return f"{'x' if is_program else '-'}{_digest(data)}"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a plug-in before it is stored."""

    data: bytes
    is_program: bool = False


def read_folder(folder: Path, *, skipped: Collection[str] = _SKIPPED) -> tuple[Mapping[str, SourceFile], Sequence[str]]:
    """Return the files of a folder by their paths, and what is left out of it, each with the reason.

    Links are followed as far as they stay in the folder.

    Args:
        folder: The folder.
        skipped: Names of folders that are left out without a word.

    Raises:
        PluginError: It cannot be read, or holds too much.
    """
    reader = _FolderReader(folder, skipped)
    reader.read(reader.root, "")
    return reader.files, reader.left_out


class _FolderReader:
    """Reads a folder with all that is in it, within limits."""

    def __init__(self, folder: Path, skipped: Collection[str]) -> None:
        self.files: dict[str, SourceFile] = {}
        self.left_out: list[str] = []
        self._skipped = skipped
        self._bytes = 0
        self._folders = 0
        try:
            self.root = canonical_path(folder)
        except ToolError as error:
            raise PluginError(str(error)) from error

    def read(self, folder: Path, name: str) -> None:
        """Read a folder, whose path from the root is `name`."""
        if name.count("/") > MAX_DEPTH:
            raise PluginError(f"{name[:100]} is nested too deeply")
        self._folders += 1
        if self._folders > MAX_FILES:
            raise PluginError(f"it has more than {MAX_FILES:,} folders")
        try:
            with os.scandir(folder) as entries:
                found = sorted((entry for entry in entries if entry.name not in self._skipped), key=_entry_name)
            for entry in found:
                self._take(entry, f"{name}/{entry.name}" if name else entry.name)
        except OSError as error:
            raise PluginError(f"{folder} cannot be read: {error.strerror}") from error

    def _take(self, entry: os.DirEntry[str], name: str) -> None:
        if not name.isprintable() or "\\" in name:
            raise PluginError(f"the name {name[:100]!r} has characters that cannot be shown")
        try:
            path = Path(entry.path)
            if entry.is_symlink():  # the folder itself is canonical
                path = canonical_path(path)
                if not is_below(path, self.root):
                    raise ToolError("it is a link that leads out of the plug-in")
            status = path.stat()
            if stat.S_ISDIR(status.st_mode):
                if entry.is_symlink() and is_below(Path(entry.path), path):
                    raise ToolError("it is a link to a folder that it is in")
                self.read(path, name)
                return
            data = read_regular_file(path, max_bytes=MAX_FILE_BYTES)
        except (ToolError, FileNotFoundError) as error:
            self.left_out.append(f"{name}: it is left out: {error}")
            return
        self._bytes += len(data)
        self.files[name] = SourceFile(data, bool(status.st_mode & 0o100))
        if len(self.files) > MAX_FILES or self._bytes > MAX_BYTES:
            raise PluginError(f"it has more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB")


def _entry_name(entry: os.DirEntry[str]) -> str:
    return entry.name


def content_of(files: Mapping[str, SourceFile]) -> FolderContent:
    """Return files that were read as the content of a plug-in."""
    return FolderContent(sorted(files), lambda name: files[name].data)
