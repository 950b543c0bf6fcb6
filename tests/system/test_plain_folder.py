import os
from pathlib import Path

import pytest

from panpan.system.plain_folder import open_below, plain_folder


def test_what_is_missing_is_made_on_the_way(tmp_path: Path) -> None:
    with plain_folder(tmp_path / "a" / "b", is_made=True) as folder:
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))

    assert (tmp_path / "a" / "b" / "file").exists()


def test_without_being_asked_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), plain_folder(tmp_path / "a" / "b"):
        pass

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", ["link", "link/below", "below/link/below", "file"])
def test_no_link_and_no_file_is_a_part_of_the_way(tmp_path: Path, way: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "top" / "below").mkdir(parents=True)
    (tmp_path / "top" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top" / "below" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top" / "file").touch()

    with pytest.raises(NotADirectoryError), plain_folder(tmp_path / "top" / way, is_made=True):
        pass

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_is_swapped_while_it_is_open_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "elsewhere").mkdir()

    with plain_folder(tmp_path / "top") as folder:
        (tmp_path / "top").rename(tmp_path / "moved")
        (tmp_path / "top").symlink_to(tmp_path / "elsewhere")
        os.close(open_below(folder, ["made"], is_made=True))

    assert (tmp_path / "moved" / "made").is_dir()
    assert list((tmp_path / "elsewhere").iterdir()) == []
