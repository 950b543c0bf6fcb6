"""The cost of a receipt: beside hashing, and of hashing. Both are counted in time of the processor, of all threads."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import anyio

from benchmarks.figure import Figure, ratio
from panpan.receipts.digests import MB, FileDigests
from panpan.receipts.receipt import Receipt
from panpan.receipts.recorder import CommandRecorder, StartedCommand
from panpan.shell_analysis.judge import analyse
from panpan.system.files.canonical import canonical_path

TITLE = "a receipt for each command"

_FOLDERS = 200
_FILES_IN_FOLDER = 10
_READ = 50
_WRITTEN = 5
_COMMANDS = 30
_LARGE_MB = 200
_MANY = 1_000


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        top = canonical_path(Path(name)) / "work"
        _make_files(top)
        commands = [anyio.run(_commands_ms, top) for _ in range(runs)]
        yield Figure(
            f"beside hashing, {_READ} files read and {_WRITTEN} written", "ms", [one[1] for one in commands], at_most=3
        )
        yield Figure(
            f"first one of a session, {_FOLDERS * _FILES_IN_FOLDER:,} files", "ms", [one[0] for one in commands]
        )
        yield Figure(
            f"is it stale, {_MANY:,} inputs that stayed", "ms", [anyio.run(_stale_ms, top) for _ in range(runs)]
        )
        large = top / "large"
        large.write_bytes(os.urandom(MB) * _LARGE_MB)
        pairs = [(_digest_ms(large), _sha256_ms()) for _ in range(runs)]
        ours = Figure("hashing a gigabyte", "ms", [one for one, _ in pairs], at_most=1_000)
        bare = Figure("SHA-256 of a gigabyte in memory", "ms", [other for _, other in pairs])
        yield from (ours, bare, ratio("the one as a multiple of the other", ours, bare))
        with large.open("wb") as file:
            file.truncate(500_000 * MB)
        yield Figure("500 GB, by parts", "ms", [_parts_ms(large) for _ in range(runs)], at_most=20)


def _make_files(top: Path) -> None:
    for folder in range(_FOLDERS):
        (top / f"package_{folder}").mkdir(parents=True)
        for number in range(_FILES_IN_FOLDER):
            (top / f"package_{folder}" / f"module_{number}.py").write_bytes(b"x" * 5_000)


def _modules(top: Path) -> list[Path]:
    return sorted(top.rglob("module_*.py"))


async def _commands_ms(top: Path) -> tuple[float, float]:
    """Return milliseconds for the first command, and for each of many further ones without reading files again."""
    recorder = CommandRecorder([top], top.parent / "scratch")
    try:
        first_s, _ = await _command_s(recorder, top, 0)
        await anyio.sleep(0.2)  # the digests of files that have just changed are not remembered
        recorder.digests.read_all(map(str, _modules(top)))
        await _command_s(recorder, top, 0)  # it takes the events of that
        before = recorder.digests.bytes_read
        spent_s = sum([(await _command_s(recorder, top, number))[0] for number in range(_COMMANDS)])
        hashed_s = (recorder.digests.bytes_read - before) / MB / 1_000 * _sha256_ms() / 1_000
        return first_s * 1_000, (spent_s - hashed_s) / _COMMANDS * 1_000
    finally:
        await recorder.aclose()


async def _command_s(recorder: CommandRecorder, top: Path, number: int) -> tuple[float, Receipt]:
    """Return the time that a receipt takes, without that of the command, which this process plays."""
    line = f"cd package_{number} && pytest -q --seed {number} tests/test_{number}.py | tail -3"
    command = StartedCommand(argv=["/bin/sh", "-c", line], line=line, cwd=top, environment=dict(os.environ))
    analyse(line)  # as the permission gate does
    begin = process_time()
    recording = await recorder.begin(command)
    spent = process_time() - begin
    for at in range(_READ):
        (top / f"package_{(number + at) % _FOLDERS}" / "module_0.py").read_bytes()
    for at in range(_WRITTEN):
        (top / f"package_{number}" / f"out_{at}.txt").write_bytes(b"%d" % number)
    begin = process_time()
    recording.feed(b"12 passed in 0.5s\n" * 100)
    receipt = await recording.end(0, box="bubblewrap")
    return spent + process_time() - begin, receipt


async def _stale_ms(top: Path) -> float:
    recorder = CommandRecorder([top], top.parent / "scratch")
    command = StartedCommand(argv=["true"], cwd=top, environment={})
    try:
        recording = await recorder.begin(command)
        for path in _modules(top)[:_MANY]:
            path.read_bytes()
        receipt = await recording.end(0, box="off")
        await recorder.freshness(receipt)
        begin = process_time()
        found = await recorder.freshness(receipt)
        spent = process_time() - begin
        assert found.state == "fresh"
        return spent * 1_000
    finally:
        await recorder.aclose()


def _digest_ms(path: Path) -> float:
    begin = process_time()
    FileDigests().read(path)
    return (process_time() - begin) * 1_000 * 1_000 / _LARGE_MB


def _sha256_ms() -> float:
    data = bytes(MB)
    begin = process_time()
    digest = sha256()
    for _ in range(_LARGE_MB):
        digest.update(data)
    return (process_time() - begin) * 1_000 * 1_000 / _LARGE_MB


def _parts_ms(path: Path) -> float:
    begin = process_time()
    FileDigests().read(path)
    return (process_time() - begin) * 1_000
