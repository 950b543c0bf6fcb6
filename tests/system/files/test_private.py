import os
import stat
from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.system.files.folder_tree import make_private_folder, open_private_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_folders_are_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700


def test_an_existing_folder_is_closed_and_those_above_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "a" / "b").chmod(0o777)

    make_private_folder(tmp_path / "a" / "b")

    assert mode_of(tmp_path / "a") == 0o755
    assert mode_of(tmp_path / "a" / "b") == 0o700


def test_a_link_to_an_own_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")

    make_private_folder(tmp_path / "link")

    assert mode_of(tmp_path / "real") == 0o700


def test_a_folder_that_users_share_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)

    with pytest.raises(ConfigError, match="users share"):
        make_private_folder(tmp_path / "shared")

    assert mode_of(tmp_path / "shared") == 0o1777


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to("missing")

    for path in ("file", "file/below", "nowhere"):
        with pytest.raises(ConfigError):
            make_private_folder(tmp_path / path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give folders away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 1234, 1234)

    with pytest.raises(ConfigError, match="belongs to another user"):
        make_private_folder(tmp_path / "theirs")


def test_files_are_closed_to_others_also_when_they_were_open(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    (tmp_path / "old").chmod(0o644)

    for name in ("old", "new"):
        os.close(open_private_file(tmp_path / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND))

    assert mode_of(tmp_path / "old") == mode_of(tmp_path / "new") == 0o600
    assert (tmp_path / "old").read_text() == "x"


def test_the_descriptor_is_not_inherited_and_waits_as_usual(tmp_path: Path) -> None:
    fd = open_private_file(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        assert not os.get_inheritable(fd)
        assert os.get_blocking(fd)
    finally:
        os.close(fd)


def test_links_and_special_files_are_refused_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(OSError, match="symbolic links"):
        open_private_file(tmp_path / "link", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(ConfigError, match="is not a regular file"):
        open_private_file(tmp_path / "fifo", os.O_RDWR)

    assert not (tmp_path / "target").exists()
