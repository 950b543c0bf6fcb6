"""Where the weights of a model lie on this machine, and whether they are what they must be.

The rule: a file gets the weights' name only after its SHA-256 was compared, in one rename. What is being fetched has
another name, and only the holder of the lock touches it.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Self

from panpan.capabilities.local_model.fetching import SETUP_COMMAND, FetchError
from panpan.capabilities.local_model.order import prefix_files
from panpan.capabilities.local_model.weights import QWEN_CODER_1_5B, Weights
from panpan.errors import ConfigError, PanpanError
from panpan.system.files.atomic_write import sync_folder, write_atomic
from panpan.system.files.canonical import canonical_path
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, remove_tree, walk
from panpan.system.files.read_file import opened_folder, read_regular_file
from panpan.types.dataclass import dataclass

# Whether a file of weights is what it must be: its SHA-256, and a stamp that spares reading it again.
#
# The rule: a stamp is made of a file that was read whole and did not change meanwhile.

_STEP_BYTES = 32 << 20
"""Read between two looks at the progress: some 40 ms."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a file that was verified from one that was changed since."""

    sha256: str
    size_bytes: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result, digest: str) -> Self:
        """Return the stamp of a file with this status and content."""
        return cls(digest, status.st_size, status.st_mtime_ns, status.st_ino)


class Verification:
    """Reads a file to its end for its SHA-256, a step at a time, so that somebody can watch and stop it.

    Args:
        path: The file.

    Raises:
        ConfigError: It cannot be opened, or is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            self._file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0)
            self._before = os.fstat(self._file.fileno())
        if not stat.S_ISREG(self._before.st_mode):
            self._file.close()
            raise ConfigError(f"{path} is not a regular file; move it away")
        self._digest = sha256()
        self.done_bytes = 0
        self.stamp: Stamp | None = None
        """What was found, once the file was read to its end; None also if it was changed meanwhile."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def step(self) -> bool:
        """Read on, and return whether there is more; blocks for some tens of milliseconds.

        Raises:
            ConfigError: It cannot be read.
        """
        with self._told():
            chunk = self._file.read(_STEP_BYTES)
        if chunk:
            self._digest.update(chunk)
            self.done_bytes += len(chunk)
            return True
        digest = self._digest.hexdigest()
        before, after = Stamp.of(self._before, digest), Stamp.of(os.fstat(self._file.fileno()), digest)
        self.stamp = after if before == after else None
        return False

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise ConfigError(f"cannot read the model's weights {self._path}: {exc.strerror}") from exc


_MAX_STAMP_BYTES = 10_000
_ROOT = 0


def models_folder(env: Mapping[str, str]) -> Path:
    """Return the folder for weights: `panpan/models` in the user's cache.

    Args:
        env: The environment; `XDG_CACHE_HOME` counts where it is absolute, as its specification says.

    Raises:
        ConfigError: There is no home folder.
    """
    cache = Path(env.get("XDG_CACHE_HOME") or "")
    if not cache.is_absolute():
        try:
            cache = Path(env.get("HOME") or Path.home()) / ".cache"
        except RuntimeError as exc:
            raise ConfigError("there is no home folder for the model; set HOME or XDG_CACHE_HOME") from exc
    return cache / "panpan" / "models"


