import gzip
import io
import os
import tarfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.files.archive import UnpackLimits, folder_name, is_archive, remove_leftovers, unpack

LIMITS = UnpackLimits(max_bytes=50_000_000, max_ratio=100)


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def file(name: str, data: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refusal(archive: Path, folder: Path, limits: UnpackLimits = LIMITS) -> str:
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(ToolError) as caught:
        unpack(archive, folder, limits)
    assert sorted(folder.parent.rglob("*")) == before
    return str(caught.value)


def test_unpack_extracts_files_and_folders(tmp_path: Path) -> None:
    folder, _ = file("./empty", b"", type=tarfile.DIRTYPE)
    archive = tar(tmp_path / "a.tar.gz", (folder, b""), file("b/run.sh", b"#!", mode=0o755), file("./c.txt", b"c"))

    assert unpack(archive, tmp_path / "a", LIMITS) == 2

    assert tree(tmp_path / "a") == {"b/run.sh": b"#!", "c.txt": b"c"}
    assert (tmp_path / "a" / "empty").is_dir()
    assert os.access(tmp_path / "a" / "b" / "run.sh", os.X_OK)
    assert not os.access(tmp_path / "a" / "c.txt", os.X_OK)


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (file("../out"), "leads elsewhere"),
        (file("a/../../out"), "leads elsewhere"),
        (file("/etc/out"), "leads elsewhere"),
        (file("a//b"), "leads elsewhere"),
        (file("a\\..\\out"), "leads elsewhere"),
        (file("a\nb"), "leads elsewhere"),
        (file("C:out"), "leads elsewhere"),
        (file("a\u202eb"), "leads elsewhere"),
        (file("x" * 1001), "more than 1,000 characters"),
        (file("link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "a link or device"),
        (file("hard", b"", type=tarfile.LNKTYPE, linkname="good"), "a link or device"),
        (file("pipe", b"", type=tarfile.FIFOTYPE), "a link or device"),
        (file("null", b"", type=tarfile.CHRTYPE), "a link or device"),
        (file("good"), "two files of one name"),
        (file("GOOD"), "two files of one name"),
        (file("a/.git/hooks/pre-commit"), "protected"),
        (file(".env"), "protected"),
        (file(".vscode/tasks.json"), "protected"),
    ],
)
def test_unpack_refuses_the_whole_for_a_dangerous_member(
    tmp_path: Path, member: tuple[tarfile.TarInfo, bytes], reason: str
) -> None:
    archive = tar(tmp_path / "a.tar.gz", file("good"), member)

    assert reason in refusal(archive, tmp_path / "a")


def test_unpack_refuses_a_name_protected_at_its_place(tmp_path: Path) -> None:
    archive = tar(tmp_path / "gradle.tar.gz", file("wrapper/gradle-wrapper.properties"))

    assert "a name that is protected" in refusal(archive, tmp_path / "gradle")


def test_unpack_refuses_a_link_in_a_zip(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")

    assert "a link or device" in refusal(tmp_path / "a.zip", tmp_path / "a")


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.xz", "tar.bz2"])
def test_unpack_ends_a_bomb_at_its_limit(tmp_path: Path, kind: str) -> None:
    path, data = tmp_path / f"a.{kind}", bytes(20_000_000)
    if kind == "zip":
        zipped(path, bomb=data)
    else:
        with tarfile.open(path, f"w:{kind[4:]}") as archive:
            info = tarfile.TarInfo("bomb")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))

    assert "more than 10 MB, as much as may come of it" in refusal(path, tmp_path / "a")


def test_unpack_counts_folders_like_files(tmp_path: Path) -> None:
    limits = replace(LIMITS, max_places=100)
    few = tar(tmp_path / "few.tar.gz", *(file(f"a/b/{number}") for number in range(90)))
    deep = tar(tmp_path / "deep.tar.gz", *(file(f"{number}/{'d/' * 20}x") for number in range(6)))

    assert unpack(few, tmp_path / "few", limits) == 90
    assert "more files and folders" in refusal(deep, tmp_path / "deep", limits)


def test_unpack_limits_a_zip_with_false_sizes(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", bomb=bytes(20_000_000))
    told = (20_000_000).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(told, (10).to_bytes(4, "little")))

    refusal(path, tmp_path / "a")


