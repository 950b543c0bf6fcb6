"""The last change of each environment, kept so that it can be taken back; and what taking it back would need.

The rule: only what the step itself changed is brought back, and only where nothing else has changed it since.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b, sha256
from pathlib import Path

from pydantic import ValidationError

from panpan.capabilities.packages.requirements import is_plain
from panpan.capabilities.packages.target import Installed
from panpan.errors import ToolError
from panpan.python_environments.metadata import normalise_name
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_regular_file
from panpan.types.content import Frozen
from panpan.types.dataclass import dataclass

_MOST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two freezes; each package is in one of the three at most."""

    added: tuple[Installed, ...] = ()
    removed: tuple[Installed, ...] = ()
    changed: tuple[tuple[Installed, Installed], ...] = ()
    """Each package before and after."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    @property
    def lines(self) -> Iterator[str]:
        """One line for each kind of change."""
        if self.added:
            yield _line("added", [str(package) for package in self.added])
        if self.removed:
            yield _line("removed", [str(package) for package in self.removed])
        if self.changed:
            yield _line("changed", [_shown(before, after) for before, after in self.changed])

    def summary(self, asked: Collection[str] = ()) -> str:
        """Return the same on one short line, for people; of much the first.

        Args:
            asked: Normalised names of the packages that the call named, which come first; what came along with them
                comes last, and before that what is another now, and what is gone.
        """
        changed = [(after.name, _shown(before, after)) for before, after in self.changed]
        removed = [(package.name, f"- {package.name} {package.version}") for package in self.removed]
        added = [(package.name, f"+ {package.name} {package.version}") for package in self.added]
        named = sorted((*changed, *removed, *added), key=lambda one: normalise_name(one[0]) not in asked)
        parts = [text for _, text in named]
        rest = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
        return f"{', '.join(parts[:4])}{rest}" if parts else "nothing changed"


def difference(before: Sequence[Installed], after: Sequence[Installed]) -> Changes:
    """Return the changes from `before` to `after`."""
    old, new = ({package.key: package for package in packages} for packages in (before, after))
    return Changes(
        added=tuple(package for key, package in new.items() if key not in old),
        removed=tuple(package for key, package in old.items() if key not in new),
        changed=tuple((old[key], package) for key, package in new.items() if key in old and old[key] != package),
    )


def _line(what: str, texts: Sequence[str]) -> str:
    rest = f" and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return f"{what}: {', '.join(texts[:_MOST_SHOWN])}{rest}"


def _shown(before: Installed, after: Installed) -> str:
    if before.version != after.version:
        return f"{before.name} {before.version} → {after.version}"
    return f"{before.name} {before.version} ({_kind(before)} → {_kind(after)})"


def _kind(package: Installed) -> str:
    return package.path or package.address or package.build or "from an index"


MAX_FILE_BYTES = 10_000_000
"""Most bytes of a manifest or lock file that is kept."""
_MAX_STEP_BYTES = 50_000_000


class FileStep(Frozen):
    """One manifest or lock file, before and after."""

    path: str
    before: str | None
    """Its text; None: it was not there."""
    after: str | None
    """SHA-256 of its bytes, in hex; None: it is not there."""


class Step(Frozen):
    """One change of an environment."""

    prefix: str
    manager: str
    what: str
    made_environment: bool
    """True if the step created the environment."""
    before: tuple[Installed, ...]
    """Packages that were removed, and the old state of those that were changed."""
    after: tuple[Installed, ...]
    """Packages that were added, and the new state of those that were changed."""
    files: tuple[FileStep, ...] = ()
    wheels: str | None = None
    """The folder of wheels that was installed from; None where an index was asked."""


@dataclass(frozen=True, slots=True)
class Undo:
    """Changes that bring an environment back to before a step."""

    remove: tuple[Installed, ...]
    restore: tuple[Installed, ...]
    """Packages to install again in exactly these versions."""
    files: tuple[FileStep, ...]
    notes: tuple[str, ...]
    """Sentences on what cannot be brought back, and why."""


class Steps:
    """The last step of each environment, in a folder.

    Args:
        folder: A private folder, made when it is first needed; None: nothing is kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def save(self, step: Step) -> None:
        """Keep a step in place of the one before it.

        Raises:
            ConfigError: The folder cannot be made.
            ToolError: It cannot be written.
        """
        if self._folder is not None:
            make_private_folder(self._folder)
            write_atomic(self._file(step.prefix), step.model_dump_json().encode(), mode=0o600, follow_symlinks=True)

    def last(self, prefix: Path) -> Step:
        """Return the last step of an environment.

        Raises:
            ToolError: None is known, or what was kept of it cannot be read.
        """
        file = None if self._folder is None else self._file(str(prefix))
        if file is None or not file.exists():
            raise ToolError(f"no change of {prefix} is known that could be undone")
        try:
            step = Step.model_validate_json(read_regular_file(file, max_bytes=_MAX_STEP_BYTES, follow_symlinks=True))
        except ValidationError as exc:
            raise ToolError(f"what was kept of the last change of {prefix} cannot be read, so nothing is done") from exc
        if step.prefix != str(prefix):
            raise ToolError(f"what was kept for {prefix} is about {step.prefix}, so nothing is done")
        return step

    def knows(self, prefix: Path) -> bool:
        """True if a step of an environment is kept."""
        return self._folder is not None and self._file(str(prefix)).exists()

    def forget(self, prefix: Path) -> None:
        """Keep nothing of an environment: its last step was taken back."""
        if self._folder is not None:
            self._file(str(prefix)).unlink(missing_ok=True)

    def _file(self, prefix: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{blake2b(prefix.encode(), digest_size=16).hexdigest()}.json"


def undo(step: Step, current: Sequence[Installed]) -> Undo:
    """Return the changes that take a step back."""
    now = {package.key: package for package in current}
    changes = difference(step.before, step.after)
    remove: list[Installed] = []
    restore: list[Installed] = []
    notes: list[str] = []
    for package in changes.added:
        found = now.get(package.key)
        if found == package and is_plain(package):
            remove.append(package)
        elif found == package:
            notes.append(f"{package.name!r} stays: its record is none that any installer writes")
        elif found is not None:
            notes.append(f"{found} was changed since, and stays")
    gone: list[tuple[Installed, Installed | None]] = [(package, None) for package in changes.removed]
    for before, after in (*gone, *changes.changed):
        found = now.get(before.key)
        if found == before:
            continue
        if found != after:
            notes.append(f"{before.name} was changed since, and stays {found.version if found else 'away'}")
        elif not is_plain(before):
            notes.append(f"{before.name!r} cannot come back: its record is none that any installer writes")
        elif before.path and not Path(before.path).exists():
            notes.append(f"{before} cannot come back: what it was installed from is gone")
        elif before.is_of_hidden_origin:
            notes.append(f"{before} cannot come back: it came from an address that holds a key")
        else:
            restore.append(before)
    files, file_notes = _files(step)
    return Undo(tuple(remove), tuple(restore), tuple(files), (*notes, *file_notes))


def file_texts(files: Sequence[Path]) -> dict[Path, str | None]:
    """Return the texts of manifests and lock files; None for what is not there, nothing for what is no text."""
    texts: dict[Path, str | None] = {}
    for file in files:
        if not file.exists():
            texts[file] = None
            continue
        try:
            texts[file] = read_regular_file(file, max_bytes=MAX_FILE_BYTES).decode()
        except (ToolError, UnicodeDecodeError):
            continue
    return texts


def changed_files(before: Mapping[Path, str | None]) -> tuple[FileStep, ...]:
    """Return the files that have changed since `file_texts`."""
    steps = [FileStep(path=str(path), before=text, after=digest(path)) for path, text in before.items()]
    return tuple(step for step in steps if step.after != _digest_of(step.before))


def digest(path: Path) -> str | None:
    """Return the SHA-256 of a file, in hex; None where there is none."""
    try:
        return sha256(read_regular_file(path, max_bytes=MAX_FILE_BYTES)).hexdigest()
    except ToolError:
        return None


def _digest_of(text: str | None) -> str | None:
    return None if text is None else sha256(text.encode()).hexdigest()


def _files(step: Step) -> tuple[list[FileStep], list[str]]:
    files: list[FileStep] = []
    notes: list[str] = []
    for file in step.files:
        found = digest(Path(file.path))
        if found == file.after:
            files.append(file)
        elif found != _digest_of(file.before):
            notes.append(f"{file.path} was changed since, and stays")
    return files, notes