class WeightStore:
    """The place of one model's weights.

    Args:
        folder: Where weights are kept; see `models_folder`. Made by `held`.
        weights: Which ones.
    """

    def __init__(self, folder: Path, weights: Weights) -> None:
        self.folder = folder
        self.weights = weights
        self.path = folder / weights.file_name
        """The weights; only there when they are whole."""
        self.partial_path = folder / f"{weights.file_name}.partial"
        self.scratch_folder = folder / f"{weights.file_name}.parts"
        """For what is fetched in between; only for the holder of the lock, who may find leftovers in it."""
        self._notes_path = folder / f"{weights.file_name}.origin.txt"
        self._stamp_path = folder / f"{weights.file_name}.verified.json"
        self._lock_path = folder / f"{weights.file_name}.lock"

    @property
    def is_ready(self) -> bool:
        """Whether a file of the right size lies there; `check` tells whether it is the right one."""
        return _regular_size(self.path) == self.weights.size_bytes

    @property
    def partial_bytes(self) -> int:
        """How much of the weights an earlier set-up left to go on with."""
        return _regular_size(self.partial_path) or 0

    @property
    def stored_bytes(self) -> int:
        """What `remove` would free."""
        scratch = (Path(here, name) for here, _, names in walk(self.scratch_folder) for name in names)
        files = [self.path, self.partial_path, *prefix_files(self.folder), *scratch]
        return sum(_regular_size(file) or 0 for file in files)

    def check(self) -> Path:
        """Return the path of the weights after making sure that they are the right ones.

        A file that was verified before and has not changed since is not read again; any other takes some seconds: call
        it from a worker thread.

        Raises:
            ConfigError: They are missing, or not the right ones.
        """
        if self.is_stamped:
            return self.path
        self.require_ready()
        with Verification(self.path) as verification:
            while verification.step():
                pass
        if not self.accept(verification.stamp):
            raise ConfigError(
                f"{self.path} is damaged: its SHA-256 is not that of {self.weights.name}; run: {SETUP_COMMAND}"
            )
        return self.path

    def require_ready(self) -> None:
        """Make sure that a file of the right size lies there, which takes no time.

        Raises:
            ConfigError: There is none.
        """
        size = _regular_size(self.path)
        if size is None:
            raise ConfigError(f"the embedded model is not set up; run: {SETUP_COMMAND}")
        if size != self.weights.size_bytes:
            raise ConfigError(
                f"{self.path} is damaged: it has {size:,} bytes and not {self.weights.size_bytes:,}; "
                f"run: {SETUP_COMMAND}"
            )

    def accept(self, stamp: Stamp | None) -> bool:
        """Return whether the file at `path` is the weights, and remember it if so.

        Args:
            stamp: What its verification found.
        """
        is_right = stamp is not None and stamp.sha256 == self.weights.sha256
        if stamp is not None and is_right:
            self._leave_stamp(stamp)
        return is_right

    @property
    def is_stamped(self) -> bool:
        """Whether the weights were verified before and have not changed since, as far as nobody else could pretend."""
        try:
            status = self.path.stat()
            owners = {status.st_uid, self._stamp_path.stat().st_uid}
            recorded = json.loads(read_regular_file(self._stamp_path, max_bytes=_MAX_STAMP_BYTES, follow_symlinks=True))
        except (OSError, PanpanError, ValueError, RecursionError):
            return False
        if not owners <= {os.geteuid(), _ROOT}:  # who owns a file can set its times back, or write what stamp he likes
            return False
        is_whole = stat.S_ISREG(status.st_mode) and status.st_size == self.weights.size_bytes
        return is_whole and recorded == asdict(Stamp.of(status, self.weights.sha256))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other process from changing what lies here, for the block.

        Raises:
            FetchError: Another process is at it.
            ConfigError: The folder cannot be used.
        """
        make_private_folder(self.folder)
        with ExitStack() as stack:
            try:
                stack.enter_context(hold_lock(self._lock_path, wait_s=0))
            except LockHeldError as exc:
                holder = f"process {exc.pid}" if exc.pid is not None else "another process"
                raise FetchError(f"{holder} is setting up {self.weights.name}; wait until it is done") from exc
            except LockUnsupportedError:
                # A network file system. Two set-ups at once would spoil the partial file for both; the hash finds that.
                pass
            yield

    def complete(self, stamp: Stamp) -> None:
        """Make the partial file the weights, after it was verified. Only for the holder of the lock.

        Args:
            stamp: What the verification found.

        Raises:
            FetchError: The file system refused; nothing is lost, and the next set-up goes on there.
        """
        try:
            write_atomic(self._notes_path, self._notes().encode(), mode=0o600, follow_symlinks=True)
            self.partial_path.replace(self.path)
            with opened_folder(canonical_path(self.folder)) as folder:
                sync_folder(folder)
        except OSError as exc:
            raise FetchError(f"cannot give the weights their name {self.path}: {exc.strerror}") from exc
        except PanpanError as exc:
            raise FetchError(str(exc)) from exc
        self._leave_stamp(stamp)

    def remove(self) -> int:
        """Remove the weights and all that was fetched of them, and return how many bytes that freed.

        Raises:
            FetchError: A set-up is running.
            ConfigError: Something cannot be removed.
        """
        if not self.folder.is_dir():
            return 0
        with self.held():
            freed = self.stored_bytes
            try:
                for file in (
                    self._stamp_path,
                    self.path,
                    self.partial_path,
                    self._notes_path,
                    *prefix_files(self.folder),
                ):
                    file.unlink(missing_ok=True)
                self.clear_scratch()
            except OSError as exc:
                raise ConfigError(f"cannot remove {exc.filename}: {exc.strerror}") from exc
        return freed

    def clear_scratch(self) -> None:
        """Remove what an earlier set-up left in the folder for parts.

        Raises:
            OSError: It cannot be removed.
        """
        if self.scratch_folder.exists():
            remove_tree(self.scratch_folder)

    def _leave_stamp(self, stamp: Stamp) -> None:
        # Where it cannot be written, as in a cache shared read-only, the next start compares the hash again.
        with suppress(PanpanError, OSError):
            write_atomic(self._stamp_path, json.dumps(asdict(stamp)).encode(), mode=0o600, follow_symlinks=True)

    def _notes(self) -> str:
        weights = self.weights
        return (
            f"{weights.file_name}\n\nmodel    {weights.name}\norigin   {weights.origin}\nlicence  {weights.licence}\n"
            f"SHA-256  {weights.sha256}\n\nThe file is as its origin published it.\n"
        )


def embedded_store(env: Mapping[str, str]) -> WeightStore:
    """Return where the embedded model's weights are kept for this user.

    Raises:
        ConfigError: There is no home folder.
    """
    return WeightStore(models_folder(env), QWEN_CODER_1_5B)


def _regular_size(path: Path) -> int | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