def test_unpack_is_bounded_by_the_disk(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", a=os.urandom(600), b=os.urandom(600))

    assert "more than 1 kB" in refusal(path, tmp_path / "a", UnpackLimits(max_bytes=1000, max_ratio=100))


def test_unpack_leaves_existing_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("mine")

    assert "exists" in refusal(zipped(tmp_path / "a.zip", mine=b"theirs"), tmp_path / "a")
    assert tree(tmp_path / "a") == {"mine": b"mine"}


@pytest.mark.parametrize("cut", [0, 1, 20, 100, 300])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_unpack_refuses_a_damaged_archive(tmp_path: Path, kind: str, cut: int) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        zipped(path, a=os.urandom(500))
    else:
        tar(path, file("a", os.urandom(500)))
    path.write_bytes(path.read_bytes()[:cut])

    refusal(path, tmp_path / "a")


def test_unpack_ends_when_cancelled(tmp_path: Path) -> None:
    wanted = threading.Event()
    with pytest.raises(ToolError, match="was ended"):
        unpack(zipped(tmp_path / "a.zip", a=b"a"), tmp_path / "a", LIMITS, wanted.is_set)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_leavings_of_a_killed_program_are_removed_and_no_others(tmp_path: Path) -> None:
    (tmp_path / ".a.unpacking-999999999").mkdir()
    (tmp_path / f".b.unpacking-{os.getpid()}").mkdir()

    remove_leftovers(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == [f".b.unpacking-{os.getpid()}"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("x.zip", "x"),
        ("x.tar.gz", "x"),
        ("X.TGZ", "X"),
        ("a.b.tar.xz", "a.b"),
        (".zip", "unpacked"),
        ("..zip", "unpacked"),
    ],
)
def test_folder_is_named_like_its_archive(name: str, folder: str) -> None:
    assert is_archive(name)
    assert folder_name(name) == folder


NAMES = st.text("ab./\\\n:~\u202e", min_size=1, max_size=12) | st.sampled_from(["../x", "/x", "a/../../x", "./a"])


@given(names=st.lists(NAMES, max_size=4))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_unpack_writes_nothing_outside_for_any_names(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    place = tmp_path_factory.mktemp("names")
    archive = tar(place / "a.tar.gz", *(file(name) for name in names))
    try:
        unpack(archive, place / "a", LIMITS)
    except ToolError:
        assert [path.name for path in place.iterdir()] == ["a.tar.gz"]
    else:
        assert {path.name for path in place.iterdir()} == {"a.tar.gz", "a"}


def test_unpack_refuses_huge_headers_unread(tmp_path: Path) -> None:
    long = tarfile.TarInfo("././@LongLink")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 10_000_000
    with gzip.open(tmp_path / "a.tar.gz", "wb") as stream:
        stream.write(long.tobuf(tarfile.GNU_FORMAT) + bytes(long.size))

    assert "its list of files is too large for memory" in refusal(tmp_path / "a.tar.gz", tmp_path / "a")


def test_unpack_refuses_a_huge_list_of_members(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", a=b"a")
    with path.open("r+b") as stream:  # a list of 200 MB, nearly all of it a hole
        data = stream.read()
        end = data.index(b"PK\5\6")
        tail = bytearray(data[end:])
        tail[12:16] = (200_000_000).to_bytes(4, "little")
        stream.seek(200_000_000 + end)
        stream.write(tail)

    assert "its list of files is too large for memory" in refusal(path, tmp_path / "a")


@pytest.mark.parametrize("size", [1 << 63, 1 << 80])
def test_impossible_sizes_are_damage(tmp_path: Path, size: int) -> None:
    info = tarfile.TarInfo("a")
    info.size = size
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2000))

    refusal(tmp_path / "a.tar", tmp_path / "a")


def test_unpack_does_not_follow_a_folder_that_became_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ToolError, match="cannot unpack"):
        unpack(zipped(tmp_path / "a.zip", a=b"a"), tmp_path / "data" / "a", LIMITS)

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_unpack_does_not_follow_a_folder_swapped_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    archive = tar(tmp_path / "a.tar.gz", file("b/one"), file("b/two"))

    def swap() -> bool:
        growing = next(tmp_path.glob(".a.unpacking-*"))
        if not (growing / "b").is_symlink():
            (growing / "b").rename(growing / "c")
            (growing / "b").symlink_to(tmp_path / "elsewhere")
        return True

    with pytest.raises(ToolError, match="cannot unpack"):
        unpack(archive, tmp_path / "a", LIMITS, swap)

    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "a").exists()


def test_leavings_of_an_impossible_program_stay(tmp_path: Path) -> None:
    (tmp_path / f".a.unpacking-{10**30}").mkdir()

    remove_leftovers(tmp_path)

    assert (tmp_path / f".a.unpacking-{10**30}").exists()
