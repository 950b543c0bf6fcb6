import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from panpan.capabilities.datasets.download_job import PlannedPart
from panpan.capabilities.datasets.download_plan import PlannedFile, RemoteFile
from panpan.errors import ToolError


def planned(folder: Path, size: int | None = 4) -> PlannedFile:
    remote = RemoteFile("http://data.example.org/words", "words", size)
    return PlannedFile(remote, folder / "words", folder / ".words.part", 0, is_there=False)


def taken_over(part: PlannedPart) -> int:
    while not part.load_existing():
        pass
    return part.size


def test_folder_that_became_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "elsewhere")

    for folder in (tmp_path / "data", tmp_path / "data" / "below"):
        with pytest.raises(ToolError, match="is it a link"):
            PlannedPart(planned(folder))

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_folder_swapped_during_the_download_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with PlannedPart(planned(tmp_path / "data")) as part:
        (tmp_path / "data").rename(tmp_path / "moved")
        (tmp_path / "data").symlink_to(tmp_path / "elsewhere")
        part.write(b"four")
        part.finish()

    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["words"]


def test_part_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".words.part")

    with pytest.raises(ToolError, match="is not a regular file"):
        PlannedPart(planned(tmp_path))


def test_part_with_a_second_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"too much to be of it")
    (tmp_path / ".words.part").hardlink_to(tmp_path / "mine")

    with PlannedPart(planned(tmp_path)) as part:
        size = taken_over(part)
        part.write(b"four")
        part.finish()

    assert size == 0
    assert (tmp_path / "mine").read_bytes() == b"too much to be of it"
    assert (tmp_path / "words").read_bytes() == b"four"


def test_simultaneous_downloads_of_one_file_do_not_mix(tmp_path: Path) -> None:
    with PlannedPart(planned(tmp_path)) as part:
        part.write(b"four")

        with pytest.raises(ToolError, match="is being downloaded already"):
            PlannedPart(planned(tmp_path))

    assert (tmp_path / ".words.part").read_bytes() == b"four"


def test_partial_bytes_are_kept_exactly(tmp_path: Path) -> None:
    with PlannedPart(planned(tmp_path)) as part:
        part.write(b"fo")
    with PlannedPart(planned(tmp_path / "other")):
        pass

    with PlannedPart(planned(tmp_path)) as part:
        assert taken_over(part) == 2
    assert list((tmp_path / "other").iterdir()) == []


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_part_becomes_the_file_without_hard_links(tmp_path: Path) -> None:
    with PlannedPart(planned(tmp_path), link=no_links) as part:
        part.write(b"four")
        part.finish()

    assert [path.name for path in tmp_path.iterdir()] == ["words"]
    assert (tmp_path / "words").read_bytes() == b"four"


@pytest.mark.parametrize("link", [os.link, no_links])
def test_file_that_appeared_meanwhile_is_left_alone(tmp_path: Path, link: Callable[..., None]) -> None:
    with PlannedPart(planned(tmp_path), link=link) as part:
        part.write(b"four")
        (tmp_path / "words").write_bytes(b"mine")

        with pytest.raises(ToolError, match="was left alone"):
            part.finish()

    assert (tmp_path / "words").read_bytes() == b"mine"
    assert (tmp_path / ".words.part").read_bytes() == b"four"


def test_failing_link_is_reported(tmp_path: Path) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with PlannedPart(planned(tmp_path), link=full) as part:
        part.write(b"four")

        with pytest.raises(ToolError, match="No space left"):
            part.finish()

    assert [path.name for path in tmp_path.iterdir()] == [".words.part"]
