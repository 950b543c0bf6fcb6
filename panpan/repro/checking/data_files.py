"""Checksums of the data that runs read, taken once for a check, and compared with those that are stated.

The rule: a file that did not change is not read again, also after a kill. Of what is too large, only parts are read, or
nothing, and that is said. Nothing counts as compared that was not read whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from panpan.batch.definition.campaign_rules import is_path_inside
from panpan.batch.store.folder import write_whole
from panpan.receipts.digests import PARTS_BYTES, WHOLE_BYTES, FileDigests
from panpan.receipts.receipt import FileDigest
from panpan.repro.checking.results import DataCheck
from panpan.repro.claims.claim import Data
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.folder_tree import walk
from panpan.system.text.terminal_text import clean_line, size_text
from panpan.types.dataclass import dataclass

_MAX_STATED_BYTES = 100_000_000_000
"""Largest file that is read whole, for a minute or two, since its checksum is stated."""
_MAX_FOLDER_BYTES = 20_000_000_000
"""Most bytes of one folder that are read; of further files only parts."""
MAX_FILES = 10_000
"""Most files of one folder that a check names."""


class _Known(BaseModel):
    """`data-digests.json`: digests by path, each with the state of the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    files: Mapping[str, tuple[tuple[int, ...], FileDigest]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes up to which files are read, in bytes."""

    stated: int = _MAX_STATED_BYTES
    whole: int = WHOLE_BYTES
    folder: int = _MAX_FOLDER_BYTES
    files: int = MAX_FILES


def check_data(data: Sequence[Data], source: Path, cache: Path, limits: Limits | None = None) -> Sequence[DataCheck]:
    """Return the data of claims.toml as it is now. Blocks while it is read.

    Args:
        data: The data.
        source: Folder of the repository.
        cache: File in which digests are kept for the next check.
        limits: Sizes up to which files are read; the usual ones if not given.

    Raises:
        OutputError: The file of digests cannot be written.
    """
    reader = _Reader(source, cache, limits or Limits())
    checks = [reader.check(one) for one in data]
    reader.keep()
    return checks


def identity_of(checks: Sequence[DataCheck], source: Path) -> str:
    """Return a digest that differs when the data does. Of what was not read whole, sizes and times count.

    Args:
        checks: The data as it was found.
        source: Folder of the repository.
    """
    facts = [(one.path, one.found, one.files, list(_states(one, source))) for one in checks]
    return sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()


def _states(check: DataCheck, source: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield the name, size and times of each file of data that was not read whole."""
    if check.found is None or check.found.how == "whole":
        return
    place = canonical_path(source / check.path)
    for name, path in _files_of(place) if place.is_dir() else [("", place)]:
        with suppress(OSError):
            status = path.lstat()
            yield name, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def not_whole(check: DataCheck) -> str:
    """Return a sentence if data was not read whole; empty if it was, or is missing."""
    found = check.found
    if found is None or found.how == "whole":
        return ""
    name, size = clean_line(check.path), size_text(found.size)
    if found.how == "parts":
        return f"{name} ({size}) is not read whole; its checksum is of its size and parts"
    return f"{name} ({size}) has no checksum: it is {found.how}"


def led_outside(check: DataCheck, source: Path) -> str:
    """Return a sentence if data lies outside of the repository, by a link that may have come with it; else empty."""
    place = canonical_path(source / check.path)
    if check.found is None or is_below(place, source):
        return ""
    return f"{clean_line(check.path)} leads to {clean_line(str(place))}; the results name the files there"


class _Reader:
    def __init__(self, source: Path, cache: Path, limits: Limits) -> None:
        self._source = source
        self._cache = cache
        self._limits = limits
        self._digests = FileDigests()
        self._before = _read(cache).files
        self._now: dict[str, tuple[tuple[int, ...], FileDigest]] = {}

    def keep(self) -> None:
        if self._now != self._before:
            write_whole(self._cache, _Known(files=self._now).model_dump_json().encode() + b"\n")

    def check(self, data: Data) -> DataCheck:
        if not is_path_inside(data.path):
            return self._checked(data, None, f"{clean_line(data.path)} is no path in the repository; correct it")
        place = canonical_path(self._source / data.path)
        if place.is_dir():
            return self._folder(data, place)
        if not place.is_file():
            there = place.exists()
            why = "is no regular file" if there else "is missing"
            return self._checked(data, None, f"{clean_line(data.path)} {why}{_advice(data)}")
        found = self._digest(place, data.path, self._limits.stated if data.sha256 else self._limits.whole)
        return self._checked(data, found, _difference(data, found))

    def _checked(self, data: Data, found: FileDigest | None, problem: str) -> DataCheck:
        return DataCheck(path=data.path, stated_sha256=data.sha256, found=found, problem=problem)

    def _folder(self, data: Data, place: Path) -> DataCheck:
        files, left, size, digest, more = list[FileDigest](), self._limits.folder, 0, sha256(), 0
        for name, file in _files_of(place):
            if len(files) >= self._limits.files:
                more += 1
                continue
            whole = self._limits.whole if left > 0 else 0
            found = self._digest(file, f"{data.path}/{name}", min(whole, max(left, 0)))
            left -= found.size if found.how == "whole" else PARTS_BYTES
            size += found.size
            files.append(found)
            digest.update(f"{found.sha256}  {name}\n".encode(errors="surrogateescape"))
        is_whole = not more and all(one.how == "whole" for one in files)
        summary = FileDigest(path=data.path, size=size, sha256=digest.hexdigest(), how="whole" if is_whole else "parts")
        problem = ""
        if data.sha256 and not (is_whole and summary.sha256 == data.sha256):
            name = clean_line(data.path)
            problem = f"{name} is a folder, and the stated checksum is one of a file; it is not compared"
        checked = self._checked(data, summary, problem)
        return checked.model_copy(update={"files": tuple(files)})

    def _digest(self, place: Path, shown: str, whole_bytes: int) -> FileDigest:
        try:
            status = place.stat()
        except OSError:
            return FileDigest(path=shown, how="gone")
        is_whole = status.st_size <= whole_bytes
        state = (
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, int(is_whole)
        )  # fmt: skip
        before = self._before.get(str(place))
        if before is not None and before[0] == state:
            self._now[str(place)] = before
            return before[1].model_copy(update={"path": shown})
        content = self._digests.read(place, whole_bytes=whole_bytes)
        found = FileDigest(path=shown, size=content.size, sha256=content.sha256, how=content.how)
        if content.how in ("whole", "parts"):
            self._now[str(place)] = state, found
        return found


def _read(path: Path) -> _Known:
    try:
        return _Known.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return _Known()


def _files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder by their paths from it, sorted within each folder; links are not followed."""
    for here, _, names in walk(folder):
        inside = here[len(str(folder)) + 1 :]
        for name in names:
            yield (f"{inside}/{name}" if inside else name), Path(here, name)


def _difference(data: Data, found: FileDigest) -> str:
    name = clean_line(data.path)
    if not data.sha256:
        return ""
    if found.how != "whole":
        size = size_text(found.size)
        return f"{name} ({size}) was not read whole, so it is not compared with the stated checksum"
    if found.sha256 == data.sha256:
        return ""
    return f"{name} has the SHA-256 {found.sha256[:12]}…, and {data.sha256[:12]}… is stated; it is another version"


def _advice(data: Data) -> str:
    return f"; get it from {clean_line(data.url)}" if data.url else ""
