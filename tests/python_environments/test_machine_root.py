import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from panpan.python_environments.machine_root import MachineRoot

NAMES = st.sampled_from(["a", "b", "..", ".", "", "file"])
PATHS = st.lists(NAMES, max_size=8).map(lambda names: "/" + "/".join(names))


def test_links_and_dots_lead_only_below_the_root(tmp_path: Path) -> None:
    root = tmp_path / "machine"
    (root / "etc").mkdir(parents=True)
    (tmp_path / "secret").write_text("outside")
    (root / "etc" / "hosts").write_text("inside")
    (root / "up").symlink_to("../secret")
    (root / "absolute").symlink_to(tmp_path / "secret")
    (root / "to_etc").symlink_to("/etc")
    machine = MachineRoot(root)

    assert machine.text("/up") is None
    assert machine.text("/absolute") is None
    assert machine.text("/../secret") is None
    assert machine.text("/to_etc/hosts") == "inside"
    assert machine.text("/etc/../../../etc/hosts") == "inside"
    assert machine.unread == {}


@given(target=PATHS, path=PATHS)
def test_link_to_any_target_ends_below_the_root(tmp_path_factory: object, target: str, path: str) -> None:
    root = tmp_path_factory.mktemp("machine")  # type: ignore[attr-defined]
    (root / "a").symlink_to(target.lstrip("/") or "..")
    (root / "b").symlink_to(target)

    place = MachineRoot(root).path_here(path)

    assert place is None or place.is_relative_to(root)
    assert place is None or ".." not in place.parts


def test_circular_links_have_no_end_and_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    machine = MachineRoot(tmp_path)

    assert machine.resolve("/a") is None
    assert machine.text("/a") is None
    assert machine.unread == {"/a": "links go in a circle"}


def test_special_file_is_noted_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    machine = MachineRoot(tmp_path)

    assert machine.text("/fifo") is None
    assert "is a FIFO" in machine.unread["/fifo"]


def test_withheld_file_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    (tmp_path / "METADATA").symlink_to("key")
    machine = MachineRoot(tmp_path, lambda place: place.name != "key")

    assert machine.text("/METADATA") is None
    assert machine.unread == {"/METADATA": "it may hold secrets, or a rule withholds it"}


def test_walk_does_not_follow_links_to_folders(tmp_path: Path) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "x.so").touch()
    (tmp_path / "a" / "again").symlink_to("/a")
    machine = MachineRoot(tmp_path)

    assert sorted(machine.walk("/a")) == [("/a", "again"), ("/a/deep", "x.so")]


def test_impossible_names_do_not_exist(tmp_path: Path) -> None:
    machine = MachineRoot(tmp_path)

    for name in ("/a\0b", "/\ud800", "/" + "x" * 5000, "/" + "y" * 300):
        assert not machine.exists(name)
        assert machine.text(name) is None
        assert machine.names(name) == ()
        assert list(machine.walk(name)) == []


def test_long_file_is_read_only_at_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 100)

    assert MachineRoot(tmp_path).text("/long", max_bytes=10) == "x" * 10
